package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/getorprime/getorprime/internal/origin"
)

// slowLoader has loads that take longer than a lease lasts.
func slowLoader() *Scenario {
	return &Scenario{
		Name:     "slow-loader",
		About:    "one load takes longer than the lease that protects it",
		Defaults: Options{Strategies: []string{"none", "classic", "getorprime"}, Callers: 16, Load: 4 * time.Second},
		Run: func(ctx context.Context, s *Stage) (*Outcome, error) {
			return s.Herd(ctx, "slow", s.Options.Load, origin.Works)
		},
		Promises: []Promise{oneLoad, noErrors, equal, notStuck},
		Verdict:  herdVerdict,
	}
}

// failSlack is what the slowest caller of a failing load may take beyond the load: a share of it, since all callers share the machine.
const failSlack = 400 * time.Millisecond

// failingLoader has loads that fail.
func failingLoader() *Scenario {
	s := fruitless("failing-loader", "every load fails, after it took its time", origin.Fails)
	s.Promises = append(s.Promises, Promise{"everybody gets the cause", func(o *Outcome) bool { return o.Errors == o.Calls }})
	return s
}

// panickingLoader has loads that panic.
func panickingLoader() *Scenario {
	return fruitless("panicking-loader", "every load panics, after it took its time", origin.Panics)
}

// fruitless has loads that come to nothing: then all callers are told, at once, and nobody tries again before the cool-down is over.
func fruitless(name, about string, mode origin.Mode) *Scenario {
	return &Scenario{
		Name:     name,
		About:    about,
		Defaults: Options{Processes: 4, Callers: 4},
		Run: func(ctx context.Context, s *Stage) (*Outcome, error) {
			o, err := s.Herd(ctx, "broken", s.Options.Load, mode)
			if err == nil {
				o.Bound = s.Options.Load + failSlack
			}
			return o, err
		},
		Promises: []Promise{
			{"G5 one attempt", func(o *Outcome) bool { return o.Loads == 1 }},
			{"G5 told at once", func(o *Outcome) bool { return o.Slowest <= o.Bound }},
			{"G4 nobody hangs", func(o *Outcome) bool { return o.Errors == o.Calls }},
		},
		Verdict: func(r *Row) string {
			return fmt.Sprintf("%s for %s; the slowest was told after %.0f ms", count(r.Loads, "attempt"), count(r.Calls, "caller"), r.MaxMS)
		},
	}
}
