// Package flight collapses concurrent loads of one key within a process.
//
// It adds to [singleflight], which does the collapsing, what a cache needs and
// a plain group lacks: the work is detached from the caller that started it,
// every caller waits under its own context, work that nobody waits for any more
// is cancelled, and work that hangs or whose goroutine is gone can be ended by
// somebody else.
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

// Flight is one piece of work that callers share.
type Flight[T any] struct {
	group  *Group[T]
	key    string
	ctx    context.Context
	cancel context.CancelCauseFunc

	over   chan struct{} // closed by Finish
	result T             // set before over is closed

	// The group's mutex guards what follows.
	callers int
	pinned  bool
	landed  bool
}

// Context returns the context of the work: the values of the caller that
// started it, without its cancellation or deadline.
func (f *Flight[T]) Context() context.Context { return f.ctx }

// Cancel cancels the context of the work.
func (f *Flight[T]) Cancel(cause error) { f.cancel(cause) }

// Pin keeps the work going when its last caller leaves: somebody elsewhere
// waits for the outcome.
func (f *Flight[T]) Pin() {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	f.pinned = true
}

// Finish gives result to all callers though the work has not returned: it
// hangs, or has ended its goroutine. It is called at most once.
func (f *Flight[T]) Finish(result T) {
	f.result = result
	close(f.over)
	f.land()
}

// Finished waits for Finish and returns its result.
func (f *Flight[T]) Finished() T {
	<-f.over
	return f.result
}

// Do returns the result of work for key, started now or already running.
// It reports whether the caller joined work that was running. When ctx ends
// first it returns ctx's cause at once; work goes on for the others. After Close
// it returns [ErrClosed].
//
// Work that ends its goroutine must see to it that Finish is called.
func (g *Group[T]) Do(ctx context.Context, key string, work func(*Flight[T]) T) (result T, joined bool, err error) {
	return g.DoWithin(ctx, 0, key, work)
}

// DoWithin is Do for a caller who waits no longer than patience: then it returns
// [ErrLate], and work goes on for whoever comes next. A patience of 0 has no end.
func (g *Group[T]) DoWithin(ctx context.Context, patience time.Duration, key string, work func(*Flight[T]) T) (result T, joined bool, err error) {
	f, done, joined := g.board(ctx, key, work)
	if f == nil {
		return result, false, ErrClosed
	}
	var late <-chan time.Time
	if patience > 0 {
		t := time.NewTimer(patience)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-late:
		f.Pin()
		g.leave(f)
		return result, joined, ErrLate
	case r := <-done:
		return r.Val.(T), joined, nil
	case <-f.over:
		return f.result, joined, nil
	case <-ctx.Done():
		g.leave(f)
		return result, joined, context.Cause(ctx)
	}
}

// Go starts work for key, for which nobody has to wait, unless some is running.
// It reports whether it did.
func (g *Group[T]) Go(ctx context.Context, key string, work func(*Flight[T]) T) (started bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.flights[key] != nil {
		return false
	}
	f := g.startLocked(ctx, key)
	f.pinned = true
	g.callLocked(f, work)
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

// board joins the flight for key or starts one, unless the group is closed. The
// key is in g.flights exactly as long as singleflight would join its call.
func (g *Group[T]) board(ctx context.Context, key string, work func(*Flight[T]) T) (f *Flight[T], done <-chan singleflight.Result, joined bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, nil, false
	}
	f = g.flights[key]
	if joined = f != nil; !joined {
		f = g.startLocked(ctx, key)
	}
	f.callers++
	return f, g.callLocked(f, work), joined
}

// callLocked starts or joins the call of f.
func (g *Group[T]) callLocked(f *Flight[T], work func(*Flight[T]) T) <-chan singleflight.Result {
	return g.calls.DoChan(f.key, func() (any, error) {
		deepen()
		r := work(f)
		f.land() // not deferred: work that ends its goroutine is finished by Finish
		return r, nil
	})
}

// deepen grows the stack of a new goroutine at once, while there is little on it
// to copy: a round trip to Redis needs some 8 KiB, and to get there by doubling
// copies ever deeper stacks, at a twelfth of the CPU time of an uncontended miss.
//
//go:noinline
func deepen() (sum byte) {
	var room [8 << 10]byte
	for i := 0; i < len(room); i += 4 << 10 {
		sum += room[i]
	}
	return sum
}

func (g *Group[T]) startLocked(ctx context.Context, key string) *Flight[T] {
	f := &Flight[T]{group: g, key: key, over: make(chan struct{})}
	f.ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
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

// leave takes one caller out of f and cancels it when that was the last one.
func (g *Group[T]) leave(f *Flight[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.callers--
	if f.callers == 0 && !f.pinned && !f.landed {
		g.removeLocked(f)
		f.cancel(ErrAbandoned)
	}
}

func (g *Group[T]) removeLocked(f *Flight[T]) {
	if g.flights[f.key] == f {
		delete(g.flights, f.key)
		g.calls.Forget(f.key)
	}
}
