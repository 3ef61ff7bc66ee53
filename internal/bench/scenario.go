package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/getorprime/getorprime/internal/bench/monotime"
)

// Scenario is one way to press strategies: a stage, what happens on it, and the promises its outcome is held against.
//
// To add one: a file with the type, and a line in scenarios.
type Scenario interface {
	// Name is what a user calls it.
	Name() string
	// Title is the heading of its table.
	Title(o *Options) string
	// Setup brings the workers of one strategy to where the run begins; what it costs is not measured.
	Setup(ctx context.Context, s *Stage) error
	// Run lets that strategy do it and returns what was seen.
	Run(ctx context.Context, s *Stage) (*Outcome, error)
	// Promises are checked for every outcome, in this order.
	Promises() []Promise
	// Verdict says a row in words, beginning with the strategy's name.
	Verdict(r Row) string
}

// Promise is something a cache should keep in a scenario.
type Promise struct {
	Name string
	Kept func(o *Outcome) bool
}

// Outcome is what was seen of one strategy in one run.
type Outcome struct {
	// Loads counts the loads that began, over all processes.
	Loads int
	// Errors counts the callers that got an error; FirstError is one of theirs.
	Errors     int
	FirstError string
	// Latencies are the times from the common start to each caller's return, sorted.
	Latencies []time.Duration
	// Bound is how long a caller may take at most.
	Bound time.Duration
	// Wake is the time from the end of the first load to the last caller's return; nil if no load ended with a value.
	Wake *time.Duration
	// Answers are the digests of the values that callers got, each once; Loaded holds those of all values loaded.
	Answers, Loaded map[string]bool
	// Commands counts the commands that Redis executed meanwhile; nil where the server does not count.
	Commands *int64
}

// scenarios are all scenarios.
var scenarios = []Scenario{cold{}}

// ScenarioNames returns the names of all scenarios.
func ScenarioNames() []string {
	var names []string
	for _, s := range scenarios {
		names = append(names, s.Name())
	}
	return names
}

func findScenario(name string) (Scenario, error) {
	for _, s := range scenarios {
		if s.Name() == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("no scenario is named %q", name)
}

// Stage is where one strategy runs: its workers, and what the scenario may ask of the server.
type Stage struct {
	Options *Options
	fleet   *fleet
	server  *server
}

// Herd makes one call of id by every caller of every process, all released at one instant, and returns what was seen. Loads of id take
// load. Callers that are not back after the [Outcome]'s Bound are cut off with an error.
func (s *Stage) Herd(ctx context.Context, id string, load time.Duration) (*Outcome, error) {
	call := order{Do: doCall, ID: id, Callers: s.Options.Callers, Load: load, Bound: callBound(load)}
	if err := s.fleet.arm(ctx, call); err != nil {
		return nil, err
	}
	counted := s.server.countCommands(ctx)
	start := monotime.Now().Add(releaseLead(len(s.fleet.workers)))
	results, err := s.fleet.release(ctx, start, call.Bound)
	if err != nil {
		return nil, err
	}
	o := merge(results, start)
	o.Bound, o.Commands = call.Bound, counted()
	return o, nil
}
