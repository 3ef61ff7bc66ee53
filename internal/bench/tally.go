package bench

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/getorprime/getorprime/internal/bench/monotime"
)

// step is how finely the course of a run is drawn.
const step = 100 * time.Millisecond

// maxSample is how many durations of calls are kept, each as likely to be.
const maxSample = 10_000

// tally adds up what some callers see.
type tally struct {
	result
	start monotime.Instant
}

// seen is what one caller got of one call.
type seen struct {
	start, end monotime.Instant
	err        error
	stale      bool
	age        time.Duration
	blocked    bool
}

func (t *tally) add(c seen) {
	t.Calls++
	count := func(steps *[]int, at monotime.Instant) {
		n := max(0, int(at.Sub(t.start)/step))
		for len(*steps) <= n {
			*steps = append(*steps, 0)
		}
		(*steps)[n]++
	}
	count(&t.Began, c.start)
	count(&t.Ended, c.end)
	if c.err != nil {
		if t.Errors++; t.Errors == 1 {
			t.FirstError = c.err.Error()
		}
		count(&t.Failed, c.end)
	}
	if c.stale {
		t.Stale++
		count(&t.Staled, c.end)
	}
	if c.blocked {
		t.Blocked++
	}
	t.Oldest, t.Last = max(t.Oldest, c.age), max(t.Last, c.end)
	t.time(c.end.Sub(c.start))
}

// time keeps a duration with the chance that all others have (Vitter, "Random sampling with a reservoir", 1985, algorithm R).
func (t *tally) time(d time.Duration) {
	t.Slowest = max(t.Slowest, d)
	if len(t.Latencies) < maxSample {
		t.Latencies = append(t.Latencies, d)
	} else if n := rand.IntN(t.Calls); n < maxSample {
		t.Latencies[n] = d
	}
}

// join adds what other callers saw.
func (r *result) join(o *result) {
	r.Calls += o.Calls
	r.Errors += o.Errors
	r.Stale += o.Stale
	r.Blocked += o.Blocked
	if r.FirstError == "" {
		r.FirstError = o.FirstError
	}
	r.Answers, r.Loads = append(r.Answers, o.Answers...), append(r.Loads, o.Loads...)
	r.Latencies = append(r.Latencies, o.Latencies...)
	r.Oldest, r.Slowest, r.Last = max(r.Oldest, o.Oldest), max(r.Slowest, o.Slowest), max(r.Last, o.Last)
	r.Began, r.Ended = plus(r.Began, o.Began), plus(r.Ended, o.Ended)
	r.Failed, r.Staled = plus(r.Failed, o.Failed), plus(r.Staled, o.Staled)
}

// plus adds number by number; the shorter one goes on with zeros.
func plus(a, b []int) []int {
	if len(a) < len(b) {
		a, b = b, a
	}
	sum := slices.Clone(a)
	for i, n := range b {
		sum[i] += n
	}
	return sum
}
