package flight_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/internal/flight"
)

// outcome is what one caller got.
type outcome struct {
	value  int
	joined bool
	err    error
}

// whole is work that never holds its leader up.
func whole[T any](work func(*flight.Flight[T]) T) func(*flight.Flight[T]) (T, bool) {
	return func(f *flight.Flight[T]) (T, bool) { return work(f), true }
}

// apart is work that goes on apart at once.
func apart[T any](work func(*flight.Flight[T]) T) func(*flight.Flight[T]) (T, bool) {
	return func(f *flight.Flight[T]) (T, bool) { return f.Apart(func() T { return work(f) }) }
}

// way is where work runs.
type way func(work func(*flight.Flight[int]) int) func(*flight.Flight[int]) (int, bool)

var ways = map[string]way{"in the leader": whole[int], "apart": apart[int]}

// board calls Do in a goroutine and returns where its outcome will be.
func board(ctx context.Context, g *flight.Group[int], key string, work func(*flight.Flight[int]) (int, bool)) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		v, joined, err := g.Do(ctx, key, work)
		done <- outcome{v, joined, err}
	}()
	return done
}

// until returns work that lasts until c is closed or its context ends, and then
// comes to v or to -v. When its leader leaves it goes on apart.
func until(c <-chan struct{}, v int) func(*flight.Flight[int]) (int, bool) {
	var work func(*flight.Flight[int]) (int, bool)
	work = func(f *flight.Flight[int]) (int, bool) {
		select {
		case <-c:
			return v, true
		case <-f.Context().Done():
			return -v, true
		case <-f.Leader().Done():
			return f.Apart(func() int {
				r, _ := work(f)
				return r
			})
		}
	}
	return work
}

func TestCallersShareOneRun(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { shareOneRun(t, way) }) })
	}
}

func shareOneRun(t *testing.T, way way) {
	var g flight.Group[int]
	var runs atomic.Int32
	land := make(chan struct{})
	work := way(func(*flight.Flight[int]) int { <-land; return int(runs.Add(1)) })
	var all []<-chan outcome
	for range 10 {
		all = append(all, board(t.Context(), &g, "k", work))
		synctest.Wait()
	}
	if got := g.Len(); got != 1 {
		t.Errorf("%d flights under way, want 1", got)
	}
	close(land)
	for i, done := range all {
		if got, want := <-done, (outcome{1, i > 0, nil}); got != want {
			t.Errorf("caller %d got %+v, want %+v", i, got, want)
		}
	}
	if v, joined, _ := g.Do(t.Context(), "k", work); v != 2 || joined {
		t.Errorf("later caller got run %d, joined %v; want a run of its own", v, joined)
	}
}

func TestKeysFlyApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g flight.Group[int]
		land := make(chan struct{})
		a, b := board(t.Context(), &g, "a", until(land, 1)), board(t.Context(), &g, "b", until(land, 2))
		synctest.Wait()
		if got := g.Len(); got != 2 {
			t.Errorf("%d flights, want 2", got)
		}
		close(land)
		if got := (<-a).value + (<-b).value; got != 3 {
			t.Errorf("sum of both results is %d, want 3", got)
		}
	})
}

func TestLeaderLeavesTheOthersFly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g flight.Group[int]
		land := make(chan struct{})
		ctx, cancel := context.WithCancelCause(t.Context())
		leader := board(ctx, &g, "k", until(land, 7))
		synctest.Wait()
		other := board(t.Context(), &g, "k", until(land, 8))
		synctest.Wait()

		why := errors.New("the client went away")
		cancel(why)
		if got := <-leader; !errors.Is(got.err, why) {
			t.Errorf("leader got %+v, want the cause of its context", got)
		}
		close(land)
		if got, want := <-other, (outcome{7, true, nil}); got != want {
			t.Errorf("the other got %+v, want %+v", got, want)
		}
	})
}

func TestLastCallerEndsTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g flight.Group[int]
		var cause error
		ctx, cancel := context.WithCancel(t.Context())
		work := apart(func(f *flight.Flight[int]) int {
			<-f.Context().Done()
			cause = context.Cause(f.Context())
			return 0
		})
		first, second := board(ctx, &g, "k", work), board(ctx, &g, "k", work)
		synctest.Wait()
		cancel()
		<-first
		<-second
		synctest.Wait()
		if !errors.Is(cause, flight.ErrAbandoned) {
			t.Errorf("work was cancelled with cause %v, want ErrAbandoned", cause)
		}
		if got := g.Len(); got != 0 {
			t.Errorf("%d flights, want 0", got)
		}
	})
}

func TestPinnedWorkGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g flight.Group[int]
		land := make(chan struct{})
		ended := make(chan int, 1)
		ctx, cancel := context.WithCancel(t.Context())
		done := board(ctx, &g, "k", apart(func(f *flight.Flight[int]) int {
			f.Pin()
			v, _ := until(land, 5)(f)
			ended <- v
			return v
		}))
		synctest.Wait()
		cancel()
		<-done
		if v, joined, err := do(t, &g, land); v != 5 || !joined || err != nil {
			t.Errorf("newcomer got %d, joined %v, %v; want 5 of the pinned flight", v, joined, err)
		}
		if got := <-ended; got != 5 {
			t.Errorf("work came to %d, want 5: it was cancelled", got)
		}
	})
}

// do joins "k" and lets the work land once aboard.
func do(t *testing.T, g *flight.Group[int], land chan struct{}) (int, bool, error) {
	done := board(t.Context(), g, "k", until(land, 6))
	synctest.Wait()
	close(land)
	got := <-done
	return got.value, got.joined, got.err
}

func TestDetachLetsThoseAboardFly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g flight.Group[int]
		oldLand, newLand := make(chan struct{}), make(chan struct{})
		old := board(t.Context(), &g, "k", until(oldLand, 1))
		synctest.Wait()
		g.Detach("k")
		g.Detach("nothing flies here")
		fresh := board(t.Context(), &g, "k", until(newLand, 2))
		synctest.Wait()

		close(oldLand)
		if got, want := <-old, (outcome{1, false, nil}); got != want {
			t.Errorf("caller aboard got %+v, want %+v", got, want)
		}
		// The old flight's end must not take the new one out of the group.
		if v, joined, err := do(t, &g, newLand); v != 2 || !joined || err != nil {
			t.Errorf("third caller got %d, joined %v, %v; want 2 of the second flight", v, joined, err)
		}
		if got, want := <-fresh, (outcome{2, false, nil}); got != want {
			t.Errorf("newcomer got %+v, want %+v", got, want)
		}
	})
}

func TestCancelEndsTheContextOnly(t *testing.T) {
	why := errors.New("too slow")
	var g flight.Group[int]
	v, _, err := g.Do(t.Context(), "k", whole(func(f *flight.Flight[int]) int {
		f.Cancel(why)
		if got := context.Cause(f.Context()); got != why {
			t.Errorf("cause of the work's context is %v, want %v", got, why)
		}
		return 4
	}))
	if v != 4 || err != nil {
		t.Errorf("got %d, %v; want the work's own result", v, err)
	}
}

func TestContextOfTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		var g flight.Group[int]
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, 42), time.Second)
		defer cancel()
		work := whole(func(f *flight.Flight[int]) int {
			for _, ctx := range []context.Context{f.Context(), f.Values()} {
				if _, limited := ctx.Deadline(); limited {
					t.Error("the caller's deadline reached the work")
				}
			}
			return (f.Context().Value(key{}).(int) + f.Values().Value(key{}).(int)) / 2
		})
		if v, _, err := g.Do(ctx, "k", work); v != 42 || err != nil {
			t.Errorf("got %d, %v; want the caller's value 42", v, err)
		}
	})
}

func TestCancelAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g flight.Group[int]
		stop := errors.New("closing")
		work := whole(func(f *flight.Flight[int]) int {
			<-f.Context().Done()
			if !errors.Is(context.Cause(f.Context()), stop) {
				t.Errorf("cause is %v, want %v", context.Cause(f.Context()), stop)
			}
			return 0
		})
		var all []<-chan outcome
		for i := range 5 {
			all = append(all, board(t.Context(), &g, fmt.Sprint(i), work))
		}
		synctest.Wait()
		g.Detach("3")
		landed := g.Close()
		select {
		case <-landed:
			t.Error("Close says that all have landed while five fly")
		default:
		}
		g.CancelAll(stop)
		<-landed
		for _, done := range all {
			<-done
		}
		if got := g.Len(); got != 0 {
			t.Errorf("%d flights, want 0", got)
		}
	})
}

func TestClosedGroup(t *testing.T) {
	var g flight.Group[int]
	<-g.Close()
	<-g.Close()
	v, joined, err := g.Do(t.Context(), "k", whole(func(*flight.Flight[int]) int {
		t.Error("a closed group took work")
		return 1
	}))
	if v != 0 || joined || !errors.Is(err, flight.ErrClosed) {
		t.Errorf("Do = %d, %v, %v; want ErrClosed", v, joined, err)
	}
}

// TestCloseAmidTraffic closes a group that is in use: when it says that all have
// landed nothing runs, and nothing is started any more.
func TestCloseAmidTraffic(t *testing.T) {
	for range 200 {
		var g flight.Group[int]
		var running atomic.Int64
		var wg sync.WaitGroup
		work := whole(func(*flight.Flight[int]) int {
			running.Add(1)
			defer running.Add(-1)
			runtime.Gosched()
			return 1
		})
		for i := range 4 {
			wg.Go(func() {
				for {
					if _, _, err := g.Do(t.Context(), fmt.Sprint(i%2), work); errors.Is(err, flight.ErrClosed) {
						return
					}
				}
			})
		}
		runtime.Gosched()
		<-g.Close()
		if n := running.Load(); n != 0 || g.Len() != 0 {
			t.Errorf("%d run, %d flights after all have landed", n, g.Len())
		}
		wg.Wait()
	}
}

// TestNewcomersGetNothingOlder has callers ask for the number of the run that
// served them: a run that had ended before a caller came must not serve it.
func TestNewcomersGetNothingOlder(t *testing.T) {
	var g flight.Group[int64]
	var started, ended atomic.Int64
	work := func(f *flight.Flight[int64]) (int64, bool) {
		n := started.Add(1)
		end := func() int64 {
			ended.Store(n)
			return n
		}
		if n%2 == 0 {
			return f.Apart(end)
		}
		return end(), true
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5000 {
				before := ended.Load()
				got, joined, err := g.Do(t.Context(), "k", work)
				if err != nil || (got <= before && !joined) || got < before {
					t.Errorf("got run %d (joined %v), %v after run %d had ended", got, joined, err, before)
					return
				}
			}
		})
	}
	wg.Wait()
	if g.Len() != 0 {
		t.Errorf("%d flights left, want 0", g.Len())
	}
}
