package flight_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/getorprime/getorprime/internal/flight"
	"github.com/getorprime/getorprime/internal/redistest"
)

// TestStormOfCancellations has, in each of 10⁴ rounds, a leader and waiters
// whose contexts end at the instant at which a newcomer arrives. Whoever stays
// must get a result, and never that of work that was being cancelled.
func TestStormOfCancellations(t *testing.T) {
	redistest.NoLeaks(t)
	var s storm
	for round := range 10_000 {
		s.round(t, round)
		if t.Failed() {
			break
		}
	}
	<-s.group.Close()
	if got := s.group.Len(); got != 0 {
		t.Errorf("%d flights left, want 0", got)
	}
	if s.abandoned.Load() == 0 || s.finished.Load() == 0 {
		t.Errorf("%d runs abandoned and %d finished: the storm missed one of them", s.abandoned.Load(), s.finished.Load())
	}
}

type storm struct {
	group               flight.Group[bool]
	abandoned, finished atomic.Int64
}

// round runs one leader and two waiters, all of whom leave, and a newcomer.
// Every fourth round one of the waiters stays.
func (s *storm) round(t *testing.T, round int) {
	ctx, cancel := context.WithCancel(t.Context())
	land := make(chan struct{})
	end := func(f *flight.Flight[bool]) bool {
		select {
		case <-land:
		case <-f.Context().Done():
		}
		// A look of its own: both may be ready.
		if f.Context().Err() != nil {
			s.abandoned.Add(1)
			return false
		}
		s.finished.Add(1)
		return true
	}
	work := func(f *flight.Flight[bool]) (bool, bool) {
		select {
		case <-land:
			return end(f), true
		case <-f.Leader().Done():
			return f.Apart(func() bool { return end(f) })
		}
	}
	var wg sync.WaitGroup
	leave := func() { _, _, _ = s.group.Do(ctx, "k", work) }
	stay := func() {
		if whole, joined, err := s.group.Do(t.Context(), "k", work); err != nil || !whole {
			t.Errorf("round %d: who stayed got %v (joined %v), %v; want a whole result", round, whole, joined, err)
		}
	}
	wg.Go(leave)
	wg.Go(leave)
	wg.Go(leave)
	if round%4 == 0 {
		wg.Go(stay)
	}
	wg.Go(cancel)
	wg.Go(func() {
		if round%2 == 0 {
			<-ctx.Done() // the newcomer at that very instant
		}
		close(land)
		stay()
	})
	wg.Wait()
}
