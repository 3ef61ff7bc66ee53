package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/flight"
	"github.com/getorprime/getorprime/internal/lease"
	"github.com/getorprime/getorprime/internal/loadctl"
	"github.com/getorprime/getorprime/loader"
)

// attempt is one call of a loader. The loader runs in the flight's goroutine,
// since starting another costs more than a round trip to a near Redis; so it
// may not come back, and is then ended by somebody else, exactly once:
//
//  1. It returns or panics: run ends it.
//  2. Its context ends first: giveUp, in a goroutine of its own, ends it, and
//     the flight has its answer. When the loader returns after all, run finds
//     that and passes the answer on.
//  3. It ends its goroutine with runtime.Goexit: a deferred function starts a
//     goroutine that ends it.
type attempt struct {
	*priming
	ctx     context.Context // the flight's
	old     *entry.Entry    // the value being replaced, or nil
	control loadctl.Control
	held    *lease.Held
	gates   []*semaphore.Weighted
	finish  func(*loaded) *answer
	began   uint64
	start   time.Time
	ended   atomic.Bool

	traced   context.Context // nil: not traced
	endTrace func(error)
}

// outcome is how a loader ended. The zero value: by runtime.Goexit.
type outcome struct {
	encoded
	err      error
	returned bool
	panicked any
	stack    []byte
}

// run calls the loader and ends the attempt.
func (a *attempt) run() *answer {
	ctx := a.loadContext()
	stop := context.AfterFunc(a.ctx, a.giveUp)
	o := a.call(ctx)
	stop()
	if !a.ended.CompareAndSwap(false, true) {
		a.cache.counts.hung.Add(-1)
		return a.flight.Finished()
	}
	return a.end(o)
}

// call calls the loader.
func (a *attempt) call(ctx context.Context) (o outcome) {
	defer func() {
		if o.returned {
			return
		}
		if p := recover(); p != nil {
			o.panicked, o.stack = p, debug.Stack()
			return
		}
		a.exited(o)
	}()
	o.encoded, o.err = a.load(ctx, a.id)
	o.returned = true
	return o
}

// exited ends an attempt whose loader is ending this goroutine.
func (a *attempt) exited(o outcome) {
	if !a.ended.CompareAndSwap(false, true) {
		a.cache.counts.hung.Add(-1)
		return
	}
	go func() { a.flight.Finish(a.end(o)) }()
}

// giveUp ends an attempt whose context has ended before its loader returned.
func (a *attempt) giveUp() {
	if a.ended.CompareAndSwap(false, true) {
		a.cache.counts.hung.Add(1)
		a.flight.Finish(a.end(outcome{returned: true, err: context.Cause(a.ctx)}))
	}
}

// end says what came of the load and acts on it.
func (a *attempt) end(o outcome) *answer {
	took := time.Since(a.start)
	a.control.Seal()
	a.held.Stop()
	leave(a.gates)
	l := a.judge(o)
	l.took, l.began = took, a.began
	a.report(l)
	ans := a.finish(l)
	if a.traced != nil {
		a.endTrace(l.err)
		ans.traced = a.traced
	}
	return ans
}

// judge says what the loader's outcome means. Whether a load was cancelled is
// judged by its context, not by the error the loader made of it.
func (a *attempt) judge(o outcome) *loaded {
	ttl, unstored, misuse := a.control.Outcome()
	l := &loaded{encoded: o.encoded, ttl: ttl, unstored: unstored}
	switch cause := context.Cause(a.ctx); {
	case o.panicked != nil:
		l.err, l.panicked = &loader.PanicError{Value: o.panicked, Stack: o.stack}, true
	case !o.returned:
		l.err, l.panicked = &loader.PanicError{Value: loader.ErrGoexit}, true
	case o.err == nil && misuse == nil:
	case errors.Is(o.err, loader.ErrNotFound):
		l.notFound = true
	case errors.Is(cause, flight.ErrAbandoned), errors.Is(cause, ErrClosed):
		l.err, l.canceled = cause, true
	case errors.Is(cause, ErrLoadTimeout):
		l.err = fmt.Errorf("%w after %v, a key of %q", cause, a.policy.LoadTimeout, a.prefix)
	case errors.Is(o.err, loader.ErrNotModified):
		a.keepOld(l, o.err)
	case o.err != nil:
		l.err = o.err
	default:
		l.err = fmt.Errorf("cache: loader of %q: %w", a.prefix, misuse)
	}
	return l
}

// keepOld makes "not modified" the previous value again.
func (a *attempt) keepOld(l *loaded, err error) {
	if a.old == nil {
		l.err = fmt.Errorf("cache: loader of %q: %w, but there is no previous value", a.prefix, err)
		return
	}
	l.encoded = encoded{a.old.Payload, a.old.Flags.Has(entry.Nil)}
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
	a.emit(a.ctx, kind, a.key, l.took, l.err)
}

// loadContext is the context of the loader: the flight's, with a deadline that
// the keeper of leases enforces, and without a timer of its own.
func (a *attempt) loadContext() context.Context {
	ctx := loadctl.With(underLoad(a.ctx, a.cache, a.key), &a.control)
	if a.cache.tracer != nil {
		ctx, a.endTrace = a.cache.tracer.StartLoad(ctx, a.prefix, a.key)
		a.traced = ctx
	}
	return dueContext{ctx, a.start.Add(a.policy.LoadTimeout)}
}

// dueContext is a context that names a deadline which is enforced elsewhere.
type dueContext struct {
	context.Context
	at time.Time
}

// Deadline returns the deadline of the load.
func (d dueContext) Deadline() (time.Time, bool) { return d.at, true }
