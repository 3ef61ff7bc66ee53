package bench

import (
	"context"
	"slices"
	"time"
)

// Scenario is one way to press strategies: what happens, and the promises that the outcome is held against.
//
// To add one: a file with a function that returns it, and a line in scenarios.
type Scenario struct {
	// Name is what a user calls it.
	Name string
	// About says in a line what happens.
	About string
	// Defaults are the options that are used where none are given; what they leave out too is usual's.
	Defaults Options
	// Faults says that the workers reach Redis through a proxy that can be told to fail.
	Faults bool
	// Budget is how long a call may spend in Redis before that counts as an outage. Default: so long that a swamped machine is none.
	Budget time.Duration
	// Run lets one strategy do it and returns what was seen.
	Run func(ctx context.Context, s *Stage) (*Outcome, error)
	// Promises are checked for every outcome, in this order.
	Promises []Promise
	// Verdict says what a row shows in words, which follow the strategy's name.
	Verdict func(r *Row) string
}

// usual are the defaults of scenarios that have none of their own.
var usual = Options{
	Strategies: []string{"none", "singleflight", "classic", "lock-only", "getorprime"},
	Processes:  8, Callers: 64, Load: 100 * time.Millisecond, TTL: time.Minute, Runs: 1, Seed: 1, Duration: 5 * time.Second, Rate: 400,
}

// Promise is something a cache should keep in a scenario.
type Promise struct {
	Name string
	Kept func(o *Outcome) bool
}

// scenarios are all scenarios.
var scenarios = []*Scenario{
	cold(), expiry(), early(), slowLoader(), failingLoader(), panickingLoader(), leaderKilled(), leaderPaused(),
	invalidateStorm(), massExpiry(), hotKey(), redisOutage(), lostMessages(), lockHerd(),
}

// ScenarioNames returns the names of all scenarios.
func ScenarioNames() []string {
	var names []string
	for _, s := range scenarios {
		names = append(names, s.Name)
	}
	return names
}

// mustFind finds a scenario whose name was checked.
func mustFind(name string) *Scenario {
	i := slices.IndexFunc(scenarios, func(s *Scenario) bool { return s.Name == name })
	return scenarios[i]
}

// Promises that several scenarios ask for.
var (
	oneLoad  = Promise{"G1 one load", func(o *Outcome) bool { return o.Loads == 1 }}
	noErrors = Promise{"G3/G7 no errors", func(o *Outcome) bool { return o.Errors == 0 }}
	equal    = Promise{"equal answers", equalAnswers}
	notStuck = Promise{"nobody stuck", func(o *Outcome) bool { return o.Slowest <= o.Bound }}
	noStale  = Promise{"G2 nothing stale", func(o *Outcome) bool { return o.Stale != nil && *o.Stale == 0 }}
)

// equalAnswers holds if there was one answer, and a load made it.
func equalAnswers(o *Outcome) bool {
	for answer := range o.Answers {
		return len(o.Answers) == 1 && o.Loaded[answer]
	}
	return false
}
