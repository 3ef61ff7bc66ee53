// Package flight collapses concurrent loads of one key within a process.
//
// It adds to [singleflight], which does the collapsing, what a cache needs and
// a plain group lacks: the work is detached from the callers, every caller waits
// under its own context, and work that nobody waits for any more is cancelled.
//
// # Who runs the work
//
// The caller that starts a flight leads it: the work runs in its goroutine, since
// starting another and waking the caller again costs as much as a round trip to
// a near Redis. So the work must not hold the caller longer than [Flight.Leader]
// lasts, and where it might, it goes on in a goroutine of its own:
//
//  1. Caller A starts flight F and runs its work; B joins F.
//  2. The work waits, for a loader say, and for the end of Flight.Leader.
//  3. The context of A ends. The work calls [Flight.Apart] with what is left to
//     do, and returns. A leaves F, which is cancelled if B has left before; else
//     B waits on.
//  4. Only then what is left is begun. It ends, and B has the result.
//
// # Leaving and joining at the same instant
//
//  1. Caller A is the last one waiting for flight F, and its context ends.
//  2. Caller B arrives.
//  3. Under the group's mutex either A leaves first: F is cancelled, forgotten,
//     and B starts a flight of its own. Or B joins first: F has a caller, and
//     A's leaving cancels nothing.
//
// So nobody joins work that is being cancelled.
//
// # Ending and joining at the same instant
//
//  1. The work of F returns.
//  2. Under the mutex F is removed from the group and from singleflight.
//  3. Caller B arrives and starts a flight of its own; it cannot get the result
//     of F, which may be older than B.
//
// Whether a result is young enough for a caller who joined F before step 2 is
// not known here: the cache compares instants.
package flight

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// ErrAbandoned is the cause with which the context of work is cancelled when
// its last caller has left.
var ErrAbandoned = errors.New("nobody waits for the load any more")

// ErrLate says that the patience of a caller was over.
var ErrLate = errors.New("the load takes longer than the caller waits")

// ErrClosed says that the group takes no more work.
var ErrClosed = errors.New("flight: closed")

// Group collapses work by key. The zero value is ready; it must not be copied.
type Group[T any] struct {
	calls singleflight.Group

	mu      sync.Mutex              // guards what follows
	flights map[string]*Flight[T]   // those that can be joined
	aloft   map[*Flight[T]]struct{} // all, detached ones too
	closed  bool
	empty   chan struct{} // closed when all have landed, after Close
}

// errApart tells those who joined that the work goes on apart.
var errApart = errors.New("flight: the work goes on apart")

// BrokenError says that work did not return. Its callers get it.
type BrokenError struct {
	Value any // what it panicked with; nil: it ended its goroutine
	Stack []byte
}

// Error tells which of the two happened.
func (e *BrokenError) Error() string {
	if e.Value == nil {
		return "flight: the work ended its goroutine"
	}
	return fmt.Sprintf("flight: the work panicked: %v", e.Value)
}

// Flight is one piece of work that callers share.
type Flight[T any] struct {
	group  *Group[T]
	key    string
	values endless         // the first caller's context
	ctx    context.Context // the same, with an end of its own
	cancel context.CancelCauseFunc
	leader context.Context // of the caller that runs the work; nil: nobody's
	rest   func() T        // of work that goes on apart
	result T               // of the rest, set before over is closed
	err    error           // why there is no result, likewise

	// The group's mutex guards what follows.
	callers int
	over    chan struct{} // made for who may need it; closed when work has ended otherwise than by returning to singleflight
	apart   bool          // singleflight does not know the work any more
	pinned  bool
	landed  bool
}

// endless is a context without its end. It is [context.WithoutCancel], less an
// allocation for every value that is looked up.
type endless struct{ context.Context }

func (*endless) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*endless) Done() <-chan struct{}       { return nil }
func (*endless) Err() error                  { return nil }

// Context returns the context of the work: the values of the caller that
// started it, without its cancellation or deadline.
func (f *Flight[T]) Context() context.Context { return f.ctx }

// Values returns a context with the values of Context that never ends.
func (f *Flight[T]) Values() context.Context { return &f.values }

// Cancel cancels the context of the work.
func (f *Flight[T]) Cancel(cause error) { f.cancel(cause) }

// Pin keeps the work going when its last caller leaves: somebody elsewhere
// waits for the outcome.
func (f *Flight[T]) Pin() {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	f.pinned = true
}

// Leader returns the context of the caller in whose goroutine the work runs; one
// that never ends if it has a goroutine of its own. Only the work may ask.
func (f *Flight[T]) Leader() context.Context {
	if f.leader == nil {
		return context.Background()
	}
	return f.leader
}

// Apart runs rest, which is all that is left of the work, outside the goroutine
// of any caller. Only the work may call it, once, and has to return what it
// returns: the result, or false if that is yet to come.
func (f *Flight[T]) Apart(rest func() T) (result T, ended bool) {
	if f.leader == nil {
		return rest(), true
	}
	f.leader, f.rest = nil, rest
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	f.apart = true
	f.overLocked()
	return result, false
}

// goOn does the rest of the work.
func (f *Flight[T]) goOn() {
	returned := false
	defer func() {
		if !returned {
			_ = f.broken(recover())
		}
	}()
	f.result = f.rest()
	returned = true
	f.land()
	f.tell()
}

// broken ends a flight whose work has panicked with p or, if p is nil, is ending
// its goroutine, of which singleflight tells those who joined nothing.
func (f *Flight[T]) broken(p any) error {
	f.err = &BrokenError{Value: p, Stack: debug.Stack()}
	f.land()
	f.tell()
	return f.err
}

// tell closes over. Nobody can join any more, so nobody makes it now.
func (f *Flight[T]) tell() {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	if f.over != nil {
		close(f.over)
	}
}

func (f *Flight[T]) overLocked() <-chan struct{} {
	if f.over == nil {
		f.over = make(chan struct{})
	}
	return f.over
}

// Do returns the result of work for key, started now or already running.
// It reports whether the caller joined work that was running. When ctx ends
// first it returns ctx's cause, at once if it joined or as soon as the work lets
// it go; work goes on for the others. Work that panics or ends its goroutine is a
// [*BrokenError]. After Close it returns [ErrClosed].
//
// Work returns false if it goes on apart: see [Flight.Apart].
func (g *Group[T]) Do(ctx context.Context, key string, work func(*Flight[T]) (T, bool)) (result T, joined bool, err error) {
	return g.DoWithin(ctx, 0, key, work)
}

// DoWithin is Do for a caller who waits no longer than patience: then it returns
// [ErrLate], and work goes on for whoever comes next. A patience of 0 has no end.
func (g *Group[T]) DoWithin(ctx context.Context, patience time.Duration, key string, work func(*Flight[T]) (T, bool)) (result T, joined bool, err error) {
	if patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, patience, ErrLate)
		defer cancel()
	}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return result, false, ErrClosed
	}
	if f := g.flights[key]; f != nil {
		done, over := g.joinLocked(f)
		g.mu.Unlock()
		result, err = f.await(ctx, done, over)
		return result, true, err
	}
	f := g.startLocked(ctx, key)
	f.callers, f.leader = 1, ctx
	result, err = g.leadLocked(f, work)
	if !errors.Is(err, errApart) {
		return result, false, err
	}
	if ctx.Err() != nil { // leaves first: what nobody waits for is not begun
		err = f.leave(ctx)
		go f.goOn()
		return result, false, err
	}
	go f.goOn()
	result, err = f.await(ctx, nil, f.over)
	return result, false, err
}

// leadLocked runs the work of f in the goroutine of its first caller. The mutex is
// held until singleflight knows the call, and released then.
func (g *Group[T]) leadLocked(f *Flight[T], work func(*Flight[T]) (T, bool)) (result T, err error) {
	v, err, _ := g.calls.Do(f.key, func() (any, error) {
		g.mu.Unlock()
		return f.run(work)
	})
	if err != nil {
		return result, err
	}
	return v.(T), nil
}

// joinLocked adds a caller to f, and returns where the result will be: singleflight
// delivers it, unless the work goes on apart. The key is in g.flights exactly as
// long as singleflight would join its call, or f is apart.
func (g *Group[T]) joinLocked(f *Flight[T]) (done <-chan singleflight.Result, over <-chan struct{}) {
	f.callers++
	if !f.apart {
		done = g.calls.DoChan(f.key, nil)
	}
	return done, f.overLocked()
}

// run is the call that singleflight knows.
func (f *Flight[T]) run(work func(*Flight[T]) (T, bool)) (result any, err error) {
	returned := false
	defer func() {
		if !returned {
			err = f.broken(recover())
		}
	}()
	r, ended := work(f)
	returned = true
	if !ended {
		return nil, errApart
	}
	f.land()
	return r, nil
}

// await waits for the result on behalf of one caller.
func (f *Flight[T]) await(ctx context.Context, done <-chan singleflight.Result, over <-chan struct{}) (result T, err error) {
	for {
		select {
		case r := <-done:
			switch {
			case r.Err == nil:
				return r.Val.(T), nil
			case !errors.Is(r.Err, errApart):
				return result, r.Err
			}
			done = nil
		case <-over:
			return f.result, f.err
		case <-ctx.Done():
			return result, f.leave(ctx)
		}
	}
}

// Go starts work for key, for which nobody has to wait, unless some is running.
// It reports whether it did.
func (g *Group[T]) Go(ctx context.Context, key string, work func(*Flight[T]) (T, bool)) (started bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.flights[key] != nil {
		return false
	}
	f := g.startLocked(ctx, key)
	f.pinned = true
	g.calls.DoChan(key, func() (any, error) { return f.run(work) })
	return true
}

// Len returns how many flights are under way.
func (g *Group[T]) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.flights)
}

// Detach lets the flight for key go on for those aboard; whoever comes now
// starts anew.
func (g *Group[T]) Detach(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f := g.flights[key]; f != nil {
		g.removeLocked(f)
	}
}

// CancelAll cancels the work of all flights, detached ones too.
func (g *Group[T]) CancelAll(cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for f := range g.aloft {
		f.cancel(cause)
	}
}

// Close refuses further callers, and returns a channel that is closed when all
// flights have ended. It may be called more than once.
func (g *Group[T]) Close() (landed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.closed, g.empty = true, make(chan struct{})
		g.landedLocked()
	}
	return g.empty
}

// landedLocked tells who closed the group when nothing is aloft any more.
func (g *Group[T]) landedLocked() {
	if g.closed && len(g.aloft) == 0 {
		close(g.empty)
	}
}

func (g *Group[T]) startLocked(ctx context.Context, key string) *Flight[T] {
	f := &Flight[T]{group: g, key: key, values: endless{ctx}}
	f.ctx, f.cancel = context.WithCancelCause(&f.values)
	if g.flights == nil {
		g.flights, g.aloft = make(map[string]*Flight[T]), make(map[*Flight[T]]struct{})
	}
	g.flights[key], g.aloft[f] = f, struct{}{}
	return f
}

// land ends f: whoever comes now starts anew.
func (f *Flight[T]) land() {
	g := f.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.landed {
		return
	}
	g.removeLocked(f)
	delete(g.aloft, f)
	f.landed = true
	f.cancel(nil)
	g.landedLocked()
}

// leave takes a caller whose context has ended out of f, and cancels f when that
// was the last one, unless it was only out of patience. It returns the cause.
func (f *Flight[T]) leave(ctx context.Context) error {
	cause := context.Cause(ctx)
	g := f.group
	g.mu.Lock()
	defer g.mu.Unlock()
	f.callers--
	f.pinned = f.pinned || errors.Is(cause, ErrLate)
	if f.callers == 0 && !f.pinned && !f.landed {
		g.removeLocked(f)
		f.cancel(ErrAbandoned)
	}
	return cause
}

func (g *Group[T]) removeLocked(f *Flight[T]) {
	if g.flights[f.key] == f {
		delete(g.flights, f.key)
		g.calls.Forget(f.key)
	}
}
