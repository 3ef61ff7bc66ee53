package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/getorprime/getorprime/internal/command"
	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/lease"
	"github.com/getorprime/getorprime/internal/loadctl"
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
	canceled bool  // nobody waits any more; err says why
	panicked bool
	began    uint64 // the instant before the loader was called
}

// granted loads under the lease in got and stores what came of it. The lease is
// kept while the load runs; a waiter elsewhere keeps the load going when nobody
// here waits any more.
func (p *priming) granted(ctx context.Context, got entry.Acquired, sent time.Time) *answer {
	p.emit(ctx, LeaseGranted, p.key, 0, nil)
	g := lease.Grant{Holder: &keeping{p, got.Token}, TTL: p.request.Lease, Since: sent}
	return p.run(ctx, p.replaced(&got.Entry), g, func(l *loaded) *answer {
		return p.finish(context.WithoutCancel(ctx), &got, l)
	})
}

// keeping is how the lease of a load is kept.
type keeping struct {
	*priming
	token entry.Token
}

// Extend moves the lease's end.
func (k *keeping) Extend(ctx context.Context) (held bool, err error) {
	held, waited, err := k.cache.store.Extend(ctx, k.key, k.token, k.request.Lease, k.request.Keep)
	if waited {
		k.flight.Pin()
	}
	return held, err
}

// Lost tells that the load will not be stored.
func (k *keeping) Lost(error) { k.emit(k.flight.Context(), LeaseLost, k.key, 0, nil) }

// Over ends a load that takes too long.
func (k *keeping) Over() { k.flight.Cancel(ErrLoadTimeout) }

// waiting is how the lease is kept before the load: the keeping that follows tells
// of its loss.
type waiting struct{ lease.Holder }

// Lost tells nobody.
func (waiting) Lost(error) {}

// replaced returns the value that e holds, or nil.
func (p *priming) replaced(e *entry.Entry) *entry.Entry {
	if e.Known && e.State == entry.Value && e.Now < e.HardUntil && e.Schema == p.schema {
		return e
	}
	return nil
}

// loadUnstored loads without a lease and stores nothing. Its failure cools down
// in this process alone.
func (p *priming) loadUnstored(ctx context.Context) *answer {
	none := lease.Grant{Holder: &keeping{priming: p}, Since: time.Now()}
	return p.run(ctx, nil, none, func(l *loaded) *answer {
		if l.err != nil && !l.canceled {
			n := p.cache.cools.failures(p.key) + 1
			p.cache.cools.begin(p.key, cool{err: l.err, failures: n, until: time.Now().Add(p.policy.cooldown(n))})
		}
		a := p.answered(l, l.began)
		a.degraded = p.degraded
		return a
	})
}

// loadDegraded is loadUnstored because Redis cannot be asked.
func (p *priming) loadDegraded(ctx context.Context) *answer {
	p.degraded = true
	p.emit(ctx, Degraded, p.key, 0, nil)
	return p.loadUnstored(ctx)
}

// run calls the loader, once there is room for another load, and finish with
// what came of it.
func (p *priming) run(ctx context.Context, old *entry.Entry, g lease.Grant, finish func(*loaded) *answer) *answer {
	gates, err := p.enter(ctx, g)
	if err != nil {
		ans := finish(&loaded{err: err, canceled: true, began: p.cache.tick()})
		if p.behind { // who joined asks again, and waits for a place
			return &answer{}
		}
		return ans
	}
	a := &attempt{
		priming: p, ctx: ctx, old: old, finish: finish, gates: gates,
		control: loadctl.Control{Previous: p.previous(old)},
		began:   p.cache.tick(), start: time.Now(),
	}
	g.MaxHold = a.start.Sub(g.Since) + p.policy.LoadTimeout
	a.held = p.cache.keeper.Keep(g)
	return a.run()
}

// enter takes a place in the keyspace's bulkhead and the cache's, and keeps the
// lease while it waits for them. It returns the places taken.
func (p *priming) enter(ctx context.Context, g lease.Grant) ([]*semaphore.Weighted, error) {
	if ctx.Err() != nil { // everybody left while the lease was got
		return nil, context.Cause(ctx)
	}
	for i, gate := range p.gates {
		if gate.TryAcquire(1) {
			continue
		}
		if err := p.queue(ctx, gate, g); err != nil {
			leave(p.gates[:i])
			return nil, err
		}
	}
	return p.gates, nil
}

func leave(gates []*semaphore.Weighted) {
	for _, g := range gates {
		g.Release(1)
	}
}

// queue waits for a place in gate, first come, first served. A refresh that
// nobody waits for gives up at once.
func (p *priming) queue(ctx context.Context, gate *semaphore.Weighted, g lease.Grant) error {
	if p.behind {
		return ErrOverloaded
	}
	g.Holder = waiting{g.Holder}
	defer p.cache.keeper.Keep(g).Stop()
	ctx, cancel := context.WithTimeoutCause(ctx, p.policy.LoadTimeout, ErrOverloaded)
	defer cancel()
	if gate.Acquire(ctx, 1) == nil {
		return nil
	}
	err := context.Cause(ctx)
	if errors.Is(err, ErrOverloaded) {
		p.emit(ctx, Overloaded, p.key, p.policy.LoadTimeout, err)
		err = fmt.Errorf("%w: waited %v to load a key of %q", err, p.policy.LoadTimeout, p.prefix)
	}
	return err
}

// previous returns what a loader gets that asks for the value it replaces.
func (p *priming) previous(old *entry.Entry) func() (any, bool) {
	if old == nil {
		return nil
	}
	return func() (any, bool) {
		v, err := p.decode(old)
		return v, err == nil
	}
}

// finish ends the lease according to what the load came to.
func (p *priming) finish(ctx context.Context, got *entry.Acquired, l *loaded) *answer {
	switch {
	case l.canceled:
		p.release(ctx, got.Token)
		return p.answered(l, l.began)
	case l.err != nil:
		return p.fail(ctx, got, l)
	case l.unstored || l.notFound && p.policy.NotFoundTTL == off && l.ttl == 0:
		asOf := p.cache.tick()
		held, err := p.cache.store.ReleaseUnstored(ctx, p.key, got.Token, bypassFor)
		p.complain(ctx, "releasing a lease", err)
		if !held {
			asOf = l.began
		}
		return p.answered(l, asOf)
	}
	return p.fill(ctx, got, l)
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
	f := entry.Failure{Message: l.err.Error(), Panic: l.panicked}
	if p := (*loader.PanicError)(nil); errors.As(l.err, &p) {
		f.Message = fmt.Sprint(p.Value)
	}
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
		State: entry.Value, Schema: s.schema, Payload: l.payload,
		Delta: smoothed(delta, l.took), Fresh: s.policy.TTL,
	}
	if l.null {
		c.Flags |= entry.Nil
	}
	if l.notFound {
		c.State, c.Flags, c.Payload, c.Fresh = entry.Negative, 0, nil, s.policy.NotFoundTTL
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
