// Package flight collapses concurrent loads of one key within a process.
//
// It adds to [singleflight], which does the collapsing, what a cache needs and
// a plain group lacks: the work is detached from the caller that started it,
// every caller waits under its own context, and work that nobody waits for any
// more is cancelled.
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

	"golang.org/x/sync/singleflight"
)

// ErrAbandoned is the cause with which the context of work is cancelled when
// its last caller has left.
var ErrAbandoned = errors.New("nobody waits for the load any more")

// Group collapses work by key. The zero value is ready; it must not be copied.
type Group[T any] struct {
	calls singleflight.Group

	mu      sync.Mutex // guards what follows
	flights map[string]*Flight
	landing sync.WaitGroup
}

// Flight is one piece of work that callers share.
type Flight struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	// The group's mutex guards what follows.
	callers int
	mu      *sync.Mutex
	pinned  bool
	landed  bool
}

// Context returns the context of the work: the values of the caller that
// started it, without its cancellation or deadline.
func (f *Flight) Context() context.Context { return f.ctx }

// Pin keeps the work going when its last caller leaves: somebody elsewhere
// waits for the outcome.
func (f *Flight) Pin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pinned = true
}

// Do returns the result of work for key, started now or already running.
// It reports whether the caller joined work that was running. When ctx ends
// first it returns ctx's cause at once; work goes on for the others.
func (g *Group[T]) Do(ctx context.Context, key string, work func(*Flight) T) (result T, joined bool, err error) {
	f, done, joined := g.board(ctx, key, work)
	select {
	case r := <-done:
		return r.Val.(T), joined, nil
	case <-ctx.Done():
		g.leave(key, f)
		return result, joined, context.Cause(ctx)
	}
}

// Go starts work for key unless some is running, and reports whether it did.
// Nobody has to wait for it.
func (g *Group[T]) Go(ctx context.Context, key string, work func(*Flight) T) (started bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flights[key] != nil {
		return false
	}
	f := g.startLocked(ctx, key)
	f.pinned = true
	g.callLocked(key, f, work)
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
		g.removeLocked(key, f)
	}
}

// CancelAll cancels the work of all flights that can still be joined.
func (g *Group[T]) CancelAll(cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.flights {
		f.cancel(cause)
	}
}

// Wait returns when all work has ended. Nobody may start any meanwhile.
func (g *Group[T]) Wait() { g.landing.Wait() }

func (g *Group[T]) board(ctx context.Context, key string, work func(*Flight) T) (f *Flight, done <-chan singleflight.Result, joined bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f = g.flights[key]
	if joined = f != nil; !joined {
		f = g.startLocked(ctx, key)
	}
	f.callers++
	return f, g.callLocked(key, f, work), joined
}

func (g *Group[T]) startLocked(ctx context.Context, key string) *Flight {
	f := &Flight{mu: &g.mu}
	f.ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	g.landing.Add(1)
	if g.flights == nil {
		g.flights = make(map[string]*Flight)
	}
	g.flights[key] = f
	return f
}

// callLocked starts or joins the call of f: the key is in g.flights exactly as
// long as singleflight would join it.
func (g *Group[T]) callLocked(key string, f *Flight, work func(*Flight) T) <-chan singleflight.Result {
	return g.calls.DoChan(key, func() (any, error) {
		defer g.land(key, f)
		return work(f), nil
	})
}

// land ends f: whoever comes now starts anew.
func (g *Group[T]) land(key string, f *Flight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.removeLocked(key, f)
	f.landed = true
	f.cancel(nil)
	g.landing.Done()
}

// leave takes one caller out of f and cancels it when that was the last one.
func (g *Group[T]) leave(key string, f *Flight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.callers--
	if f.callers == 0 && !f.pinned && !f.landed {
		g.removeLocked(key, f)
		f.cancel(ErrAbandoned)
	}
}

func (g *Group[T]) removeLocked(key string, f *Flight) {
	if g.flights[key] == f {
		delete(g.flights, key)
		g.calls.Forget(key)
	}
}
