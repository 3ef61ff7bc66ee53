package flight_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/internal/flight"
)

// TestApartAfterTheFirstStep has work go on apart while others have joined, and
// more join later; all get the result, and nobody starts a second run.
func TestApartAfterTheFirstStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g flight.Group[int]
		step, land := make(chan struct{}), make(chan struct{})
		var runs atomic.Int32
		work := func(f *flight.Flight[int]) (int, bool) {
			runs.Add(1)
			if f.Leader().Value(whose{}) != "first" {
				t.Error("Leader is not the context of the first caller")
			}
			<-step
			return f.Apart(func() int {
				if f.Leader().Done() != nil {
					t.Error("work apart has a leader that may leave")
				}
				v, ended := f.Apart(func() int { <-land; return 3 })
				if !ended {
					t.Error("work that is apart went apart once more")
				}
				return v
			})
		}
		first := board(context.WithValue(t.Context(), whose{}, "first"), &g, "k", work)
		synctest.Wait()
		early := board(t.Context(), &g, "k", work)
		synctest.Wait()
		close(step)
		synctest.Wait()
		late := board(t.Context(), &g, "k", work)
		synctest.Wait()
		close(land)
		for i, done := range []<-chan outcome{first, early, late} {
			if got, want := <-done, (outcome{3, i > 0, nil}); got != want {
				t.Errorf("caller %d got %+v, want %+v", i, got, want)
			}
		}
		if got := runs.Load(); got != 1 || g.Len() != 0 {
			t.Errorf("%d runs, %d flights left; want 1, 0", got, g.Len())
		}
	})
}

type whose struct{}

// TestPatienceEnds has a leader and a waiter whose patience ends; the work goes on
// for who comes next.
func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g flight.Group[int]
		land := make(chan struct{})
		impatient := func() <-chan error {
			done := make(chan error, 1)
			go func() {
				_, _, err := g.DoWithin(t.Context(), time.Second, "k", until(land, 6))
				done <- err
			}()
			return done
		}
		start := time.Now()
		leader := impatient()
		time.Sleep(time.Millisecond)
		waiter := impatient()
		for _, done := range []<-chan error{leader, waiter} {
			if err := <-done; !errors.Is(err, flight.ErrLate) {
				t.Errorf("got %v, want ErrLate", err)
			}
		}
		if took := time.Since(start); took != time.Second+time.Millisecond {
			t.Errorf("both were let go after %v, want a second each", took)
		}
		if v, joined, err := do(t, &g, land); v != 6 || !joined || err != nil {
			t.Errorf("who came next got %d, joined %v, %v; want 6 of the same run", v, joined, err)
		}
	})
}

// TestWorkThatDoesNotReturn has work panic or end its goroutine, in the leader's
// and apart from it. Everybody is told, and the key is free.
func TestWorkThatDoesNotReturn(t *testing.T) {
	ends := map[string]func(){"a panic": func() { panic("no such column") }, "Goexit": runtime.Goexit}
	for where, way := range ways {
		for what, end := range ends {
			t.Run(what+" "+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { breakWork(t, way, end) })
			})
		}
	}
}

func breakWork(t *testing.T, way way, end func()) {
	var g flight.Group[int]
	now := make(chan struct{})
	work := way(func(*flight.Flight[int]) int { <-now; end(); return 1 })
	board(t.Context(), &g, "k", work) // may not come back
	synctest.Wait()
	joined := board(t.Context(), &g, "k", work)
	synctest.Wait()
	close(now)
	var broken *flight.BrokenError
	if got := <-joined; !errors.As(got.err, &broken) || len(broken.Stack) == 0 {
		t.Errorf("who joined got %+v, want a BrokenError with a stack", got)
	}
	if v, _, err := g.Do(t.Context(), "k", whole(func(*flight.Flight[int]) int { return 2 })); v != 2 || err != nil {
		t.Errorf("the next caller got %d, %v; want a run of its own", v, err)
	}
	<-g.Close()
}
