package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/getorprime/getorprime/internal/bench/monotime"
	"github.com/getorprime/getorprime/internal/origin"
)

// pollSlack is what a caller may wait beyond a lease that nobody gave back: a poll, and a turn at the processor.
const pollSlack = 250 * time.Millisecond

// leaderKilled kills the process that loads.
func leaderKilled() *Scenario {
	return &Scenario{
		Name:     "leader-killed",
		About:    "the process that loads is killed with SIGKILL halfway",
		Defaults: Options{Strategies: []string{"none", "classic", "getorprime"}, Callers: 16, Load: 400 * time.Millisecond},
		Run: func(ctx context.Context, s *Stage) (*Outcome, error) {
			o, err := s.Herd(ctx, "killed", s.Options.Load, origin.Works, event{s.Options.Load / 2, func(ctx context.Context) error {
				i, err := s.leader(ctx)
				if err != nil {
					return err
				}
				return s.kill(i)
			}})
			if err == nil {
				o.Bound = s.Options.Load/2 + leaseSlack + pollSlack + s.Options.Load
			}
			return o, err
		},
		Promises: []Promise{
			{"G1 one load per lease lost", func(o *Outcome) bool { return o.Loads <= 2 }},
			noErrors,
			{"served within lease + 250 ms", func(o *Outcome) bool { return o.Slowest <= o.Bound }},
		},
		Verdict: func(r *Row) string {
			return fmt.Sprintf("%s; the slowest of the others was served after %.0f ms", count(r.Loads, "load"), r.MaxMS) + failedWords(r)
		},
	}
}

// leaderPaused stops the process that loads for longer than its lease; meanwhile the data changes.
func leaderPaused() *Scenario {
	return &Scenario{
		Name:     "leader-paused",
		About:    "the process that loads is stopped for longer than its lease, the data changes, and it goes on",
		Defaults: Options{Strategies: []string{"none", "classic", "lock-only", "getorprime"}, Callers: 8, Load: 300 * time.Millisecond, Duration: 4 * time.Second},
		Run:      runPaused,
		Promises: []Promise{noStale, {"nobody stuck", func(o *Outcome) bool { return o.Slowest <= o.Bound }}},
		Verdict:  staleVerdict,
	}
}

// runPaused reads at a steady rate. The first load is stopped halfway; the record is changed and invalidated; others load the new
// version; then the first load goes on, with the old version, and stores it if nobody refuses.
func runPaused(ctx context.Context, s *Stage) (*Outcome, error) {
	half := s.Options.Load / 2
	o, err := s.Drive(ctx, drive{Keys: 1, Rate: s.Options.Rate, Callers: 4096, Duration: s.Options.Duration, Load: s.Options.Load}, event{half, func(ctx context.Context) error {
		i, err := s.leader(ctx)
		if err != nil {
			return err
		}
		if err := s.pause(i); err != nil {
			return err
		}
		defer s.resume(i)
		_ = monotime.Sleep(ctx, half)
		if err := s.change(ctx, 0); err != nil {
			return err
		}
		return monotime.Sleep(ctx, leaseSlack+400*time.Millisecond)
	}})
	if err == nil {
		o.Bound = leaseSlack + time.Second + 2*s.Options.Load + pollSlack + time.Second
		o.lookedForStale()
	}
	return o, err
}

func staleVerdict(r *Row) string {
	stale := 0
	if r.StaleReads != nil {
		stale = *r.StaleReads
	}
	return fmt.Sprintf("%d stale of %s; %s", stale, count(r.Calls, "read"), count(r.Loads, "load")) + failedWords(r)
}

// flush empties the whole server, if it is our own or we may.
func (s *Stage) flush(ctx context.Context) error {
	if s.server.embedded == nil && !s.Options.Destructive {
		return nil
	}
	return s.server.admin.FlushAll(ctx).Err()
}

// invalidateStorm changes the data all the time while it is read.
func invalidateStorm() *Scenario {
	return &Scenario{
		Name:     "invalidate-storm",
		About:    "the data changes all the time, each change is followed by an invalidation, and reads after that must not see what was before",
		Defaults: Options{Processes: 8, Callers: 8, Load: 3 * time.Millisecond, Duration: 3 * time.Second},
		Run: func(ctx context.Context, s *Stage) (*Outcome, error) {
			o, err := s.Drive(ctx, drive{
				Keys: 16, Callers: s.Options.Callers, Duration: s.Options.Duration, Load: s.Options.Load, Writes: 100, ByHand: true,
			}, event{s.Options.Duration / 2, s.flush})
			if err == nil {
				o.lookedForStale()
			}
			return o, err
		},
		Promises: []Promise{noStale, noErrors},
		Verdict:  staleVerdict,
	}
}
