package lock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/getorprime/getorprime/lock"
)

// Turns says how the callers of a worker take turns on one lock.
type Turns struct {
	Lock    string
	Opts    lock.AcquireOptions
	At      time.Time // when they begin
	Callers int
	Turns   int           // of each caller
	Hold    time.Duration // how long a turn takes
}

// Turn is one of them.
type Turn struct{ Asked, Had, Gave time.Time }

// Turns has as many callers take turns.
func (w *worker) Turns(o Turns, all *[]Turn) error {
	<-time.After(time.Until(o.At))
	var mu sync.Mutex
	var wg sync.WaitGroup
	failed := make(chan error, o.Callers)
	for range o.Callers {
		wg.Go(func() {
			for range o.Turns {
				turn, err := w.turn(&o)
				if err != nil {
					failed <- err
					return
				}
				mu.Lock()
				*all = append(*all, turn)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	close(failed)
	return <-failed
}

func (w *worker) turn(o *Turns) (turn Turn, err error) {
	ctx := context.Background()
	turn.Asked = time.Now()
	h, err := w.locker.Acquire(ctx, o.Lock, &o.Opts)
	if err != nil {
		return turn, err
	}
	turn.Had = time.Now()
	<-time.After(o.Hold)
	turn.Gave = time.Now()
	return turn, h.Release(ctx)
}

// TestFairness has the callers of several processes take four turns each. Nobody
// waits for much longer than it takes all to have one turn.
func TestFairness(t *testing.T) {
	const processes, callers, turns, hold = 4, 8, 4, 5 * time.Millisecond
	for _, holders := range []int{1, 3} {
		t.Run(places(holders), func(t *testing.T) {
			f := newFleet(t, processes, 0)
			o := Turns{
				Lock: "a", Opts: lock.AcquireOptions{Holders: holders}, At: time.Now().Add(100 * time.Millisecond),
				Callers: callers, Turns: turns, Hold: hold,
			}
			all := f.turns(o)
			slices.SortFunc(all, func(a, b Turn) int { return a.Had.Compare(b.Had) })
			wantPlaces(t, all, holders)

			total := all[len(all)-1].Gave.Sub(all[0].Asked)
			ideal := total / turns // every other caller once
			var worst time.Duration
			for _, turn := range all {
				worst = max(worst, turn.Had.Sub(turn.Asked))
			}
			t.Logf("%d turns in %v: longest wait %v, which is %.2f of the ideal one", len(all), total, worst, float64(worst)/float64(ideal))
			if worst > 2*ideal+slack/2 {
				t.Errorf("somebody waited for %v, where each turn of all takes %v", worst, ideal)
			}
			// A place that is free while somebody waits is a message that was lost.
			if most := time.Duration(len(all)/holders) * (hold + 2*time.Millisecond + slack/20); total > most {
				t.Errorf("%d turns of %v took %v, want at most %v", len(all), hold, total, most)
			}
		})
	}
}

// turns has all workers take turns, and returns them.
func (f *fleet) turns(o Turns) (all []Turn) {
	f.Helper()
	each := make([][]Turn, len(f.workers))
	for i, call := range f.all("Turns", o, func(i int) any { return &each[i] }) {
		f.workers[i].Await(call)
		all = append(all, each[i]...)
	}
	if want := o.Callers * o.Turns * len(f.workers); len(all) != want {
		f.Fatalf("%d turns, want %d", len(all), want)
	}
	return all
}

// wantPlaces fails if more than so many held the lock at a time. The turns are in
// the order of their beginning.
func wantPlaces(t *testing.T, all []Turn, holders int) {
	t.Helper()
	for i, turn := range all {
		inside := 1
		for _, before := range all[:i] {
			if before.Gave.After(turn.Had) {
				inside++
			}
		}
		if inside > holders {
			t.Fatalf("%d at a time, where there are %d places", inside, holders)
		}
	}
}
