package bench

import (
	"context"
	"fmt"

	"github.com/getorprime/getorprime/internal/origin"
)

// cold is the stampede on an absent key: every caller of every process wants it at one instant.
func cold() *Scenario {
	return &Scenario{
		Name:  "cold",
		About: "all callers want one absent key at one instant",
		Run: func(ctx context.Context, s *Stage) (*Outcome, error) {
			return s.Herd(ctx, "cold", s.Options.Load, origin.Works)
		},
		Promises: []Promise{oneLoad, noErrors, equal, notStuck},
		Verdict:  herdVerdict,
	}
}

// herdVerdict says what a herd came to.
func herdVerdict(r *Row) string {
	words := fmt.Sprintf("%s for %s; ", count(r.Loads, "load"), count(r.Calls, "caller"))
	switch {
	case r.WakeMS == nil:
		words += "no load ended with a value"
	case r.Loads == 1:
		words += fmt.Sprintf("last caller back %.1f ms after the load ended", *r.WakeMS)
	default:
		words += fmt.Sprintf("last caller back %.1f ms after the first load ended", *r.WakeMS)
	}
	return words + failedWords(r)
}

// failedWords says how many failed, if any did.
func failedWords(r *Row) string {
	if r.Errors == 0 {
		return ""
	}
	return "; " + count(r.Errors, "caller") + " failed"
}
