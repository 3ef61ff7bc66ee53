package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/flight"
	"github.com/getorprime/getorprime/internal/lease"
	"github.com/getorprime/getorprime/loader"
)

// attempt is one load, and how its lease is kept. The loader has a goroutine of
// its own: it may block, hang, panic, or end that goroutine. Somebody waits for
// it, at each moment one, who ends the attempt:
//
//  1. The flight's leader waits, and stores what the loader returns.
//  2. The leader has to leave: the waiting goes on apart from any caller.
//  3. The flight's context ends first: who waits gives the load up, and the
//     flight has its answer. When the loader returns after all it finds that, and
//     what it returns is nobody's.
type attempt struct {
	*priming
	ctx   loadContext // the loader's
	since time.Time   // when the lease was asked for
	held  lease.Held
	got   entry.Acquired // zero: there is no lease, and nothing is stored
	old   *entry.Entry   // the value being replaced, or nil
	began uint64
	start time.Time

	outcome outcome       // set before done is closed
	done    chan struct{} // closed when the loader has returned in time
	over    atomic.Bool   // it has, or was given up

	loaded *loaded // once the attempt has ended

	traced    context.Context // nil: not traced
	tracedEnd func(error)
}

// outcome is how a loader ended. The zero value: by runtime.Goexit.
type outcome struct {
	encoded
	loaderError
	returned bool
	panicked any
	stack    []byte
}

// loaderError is an error and what it says of itself. Its methods are the loader's
// code, and are called where the loader is.
type loaderError struct {
	err                   error
	message               string
	notFound, notModified bool
}

// examine asks err what it says. It may panic.
func examine(err error) (e loaderError) {
	if err == nil {
		return e
	}
	e = loaderError{
		err: err, message: err.Error(),
		notFound: errors.Is(err, loader.ErrNotFound), notModified: errors.Is(err, loader.ErrNotModified),
	}
	if p := (*loader.PanicError)(nil); errors.As(err, &p) {
		e.message = fmt.Sprint(p.Value)
	}
	return e
}

// granted loads under the lease in got and stores what came of it. The lease is
// kept while the load runs; a waiter elsewhere keeps the load going when nobody
// here waits any more.
func (p *priming) granted(got entry.Acquired, sent time.Time) *answer {
	p.emit(p.flight.Context(), LeaseGranted, p.key, 0, nil)
	a := &attempt{priming: p, got: got, since: sent}
	if e := &a.got.Entry; e.Known && e.State == entry.Value && e.Now < e.HardUntil && e.Schema == p.schema {
		a.old = e
	}
	return a.run()
}

// loadUnstored loads without a lease and stores nothing. Its failure cools down
// in this process alone.
func (p *priming) loadUnstored() *answer {
	a := &attempt{priming: p, since: time.Now()}
	return a.run()
}

// loadDegraded is loadUnstored because Redis cannot be asked.
func (p *priming) loadDegraded() *answer {
	p.degraded = true
	p.emit(p.flight.Context(), Degraded, p.key, 0, nil)
	return p.loadUnstored()
}

// lease is the lease as the keeper has to know it.
func (a *attempt) lease() lease.Grant {
	g := lease.Grant{Holder: a, Since: a.since}
	if a.leased() {
		g.TTL = a.request.Lease
	}
	return g
}

// leased reports whether there is a lease.
func (a *attempt) leased() bool { return !a.got.Token.IsZero() }

// Extend moves the lease's end.
func (a *attempt) Extend(ctx context.Context) (held bool, err error) {
	held, waited, err := a.cache.store.Extend(ctx, a.key, a.got.Token, a.request.Lease, a.request.Keep)
	if waited {
		a.flight.Pin()
	}
	return held, err
}

// Lost tells that the load will not be stored.
func (a *attempt) Lost(error) { a.emit(a.flight.Context(), LeaseLost, a.key, 0, nil) }

// Over ends a load that takes too long.
func (a *attempt) Over() { a.flight.Cancel(ErrLoadTimeout) }

// run calls the loader, once there is room for another load, and acts on what
// came of it.
func (a *attempt) run() *answer {
	switch ctx := a.flight.Context(); {
	case a.hurried():
		return a.apart(a.run)
	case ctx.Err() != nil: // everybody left while the lease was got
		return a.unbegun(context.Cause(ctx))
	case a.tryEnter():
		return a.begin()
	}
	return a.apart(func() *answer {
		if err := a.enter(); err != nil {
			return a.unbegun(err)
		}
		return a.begin()
	})
}

// unbegun ends an attempt whose loader was not called.
func (a *attempt) unbegun(why error) *answer {
	ans := a.finish(&loaded{err: why, canceled: true, began: a.cache.tick()})
	if a.behind { // who joined asks again, and waits for a place
		return &answer{}
	}
	return ans
}

// begin starts the loader and waits for it.
func (a *attempt) begin() *answer {
	a.began, a.start = a.cache.tick(), time.Now()
	prepared := false
	defer func() {
		if !prepared { // the tracer ends this goroutine
			leave(a.gates)
		}
	}()
	ctx := a.prepare()
	prepared = true
	g := a.lease()
	g.MaxHold = a.start.Sub(a.since) + a.policy.LoadTimeout
	a.cache.keeper.KeepIn(&a.held, g)
	a.done = make(chan struct{})
	go a.call(ctx)
	return a.wait()
}

// wait waits for the loader and ends the attempt; in the leader's goroutine only
// while the leader stays.
func (a *attempt) wait() *answer {
	leader := a.flight.Leader()
	select {
	case <-a.done:
		return a.end(a.outcome)
	case <-a.flight.Context().Done():
		return a.giveUp()
	case <-leader.Done():
		return a.apart(a.wait)
	}
}

// giveUp ends an attempt whose context has ended before its loader returned.
func (a *attempt) giveUp() *answer {
	if !a.over.CompareAndSwap(false, true) {
		<-a.done
		return a.end(a.outcome)
	}
	a.cache.counts.hung.Add(1)
	return a.end(outcome{returned: true, loaderError: examine(context.Cause(a.flight.Context()))})
}

// call calls the loader, in a goroutine of its own.
func (a *attempt) call(ctx context.Context) {
	var o outcome
	defer func() {
		if p := recover(); p != nil {
			o.panicked, o.stack = p, debug.Stack()
		}
		if !a.over.CompareAndSwap(false, true) {
			a.cache.counts.hung.Add(-1)
			return
		}
		a.outcome = o
		close(a.done)
	}()
	v, err := a.load(ctx, a.id)
	o.encoded, o.loaderError = v, examine(err)
	o.returned = true
}

// end says what came of the load and acts on it.
func (a *attempt) end(o outcome) *answer {
	took := time.Since(a.start)
	a.ctx.control.Seal()
	a.held.Stop()
	leave(a.gates)
	a.loaded = a.judge(o)
	a.loaded.took, a.loaded.began = took, a.began
	a.report(a.loaded)
	if a.hurried() {
		return a.apart(a.conclude)
	}
	return a.conclude()
}

// conclude acts on what came of the load.
func (a *attempt) conclude() *answer {
	ans := a.finish(a.loaded)
	if a.traced != nil {
		a.endTrace()
		ans.traced = a.traced
	}
	return ans
}

// judge says what the loader's outcome means. Whether a load was cancelled is
// judged by its context, not by the error the loader made of it.
func (a *attempt) judge(o outcome) *loaded {
	ttl, unstored, misuse := a.ctx.control.Outcome()
	l := &loaded{encoded: o.encoded, ttl: ttl, unstored: unstored}
	switch cause := context.Cause(a.flight.Context()); {
	case o.panicked != nil:
		l.err, l.panicked = &loader.PanicError{Value: o.panicked, Stack: o.stack}, true
	case !o.returned:
		l.err, l.panicked = &loader.PanicError{Value: loader.ErrGoexit}, true
	case o.err == nil && misuse == nil:
	case o.notFound:
		l.notFound = true
	case errors.Is(cause, flight.ErrAbandoned), errors.Is(cause, ErrClosed):
		l.err, l.canceled = cause, true
	case errors.Is(cause, ErrLoadTimeout):
		l.err = fmt.Errorf("%w after %v, a key of %q", cause, a.policy.LoadTimeout, a.prefix)
	case o.notModified:
		a.keepOld(l, o.err)
	case o.err != nil:
		l.err, l.message = o.err, o.message
	default:
		l.err = fmt.Errorf("cache: loader of %q: %w", a.prefix, misuse)
	}
	if l.err != nil && l.message == "" {
		l.message = examine(l.err).message
	}
	return l
}

// keepOld makes "not modified" the previous value again.
func (a *attempt) keepOld(l *loaded, err error) {
	if a.old == nil {
		l.err = fmt.Errorf("cache: loader of %q: %w, but there is no previous value", a.prefix, err)
		return
	}
	l.encoded = encoded{payload: a.old.Payload, null: a.old.Flags.Has(entry.Nil)}
}

// report tells what a load came to.
func (a *attempt) report(l *loaded) {
	kind := Loaded
	switch {
	case l.notFound:
		kind = NotFound
	case l.panicked:
		kind = LoadPanicked
	case l.canceled:
		kind = LoadCanceled
	case l.err != nil:
		kind = LoadFailed
	default:
		a.delta.Store(int64(smoothed(time.Duration(a.delta.Load()), l.took)))
	}
	a.emit(a.flight.Context(), kind, a.key, l.took, l.err)
}

// prepare returns the context to give the loader.
func (a *attempt) prepare() context.Context {
	ctx := a.flight.Context()
	a.ctx.Context, a.ctx.due = ctx, a.start.Add(a.policy.LoadTimeout)
	above, _ := ctx.Value(loadingKey{}).(*loading)
	a.ctx.loading = loading{a.cache, a.key, above}
	if a.old != nil {
		a.ctx.control.Previous = a.previous
	}
	if a.cache.tracer == nil {
		return &a.ctx
	}
	return a.startTrace()
}

// startTrace returns the context that the tracer made of the loader's.
func (a *attempt) startTrace() (ctx context.Context) {
	ctx = &a.ctx
	defer a.cache.survive(ctx, "StartLoad")
	a.traced, a.tracedEnd = a.cache.tracer.StartLoad(ctx, a.prefix, a.key)
	return a.traced
}

func (a *attempt) endTrace() {
	defer a.cache.survive(a.traced, "the end of StartLoad")
	a.tracedEnd(a.loaded.err)
}

// previous is for a loader that asks for the value it replaces.
func (a *attempt) previous() (any, bool) {
	v, err := a.decode(a.old)
	return v, err == nil
}
