package bench

import (
	"context"
	"fmt"
	"time"
)

// warmLoad is how long a load takes while workers warm up: long enough that callers meet, whatever --load is.
const warmLoad = 20 * time.Millisecond

// cold is the stampede on an absent key: every caller of every process wants it at one instant.
type cold struct{}

func (cold) Name() string { return "cold" }

func (cold) Title(o *Options) string {
	return fmt.Sprintf("cold: %s × %s on one absent key, a load takes %v; %s", count(o.Processes, "process"), count(o.Callers, "caller"), o.Load, count(o.Runs, "run"))
}

// Setup has the workers meet on another key: first absent, so that whatever a strategy sets up for waiting is there, then present, so
// that every caller has a connection.
func (cold) Setup(ctx context.Context, s *Stage) error {
	for range 2 {
		o, err := s.Herd(ctx, "warm", warmLoad)
		if err != nil {
			return err
		}
		if o.Errors == len(o.Latencies) {
			return fmt.Errorf("no caller got a value while warming up: %s", o.FirstError)
		}
	}
	return nil
}

func (cold) Run(ctx context.Context, s *Stage) (*Outcome, error) {
	return s.Herd(ctx, "cold", s.Options.Load)
}

func (cold) Promises() []Promise {
	return []Promise{
		{"G1 one load", func(o *Outcome) bool { return o.Loads == 1 }},
		{"G3/G7 no errors", func(o *Outcome) bool { return o.Errors == 0 }},
		{"equal answers", equalAnswers},
		{"nobody stuck", nobodyStuck},
	}
}

// equalAnswers holds if there was one answer, and a load made it.
func equalAnswers(o *Outcome) bool {
	for answer := range o.Answers {
		return len(o.Answers) == 1 && o.Loaded[answer]
	}
	return false
}

func nobodyStuck(o *Outcome) bool { return o.Latencies[len(o.Latencies)-1] <= o.Bound }

func (cold) Verdict(r Row) string {
	words := fmt.Sprintf("%s: %s for %s; ", r.Strategy, count(r.Loads, "load"), count(r.Processes*r.Callers, "caller"))
	switch {
	case r.WakeMS == nil:
		words += "no load ended with a value"
	case r.Loads == 1:
		words += fmt.Sprintf("last caller back %.1f ms after the load ended", *r.WakeMS)
	default:
		words += fmt.Sprintf("last caller back %.1f ms after the first load ended", *r.WakeMS)
	}
	if r.Errors > 0 {
		words += "; " + count(r.Errors, "caller") + " failed"
	}
	return words
}
