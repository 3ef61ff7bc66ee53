package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/getorprime/getorprime/internal/origin"
)

// outageBudget is the Redis budget of caches in an outage: the default.
const outageBudget = 500 * time.Millisecond

// redisOutage cuts the way to Redis, heals it, and slows it down.
func redisOutage() *Scenario {
	return &Scenario{
		Name:     "redis-outage",
		About:    "the way to Redis is cut for two seconds, then silent for one, then slow for one, then well again",
		Defaults: Options{Strategies: []string{"none", "getorprime"}, Processes: 4, Load: 50 * time.Millisecond, TTL: time.Second, Duration: 7 * time.Second},
		Faults:   true,
		Budget:   outageBudget,
		Run: func(ctx context.Context, s *Stage) (*Outcome, error) {
			at := func(d time.Duration, do func()) event {
				return event{d, func(context.Context) error { do(); return nil }}
			}
			heal := func(d time.Duration) event {
				return event{d, func(context.Context) error { return s.proxy.Heal() }}
			}
			o, err := s.steady(ctx, 1,
				at(time.Second, s.proxy.Cut), heal(3*time.Second),
				at(3500*time.Millisecond, s.proxy.BlackHole), heal(4500*time.Millisecond),
				at(5*time.Second, func() { s.proxy.SetDelay(150*time.Millisecond, 150*time.Millisecond) }),
				at(6*time.Second, func() { s.proxy.SetDelay(0, 0) }))
			if err == nil {
				o.Bound = 2*outageBudget + 2*s.Options.Load + 2*time.Second
			}
			return o, err
		},
		Promises: []Promise{
			{"G7 nobody hangs", func(o *Outcome) bool { return o.Slowest <= o.Bound }},
			{"G7 no errors", func(o *Outcome) bool { return o.Errors == 0 }},
			{"loads bounded", func(o *Outcome) bool { return o.Loads <= o.Calls/2 }},
		},
		Verdict: func(r *Row) string {
			return fmt.Sprintf("%s for %s; the slowest took %.0f ms", count(r.Loads, "load"), count(r.Calls, "call"), r.MaxMS) + failedWords(r)
		},
	}
}

// lostMessages loses what is published while callers wait for it.
func lostMessages() *Scenario {
	return &Scenario{
		Name:     "lost-messages",
		About:    "all callers want one absent key, and every wake-up message that Redis publishes is lost",
		Defaults: Options{Strategies: []string{"getorprime"}, Load: 500 * time.Millisecond},
		Faults:   true,
		Run: func(ctx context.Context, s *Stage) (*Outcome, error) {
			s.proxy.LoseMessages(true)
			return s.Herd(ctx, "lost", s.Options.Load, origin.Works)
		},
		Promises: []Promise{oneLoad, noErrors, equal, {"one poll later at most", func(o *Outcome) bool { return o.Wake != nil && *o.Wake <= 2*pollSlack }}},
		Verdict:  herdVerdict,
	}
}
