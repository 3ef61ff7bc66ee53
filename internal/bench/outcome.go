package bench

import (
	"math"
	"slices"
	"time"

	"github.com/getorprime/getorprime/internal/bench/monotime"
)

// Outcome is what was seen of one strategy in one run.
type Outcome struct {
	// Calls counts the calls, Errors those that ended with an error; FirstError is one of theirs.
	Calls, Errors int
	FirstError    string
	// Loads counts the loads that began, over all processes.
	Loads int
	// Latencies are the times from a call's start to its end, sorted: all of them, or a sample. Slowest is the longest of all.
	Latencies []time.Duration
	Slowest   time.Duration
	// Bound is how long a caller may take at most.
	Bound time.Duration
	// Wake is the time from the end of the first load to the last caller's return; nil if no load ended with a value.
	Wake *time.Duration
	// Answers are the digests of the values that callers of a herd got, each once; Loaded holds those of all values loaded.
	Answers, Loaded map[string]bool
	// Stale counts the answers that were older than what had been invalidated before the call; nil where nothing was.
	Stale *int
	stale int
	// Blocked counts the calls that waited for a load.
	Blocked int
	// Oldest is the age of the oldest answer, since its load began.
	Oldest time.Duration
	// Commands counts the commands that Redis executed meanwhile; nil where the server does not count.
	Commands *int64
	// Figures are what the scenario measured beside, and what theory says.
	Figures []Figure
	// Series is the course of the run.
	Series *Series
}

// Figure is something that a scenario measured.
type Figure struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// Predicted is what a closed form says; nil if there is none.
	Predicted *float64 `json:"predicted,omitempty"`
	Measured  float64  `json:"measured"`
}

// Series is the course of a run: one number for each step of time from the start on. Loads are those begun in the step, Calls, Errors and
// Stale those of calls that ended in it, Waiting the calls under way at its end, Commands those that Redis executed in it.
type Series struct {
	StepMS   float64 `json:"step_ms"`
	Loads    []int   `json:"loads"`
	Calls    []int   `json:"calls"`
	Errors   []int   `json:"errors"`
	Waiting  []int   `json:"waiting"`
	Stale    []int   `json:"stale"`
	Commands []int64 `json:"commands"`
}

// newOutcome says what the workers saw of calls from start on, while loads began at those instants.
func newOutcome(sum *result, start monotime.Instant, loads []loadAt) *Outcome {
	slices.Sort(sum.Latencies)
	o := &Outcome{
		Calls: sum.Calls, Errors: sum.Errors, FirstError: sum.FirstError, Blocked: sum.Blocked, Oldest: sum.Oldest,
		Latencies: sum.Latencies, Slowest: sum.Slowest, stale: sum.Stale,
		Answers: map[string]bool{}, Loaded: map[string]bool{}, Series: newSeries(sum, start, loads),
	}
	for _, a := range sum.Answers {
		o.Answers[a] = true
	}
	var loaded monotime.Instant
	for _, l := range sum.Loads {
		if l.Done() {
			o.Loaded[l.Digest] = true
			loaded = earlier(loaded, l.End)
		}
	}
	if loaded != 0 {
		wake := sum.Last.Sub(loaded)
		o.Wake = &wake
	}
	return o
}

// lookedForStale says that there may have been stale answers.
func (o *Outcome) lookedForStale() { o.Stale = &o.stale }

func newSeries(sum *result, start monotime.Instant, loads []loadAt) *Series {
	none := make([]int, len(sum.Ended))
	s := &Series{
		StepMS: float64(step) / float64(time.Millisecond), Loads: slices.Clone(none), Waiting: slices.Clone(none),
		Calls: plus(sum.Ended, none), Errors: plus(sum.Failed, none), Stale: plus(sum.Staled, none),
	}
	under := 0
	for i, began := range plus(sum.Began, none) {
		under += began - sum.Ended[i]
		s.Waiting[i] = under
	}
	for _, l := range loads {
		if n := int(l.at.Sub(start) / step); n >= 0 && n < len(s.Loads) {
			s.Loads[n]++
		}
	}
	return s
}

// earlier returns the earlier of two instants, of which the first may be unset.
func earlier(a, b monotime.Instant) monotime.Instant {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// quantile returns the nearest-rank q-quantile, 0 < q ≤ 1, of sorted times, 0 of none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}
