package cache

import (
	"context"
	"time"

	"github.com/getorprime/getorprime/internal/command"
	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/loader"
)

// loaded is what a loader came to.
type loaded struct {
	encoded
	took     time.Duration
	ttl      time.Duration // 0: the policy's
	unstored bool          // the loader said "do not store"
	notFound bool
	err      error // a failure
	message  string
	canceled bool // nobody waits any more; err says why
	panicked bool
	began    uint64 // the instant before the loader was called
}

// finish acts on what the load came to, and ends its lease, if it has one. It
// does so whatever becomes of the flight's context.
func (a *attempt) finish(l *loaded) *answer {
	if !a.leased() {
		return a.unleased(l)
	}
	ctx := a.flight.Values()
	switch {
	case l.canceled:
		a.release(ctx, a.got.Token)
		return a.answered(l, l.began)
	case l.err != nil:
		return a.fail(ctx, &a.got, l)
	case l.unstored || l.notFound && a.policy.NotFoundTTL == off && l.ttl == 0:
		asOf := a.cache.tick()
		held, err := a.cache.store.ReleaseUnstored(ctx, a.key, a.got.Token, bypassFor)
		a.complain(ctx, "releasing a lease", err)
		if !held {
			asOf = l.began
		}
		return a.answered(l, asOf)
	}
	return a.fill(ctx, &a.got, l)
}

// unleased is finish for a load without a lease.
func (p *priming) unleased(l *loaded) *answer {
	if l.err != nil && !l.canceled {
		n := p.cache.cools.failures(p.key) + 1
		p.cache.cools.begin(p.key, cool{err: l.err, failures: n, until: time.Now().Add(p.policy.cooldown(n))})
	}
	a := p.answered(l, l.began)
	a.degraded = p.degraded
	return a
}

// release ends a lease and leaves what was there before.
func (p *priming) release(ctx context.Context, tok entry.Token) {
	_, err := p.cache.store.Release(ctx, p.key, tok)
	p.complain(ctx, "releasing a lease", err)
}

// bypassFor is how long after a load that is not to be stored others load
// without waiting for each other.
const bypassFor = time.Second

// fail ends the lease with a failure, which everybody gets until it has cooled
// down.
func (p *priming) fail(ctx context.Context, got *entry.Acquired, l *loaded) *answer {
	failures := got.Failures + min(1, 255-got.Failures)
	d := p.policy.cooldown(failures)
	f := entry.Failure{Message: l.message, Panic: l.panicked}
	asOf := p.cache.tick()
	kept, _, err := p.cache.store.Fail(ctx, p.key, got.Token, f, failures, d)
	c := cool{token: got.Token, err: l.err, until: time.Now().Add(d)}
	switch {
	case err != nil:
		c.token, asOf = entry.Token{}, l.began
		p.cache.cools.begin(p.key, c)
		p.complain(ctx, "sharing a failure", err)
	case kept == entry.FailLost:
		asOf = l.began
	default:
		p.cache.cools.begin(p.key, c)
	}
	return p.answered(l, asOf)
}

// fill stores what was loaded, if the lease still stands. If it does not, those
// aboard get what was loaded all the same: it is as old as the load's beginning.
func (p *priming) fill(ctx context.Context, got *entry.Acquired, l *loaded) *answer {
	c := p.content(l, got.Delta)
	asOf := p.cache.tick()
	stored, err := p.cache.store.Fill(ctx, p.key, got.Token, c, p.policy.LoadTimeout)
	switch {
	case err != nil:
		p.emit(ctx, StoreFailed, p.key, 0, err)
		if command.IsFull(err) {
			p.release(ctx, got.Token)
		}
		return p.answered(l, l.began)
	case stored == entry.Lost:
		p.emit(ctx, StoreRefused, p.key, 0, nil)
		return p.answered(l, l.began)
	}
	p.emit(ctx, Stored, p.key, 0, nil)
	p.cache.cools.end(p.key)
	a := p.answered(l, asOf)
	a.stored, a.FreshUntil = true, c.Fresh.Milliseconds()
	return a
}

// content is what l is stored as.
func (s *space) content(l *loaded, delta time.Duration) entry.Content {
	c := entry.Content{
		State: entry.Value, Schema: s.schema, Payload: l.payload, Room: l.room,
		Delta: smoothed(delta, l.took), Fresh: s.policy.TTL,
	}
	if l.null {
		c.Flags |= entry.Nil
	}
	if l.notFound {
		c.State, c.Flags, c.Payload, c.Room, c.Fresh = entry.Negative, 0, nil, nil, s.policy.NotFoundTTL
	}
	if l.ttl > 0 {
		c.Fresh = l.ttl
	}
	c.Fresh = jittered(c.Fresh, s.policy.Jitter, random())
	c.Hard = c.Fresh
	if c.State == entry.Value {
		c.Hard += s.policy.staleFor()
	}
	return c
}

// answered is the answer of a load of this process. Its times count from now.
func (p *priming) answered(l *loaded, asOf uint64) *answer {
	a := &answer{source: FromLoad, err: l.err, asOf: asOf, began: l.began}
	a.Entry = entry.Entry{Payload: l.payload, Known: true}
	a.State, a.Schema = entry.Value, p.schema
	if l.null {
		a.Flags = entry.Nil
	}
	if l.notFound {
		a.State, a.err = entry.Negative, loader.ErrNotFound
	}
	return a
}

// complain logs what nobody is there to be told: a lease that could not be ended
// lapses by itself.
func (s *space) complain(ctx context.Context, doing string, err error) {
	if err != nil {
		s.cache.opts.Logger.WarnContext(ctx, "getorprime: "+doing+" failed", "prefix", s.prefix, "error", err)
	}
}
