package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/getorprime/getorprime/internal/command"
	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/flight"
	"github.com/getorprime/getorprime/internal/wake"
	"github.com/getorprime/getorprime/loader"
)

// prime is the work of a flight: it gets the lease and loads, or waits for the
// process that has it.
//
//  1. A key that was just seen to be absent is claimed with SET NX, in the
//     leader's goroutine if the leader is sure to have the time.
//  2. Else the flight goes on apart. It registers for the key's wake-up, and only
//     then asks for the lease; whatever is stored after the answer will wake it.
//  3. Told to wait, it asks again at each message and each poll.
//  4. With the lease it loads; told of a value or a failure it answers with it.
func (c *call) prime(f *flight.Flight[*answer], read verdict, down error) *answer {
	p := c.newPriming(f)
	if down != nil {
		return p.loadDegraded()
	}
	if c.refresh {
		p.request.Force = entry.Forced
	} else if len(p.bad) > 0 {
		p.insist(p.bad...)
	}
	if read != absent {
		return p.apart(p.ask)
	}
	if p.hurried() {
		return p.apart(p.claim)
	}
	return p.claim()
}

// claim tries to win a key that was just seen to be absent, and else asks for it.
func (p *priming) claim() *answer {
	sent := time.Now()
	if got, won := p.cache.store.Claim(p.flight.Context(), p.key, &p.request); won {
		return p.granted(got, sent)
	}
	return p.apart(p.ask)
}

// hurried reports whether the work runs in the goroutine of a caller who has to
// leave, or may have to before a command to Redis that is sent now has ended: a
// command cannot be abandoned, and what it did has to be known.
func (p *priming) hurried() bool {
	leader := p.flight.Leader()
	end, limited := leader.Deadline()
	return limited && time.Until(end) < p.cache.opts.RedisBudget || leader.Err() != nil
}

// primeBehind is the work of a background refresh: it loads if the lease is to
// be had at once and the value of generation gen is still there. Callers who
// join it for want of any answer go round again if it comes to none.
func (c *call) primeBehind(f *flight.Flight[*answer], gen entry.Token) *answer {
	p := c.newPriming(f)
	p.behind, p.request.NoWait = true, true
	p.insist(gen)
	got, err := p.acquire(f.Context())
	if err != nil || got.Verdict == entry.Wait || got.Verdict == entry.Bypassed {
		return &answer{}
	}
	return p.settled(got)
}

// newPriming works on a copy of the call, which may go on without the flight.
func (c *call) newPriming(f *flight.Flight[*answer]) *priming {
	p := &priming{call: c.clone(), flight: f, request: c.request(), since: c.cache.tick()}
	p.request.Old = true
	return p
}

// priming is a flight on its way to an answer.
type priming struct {
	call
	flight   *flight.Flight[*answer]
	request  entry.Request
	since    uint64    // the instant before the first request for the lease
	asOf     uint64    // the instant before the latest one
	sent     time.Time // the same on the clock
	behind   bool      // nobody waits for the answer
	degraded bool      // Redis cannot be asked
}

// apart does what is left of the flight's work outside any caller's goroutine. If
// the work has been in one until now there is no answer yet, and apart returns nil.
func (p *priming) apart(rest func() *answer) *answer {
	a, _ := p.flight.Apart(rest)
	return a
}

// ask asks for the lease until there is an answer.
func (p *priming) ask() *answer {
	ctx := p.flight.Context()
	watch := p.cache.bus.Watch(p.key)
	defer watch.Stop()
	limited, cancel := context.WithTimeoutCause(ctx, p.policy.WaitTimeout, ErrWaitTimeout)
	defer cancel()

	var got entry.Acquired
	var a *answer
	start := time.Now()
	backoff := &wake.Backoff{}
	woken, err := wake.Until(limited, watch, backoff, func(ctx context.Context) (time.Duration, bool, error) {
		if a = p.told(watch); a != nil {
			return 0, true, nil
		}
		var err error
		if got, err = p.acquire(ctx); err != nil {
			return 0, false, err
		}
		if got.Verdict != entry.Wait {
			return 0, true, nil
		}
		backoff.Expect = p.expect(got.Delta)
		return time.Duration(got.LeaseUntil-got.Now) * time.Millisecond, false, nil
	})
	p.woke(ctx, woken, time.Since(start), &got)
	switch {
	case err != nil:
		return p.gaveUp(limited, ctx, err)
	case a != nil:
		return a
	}
	return p.settled(got)
}

// acquire asks for the lease once. Each time has a budget of its own but the
// first, which shares the caller's: a long wait may take many polls.
func (p *priming) acquire(ctx context.Context) (entry.Acquired, error) {
	if !p.sent.IsZero() {
		ctx = command.WithBudget(ctx, p.cache.opts.RedisBudget)
	}
	p.asOf, p.sent = p.cache.tick(), time.Now()
	got, err := p.cache.store.Acquire(ctx, p.key, &p.request)
	if err != nil {
		return got, err
	}
	switch got.Verdict {
	case entry.Wait:
		p.awaits(&got)
	case entry.Hit:
		return p.hit(ctx, got)
	}
	return got, nil
}

// hit takes a fresh value unless it cannot be decoded. Then it asks again with
// force; the second time in one call the value is loaded and not stored, so that
// two programs that cannot read each other's values do not load for ever.
func (p *priming) hit(ctx context.Context, got entry.Acquired) (entry.Acquired, error) {
	if got.State != entry.Value {
		return got, nil
	}
	if got.Schema != p.schema {
		p.spurn(ctx, &got.Entry, nil)
	}
	switch {
	case !slices.Contains(p.bad, got.Generation):
		return got, nil
	case len(p.bad) > 1:
		return entry.Acquired{Verdict: entry.Bypassed}, nil
	}
	p.insist(p.bad...)
	return p.acquire(ctx)
}

// insist asks for a lease unless the value there is none of these generations.
func (p *priming) insist(bad ...entry.Token) {
	if p.request.Force != entry.Forced {
		p.request.Force = entry.ForcedUnless
	}
	p.request.Seen = append(p.request.Seen, bad...)
}

// awaits notes which lease is waited for. For a refresh neither its value nor
// the one before is good enough: both loads may have begun before the call.
// Any later one began after.
func (p *priming) awaits(got *entry.Acquired) {
	p.request.Await = got.Lease
	if p.refresh && p.request.Force == entry.Forced {
		p.request.Force = entry.ForcedUnless
		p.request.Seen = []entry.Token{got.Generation, got.Lease}
	}
}

// told returns the failure of the awaited load, if a message brought it.
func (p *priming) told(w *wake.Watch) *answer {
	m, ok := w.Failure()
	if !ok || entry.Token(m.Token) != p.request.Await || p.request.Await.IsZero() {
		return nil
	}
	return &answer{source: FromPeer, err: remote(m.Text, m.Kind == wake.Panicked), asOf: p.since, began: p.since}
}

// woke reports what ended a wait, if there was one, and how long after the value
// was stored.
func (p *priming) woke(ctx context.Context, by wake.Woken, d time.Duration, got *entry.Acquired) {
	e := Event{Kind: WokenMessage, Key: p.key, Duration: d, Overhead: -1}
	switch by {
	case wake.ByNothing:
		return
	case wake.ByPoll:
		e.Kind = WokenPoll
	}
	if got.Verdict == entry.Hit {
		e.Overhead = age(&got.Entry)
	}
	p.send(ctx, e)
}

// gaveUp answers when the lease could not be asked for, or the wait was over.
func (p *priming) gaveUp(limited, ctx context.Context, err error) *answer {
	a := &answer{asOf: p.since, began: p.since}
	switch {
	case command.IsFull(err):
		return p.loadUnstored()
	case ctx.Err() != nil:
		p.cache.store.Abandon(ctx, p.key, &p.request)
		a.err = context.Cause(ctx)
	case ended(limited) != nil:
		p.emit(ctx, WaitTimedOut, p.key, p.policy.WaitTimeout, nil)
		a.asOf = p.cache.tick() // for all who wait: none shall wait that long again
		a.began = a.asOf
		a.err = fmt.Errorf("%w: gave up a key of %q after %v", ErrWaitTimeout, p.prefix, p.policy.WaitTimeout)
	default:
		a.err = p.trouble(ctx, "leasing", err)
		if p.policy.OnOutage == LoadLocally && errors.Is(a.err, ErrUnavailable) {
			return p.loadDegraded()
		}
	}
	return a
}

// settled acts on the final answer to the request for the lease. What it says
// is as of the latest request.
func (p *priming) settled(got entry.Acquired) *answer {
	switch got.Verdict {
	case entry.Grant:
		return p.granted(got, p.sent)
	case entry.Bypassed:
		return p.loadUnstored()
	case entry.Cooling:
		return &answer{source: FromPeer, err: p.failure(&got.Entry), asOf: p.since, began: p.since}
	}
	a := &answer{Entry: got.Entry, source: FromPeer, stored: true, asOf: p.asOf}
	if p.refresh {
		a.began = p.since // else the value may have been on its way before: see awaits
	}
	if got.State == entry.Negative {
		a.err = loader.ErrNotFound
	}
	return a
}
