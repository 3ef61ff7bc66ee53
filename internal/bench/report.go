package bench

import (
	"cmp"
	"encoding/json"
	"io"
	"math"
	"slices"
	"time"

	"github.com/getorprime/getorprime/internal/bench/monotime"
)

// Row is what one strategy did: figures are medians over the runs, the higher of two. The JSON keys are all there always.
type Row struct {
	Scenario  string `json:"scenario"`
	Strategy  string `json:"strategy"`
	Processes int    `json:"processes"`
	// Callers is per process.
	Callers int `json:"callers"`
	// Loads counts the loads over all processes.
	Loads int `json:"loads"`
	// Errors counts the callers that got an error.
	Errors int `json:"errors"`
	// P50MS, P99MS and MaxMS are times from the common start to a caller's return, in milliseconds (nearest rank).
	P50MS float64 `json:"p50_ms"`
	P99MS float64 `json:"p99_ms"`
	MaxMS float64 `json:"max_ms"`
	// WakeMS is the time from the end of the first load to the last caller's return, in milliseconds; nil if no load ended with a value.
	WakeMS *float64 `json:"wake_ms"`
	// RedisCommands counts the commands executed by the server, those inside scripts included and connection set-up excluded, whoever sent
	// them; nil where the server does not count.
	RedisCommands *int64 `json:"redis_commands"`
	// Broken names the promises that a run broke, in the scenario's order; empty if all were kept.
	Broken []string `json:"broken"`

	firstError string
	ours       bool
}

// Report is the outcome of a bench.
type Report struct {
	// Title says what was done, Server to what.
	Title, Server string
	Rows          []Row
	verdict       func(Row) string
}

// OursBroken reports whether this module's own cache broke a promise. The others break some by design.
func (r *Report) OursBroken() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.ours && len(row.Broken) > 0 })
}

// WriteJSON writes one object with the key rows.
func (r *Report) WriteJSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out.Encode(struct {
		Rows []Row `json:"rows"`
	}{r.Rows})
}

// merge adds up what the workers saw of a herd that was released at start.
func merge(results []*result, start monotime.Instant) *Outcome {
	o := &Outcome{Answers: map[string]bool{}, Loaded: map[string]bool{}}
	var last, loaded monotime.Instant
	for _, r := range results {
		for _, end := range r.Returned {
			o.Latencies = append(o.Latencies, end.Sub(start))
			last = max(last, end)
		}
		for _, a := range r.Answers {
			o.Answers[a] = true
		}
		for _, l := range r.Loads {
			o.Loads++
			if l.Done() {
				o.Loaded[l.Digest] = true
				loaded = earlier(loaded, l.End)
			}
		}
		o.Errors += r.Errors
		o.FirstError = cmp.Or(o.FirstError, r.FirstError)
	}
	slices.Sort(o.Latencies)
	if loaded != 0 {
		wake := last.Sub(loaded)
		o.Wake = &wake
	}
	return o
}

// earlier returns the earlier of two instants, of which the first may be unset.
func earlier(a, b monotime.Instant) monotime.Instant {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// newRow takes the medians of a strategy's runs and holds each run against the promises.
func newRow(s Scenario, k kind, o *Options, runs []*Outcome) Row {
	row := Row{
		Scenario: s.Name(), Strategy: k.name, Processes: o.Processes, Callers: o.Callers, ours: k.ours,
		Loads:         *median(runs, func(o *Outcome) *int { return &o.Loads }),
		Errors:        *median(runs, func(o *Outcome) *int { return &o.Errors }),
		P50MS:         *median(runs, func(o *Outcome) *float64 { return ms(quantile(o.Latencies, 0.50)) }),
		P99MS:         *median(runs, func(o *Outcome) *float64 { return ms(quantile(o.Latencies, 0.99)) }),
		MaxMS:         *median(runs, func(o *Outcome) *float64 { return ms(quantile(o.Latencies, 1)) }),
		WakeMS:        median(runs, func(o *Outcome) *float64 { return ms(o.Wake) }),
		RedisCommands: median(runs, func(o *Outcome) *int64 { return o.Commands }),
		Broken:        broken(s, runs),
	}
	for _, run := range runs {
		row.firstError = cmp.Or(row.firstError, run.FirstError)
	}
	return row
}

// broken returns the names of the promises that at least one run broke.
func broken(s Scenario, runs []*Outcome) []string {
	names := []string{}
	for _, p := range s.Promises() {
		if slices.ContainsFunc(runs, func(o *Outcome) bool { return !p.Kept(o) }) {
			names = append(names, p.Name)
		}
	}
	return names
}

// median returns the middle one of the runs' figures, the higher of two; runs without the figure do not count. It returns nil if none
// has it. A median that occurred can be read as a count.
func median[T cmp.Ordered](runs []*Outcome, figure func(*Outcome) *T) *T {
	var all []T
	for _, run := range runs {
		if v := figure(run); v != nil {
			all = append(all, *v)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	return &all[len(all)/2]
}

// quantile returns the nearest-rank q-quantile, 0 < q ≤ 1, of sorted times.
func quantile(sorted []time.Duration, q float64) *time.Duration {
	rank := int(math.Ceil(q * float64(len(sorted))))
	return &sorted[max(rank, 1)-1]
}

// ms returns d in milliseconds to the microsecond, nil for nil.
func ms(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	v := float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
	return &v
}
