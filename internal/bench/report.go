package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// Row is what one strategy did: figures are medians over the runs, the higher of two. The JSON keys are all there always, but for those
// that a scenario does not measure.
type Row struct {
	Scenario  string `json:"scenario"`
	Strategy  string `json:"strategy"`
	Processes int    `json:"processes"`
	// Callers is per process.
	Callers int `json:"callers"`
	// Calls counts the calls of all processes.
	Calls int `json:"calls"`
	// Loads counts the loads over all processes.
	Loads int `json:"loads"`
	// Errors counts the calls that ended with an error.
	Errors int `json:"errors"`
	// StaleReads counts the answers older than what had been invalidated before the call; nil where nothing was.
	StaleReads *int `json:"stale_reads,omitempty"`
	// Blocked counts the calls that waited for a load.
	Blocked int `json:"blocked"`
	// P50MS to MaxMS are times from a call's start to its end, in milliseconds (nearest rank).
	P50MS  float64 `json:"p50_ms"`
	P90MS  float64 `json:"p90_ms"`
	P99MS  float64 `json:"p99_ms"`
	P999MS float64 `json:"p999_ms"`
	MaxMS  float64 `json:"max_ms"`
	// WakeMS is the time from the end of the first load to the last caller's return, in milliseconds; nil if no load ended with a value.
	WakeMS *float64 `json:"wake_ms"`
	// RedisCommands counts the commands executed by the server, those inside scripts included and connection set-up excluded, whoever sent
	// them; nil where the server does not count.
	RedisCommands *int64 `json:"redis_commands"`
	// Broken names the promises that a run broke, in the scenario's order; empty if all were kept.
	Broken []string `json:"broken"`
	// Ratio is what this row's figures are times those of the strategy none in the same run; nil if that took no part.
	Ratio *Ratio `json:"ratio_to_none,omitempty"`
	// Figures are what the scenario measured beside, and what theory says.
	Figures []Figure `json:"figures,omitempty"`
	// Series is the course of the first run.
	Series *Series `json:"series,omitempty"`
	// Verdict says what the row shows in words.
	Verdict string `json:"verdict"`

	promises   []string
	firstError string
	ours       bool
}

// Ratio is figures as multiples of another row's; nil where that one has 0.
type Ratio struct {
	Loads    *float64 `json:"loads"`
	P50      *float64 `json:"p50"`
	P99      *float64 `json:"p99"`
	Commands *float64 `json:"redis_commands"`
}

// compare sets the ratios of all rows, if one is of the strategy none.
func compare(rows []*Row) {
	i := slices.IndexFunc(rows, func(r *Row) bool { return r.Strategy == "none" })
	if i < 0 {
		return
	}
	none := rows[i]
	for _, r := range rows {
		r.Ratio = &Ratio{
			Loads: over(float64(r.Loads), float64(none.Loads)), P50: over(r.P50MS, none.P50MS), P99: over(r.P99MS, none.P99MS),
		}
		if r.RedisCommands != nil && none.RedisCommands != nil {
			r.Ratio.Commands = over(float64(*r.RedisCommands), float64(*none.RedisCommands))
		}
	}
}

// over divides, to three digits after the point.
func over(a, b float64) *float64 {
	if b == 0 {
		return nil
	}
	q := math.Round(1000*a/b) / 1000
	return &q
}

// Report is the outcome of a bench.
type Report struct{ Sections []*Section }

// Section is the outcome of one scenario.
type Section struct {
	// Title says what was done, Server to what.
	Scenario, Title, Server string
	Rows                    []*Row
}

// Broken says which promises this module's own cache broke, as "G1 one load in cold"; the others break some by design.
func (r *Report) Broken() (all []string) {
	for _, s := range r.Sections {
		for _, row := range s.Rows {
			for _, p := range row.Broken {
				if row.ours {
					all = append(all, fmt.Sprintf("%s in %s", p, s.Scenario))
				}
			}
		}
	}
	return all
}

// WriteJSON writes one object with the key rows.
func (r *Report) WriteJSON(w io.Writer) error {
	rows := []*Row{}
	for _, s := range r.Sections {
		rows = append(rows, s.Rows...)
	}
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return out.Encode(struct {
		Rows []*Row `json:"rows"`
	}{rows})
}

// newRow takes the medians of a strategy's runs and holds each run against the promises.
func newRow(s *Scenario, k kind, o *Options, runs []*Outcome) *Row {
	at := func(q float64) float64 {
		return *median(runs, func(o *Outcome) *float64 { d := quantile(o.Latencies, q); return ms(&d) })
	}
	row := &Row{
		Scenario: s.Name, Strategy: k.name, Processes: o.Processes, Callers: o.Callers, ours: k.ours,
		Calls:      *median(runs, func(o *Outcome) *int { return &o.Calls }),
		Loads:      *median(runs, func(o *Outcome) *int { return &o.Loads }),
		Errors:     *median(runs, func(o *Outcome) *int { return &o.Errors }),
		StaleReads: median(runs, func(o *Outcome) *int { return o.Stale }),
		Blocked:    *median(runs, func(o *Outcome) *int { return &o.Blocked }),
		P50MS:      at(0.50), P90MS: at(0.90), P99MS: at(0.99), P999MS: at(0.999),
		MaxMS:         *median(runs, func(o *Outcome) *float64 { return ms(&o.Slowest) }),
		WakeMS:        median(runs, func(o *Outcome) *float64 { return ms(o.Wake) }),
		RedisCommands: median(runs, func(o *Outcome) *int64 { return o.Commands }),
		Broken:        broken(s, runs), Figures: figures(runs), Series: runs[0].Series,
	}
	for _, p := range s.Promises {
		row.promises = append(row.promises, p.Name)
	}
	for _, run := range runs {
		row.firstError = cmp.Or(row.firstError, firstLine(run.FirstError))
	}
	row.Verdict = s.Verdict(row)
	return row
}

// firstLine keeps a panic's stack out of the report.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// figures takes the medians of what the runs measured.
func figures(runs []*Outcome) []Figure {
	all := slices.Clone(runs[0].Figures)
	for i := range all {
		all[i].Measured = *median(runs, func(o *Outcome) *float64 { return &o.Figures[i].Measured })
	}
	return all
}

// broken returns the names of the promises that at least one run broke.
func broken(s *Scenario, runs []*Outcome) []string {
	names := []string{}
	for _, p := range s.Promises {
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

// ms returns d in milliseconds to the microsecond, nil for nil.
func ms(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	v := float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
	return &v
}
