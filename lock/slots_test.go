package lock_test

import (
	"context"
	"errors"
	"fmt"
	"net/rpc"
	"testing"
	"time"

	"github.com/getorprime/getorprime/lock"
)

// Schedule says when a worker runs a job, by a clock of its own.
type Schedule struct {
	Job   string
	Opts  lock.RunOptions
	Named bool          // whether the occasion names the slot
	Start time.Time     // of the first minute
	Off   time.Duration // how much the worker's clock is ahead
	Every time.Duration // a minute
	Times int
	Takes time.Duration // a job
}

// Ran is a run of the job.
type Ran struct {
	Minute int // in which it was due, by the clock of who ran it
	At     time.Time
}

// Keep keeps a schedule, and returns the job's runs.
func (w *worker) Keep(s Schedule, ran *[]Ran) error {
	for i := range s.Times {
		<-time.After(time.Until(s.Start.Add(time.Duration(i)*s.Every - s.Off)))
		opts := s.Opts
		if s.Named {
			opts.Slot = fmt.Sprint("minute ", i)
		}
		err := w.locker.Run(context.Background(), s.Job, func(context.Context) error {
			*ran = append(*ran, Ran{i, time.Now()})
			<-time.After(s.Takes)
			return nil
		}, &opts)
		if err = ignoring(err, lock.ErrNotAcquired, lock.ErrAlreadyRan); err != nil {
			return errors.Join(err, fmt.Errorf("minute %d", i))
		}
	}
	return nil
}

// TestOneRunAMinute has five processes run a job each minute, which here lasts for
// less than a second, by clocks that are up to a fifth of it apart. Slots are kept
// apart by their names, whatever the clocks say; without names by MinHold, as long
// as it is more than what the clocks differ by.
func TestOneRunAMinute(t *testing.T) {
	t.Parallel()
	const nodes, minute, off, times = 5, 800 * time.Millisecond, 80 * time.Millisecond, 4
	const short, long, remembered = 2 * time.Millisecond, 50 * time.Millisecond, 20 * time.Second
	tests := []struct {
		name  string
		named bool
		opts  lock.RunOptions
		takes time.Duration
		most  int // runs a minute
	}{
		{"slot", true, lock.RunOptions{SlotTTL: remembered}, short, 1},
		{"slot, waiting", true, lock.RunOptions{SlotTTL: remembered, Wait: -1}, long, 1},
		{"min hold", false, lock.RunOptions{MinHold: minute * 3 / 5}, short, 1},
		{"both", true, lock.RunOptions{SlotTTL: remembered, MinHold: minute * 3 / 5}, short, 1},
		{"neither", false, lock.RunOptions{}, short, nodes},
	}
	f := newFleet(t, nodes, 0)
	start := time.Now().Add(minute)
	ran := make([][nodes][]Ran, len(tests))
	calls := make([][]*rpc.Call, len(tests))
	for i, tt := range tests {
		for n, m := range f.workers {
			calls[i] = append(calls[i], m.Go("Keep", Schedule{
				Job: tt.name, Opts: tt.opts, Named: tt.named, Start: start, Every: minute, Times: times, Takes: tt.takes,
				Off: off * time.Duration(2*n-nodes+1) / (nodes - 1),
			}, &ran[i][n]))
		}
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var runs [times]int
			for n, m := range f.workers {
				m.Await(calls[i][n])
				for _, r := range ran[i][n] {
					runs[r.Minute]++
				}
			}
			for minute, n := range runs {
				if n < 1 || n > tt.most || tt.most > 1 && n == 1 {
					t.Errorf("minute %d: %d runs; want one, and more only without slot and min hold: %v", minute, n, ran[i])
				}
			}
		})
	}
}
