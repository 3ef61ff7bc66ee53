package page

import (
	"fmt"
	"math"
	"slices"
)

// measure is something of which [Series] hold one number a step.
type measure struct {
	title string
	// what is counted, in the plural.
	what string
	// level marks what is at one time, as against what happens in a step: levels are not added up.
	level bool
	of    func(*Series) values
	// optional reports whether the chart of a section is left out when all is zero; nil keeps it.
	optional func(Section) bool
}

var (
	loads    = measure{title: "Loads from the origin over time", what: "loads", of: func(s *Series) values { return newValues(s.Loads) }}
	waiting  = measure{title: "Waiting callers over time", what: "callers waiting", level: true, of: func(s *Series) values { return newValues(s.Waiting) }}
	stale    = measure{title: "Stale reads over time", what: "stale reads", of: func(s *Series) values { return newValues(s.Stale) }, optional: cannotBeStale}
	failures = measure{title: "Errors over time", what: "errors", of: func(s *Series) values { return newValues(s.Errors) }, optional: func(Section) bool { return true }}
	commands = measure{title: "Commands sent to Redis over time", what: "commands", of: func(s *Series) values { return newValues(s.Commands) }}
	calls    = measure{title: "Calls over time", what: "calls", of: func(s *Series) values { return newValues(s.Calls) }}
)

func cannotBeStale(s Section) bool {
	return !slices.ContainsFunc(s.Rows, func(r Row) bool { return r.StaleReads != nil })
}

// timeChart returns nil if no row has the measure.
func timeChart(s Section, keys *keyring, m measure) *chart {
	factor := stepFactor(s.Rows, m)
	step := stepText(s.Rows, factor)
	c := &chart{Title: m.title, Height: lineHeight, Kind: "time", Y: m.what + " " + step, Level: m.level, Numbers: summaryTable(s, m, step)}
	if m.level {
		c.Y = m.what
	}
	c.say("Line chart of %s, %s.", m.title, step)
	var all []summary
	for i, r := range s.Rows {
		vs := coarsen(seriesOf(r, m), factor, m.level)
		if len(vs) == 0 {
			continue
		}
		length := r.Series.StepMS * float64(factor)
		sum := summarise(vs, length)
		all = append(all, sum)
		c.Lines = append(c.Lines, line{i, length, vs})
		c.Numbers.Rows = append(c.Numbers.Rows, tableRow{keys.of(r), sum.cells(m)})
		c.say(" %s: %s.", r.Strategy, sum.words(m))
	}
	if len(all) == 0 || m.optional != nil && m.optional(s) && allZero(all) {
		return nil
	}
	c.Log = spread(all)
	if c.Log {
		c.Y += " (log scale)"
	}
	return c
}

// seriesOf returns nil if the row has no series that can be drawn.
func seriesOf(r Row, m measure) values {
	if r.Series == nil || !finite(r.Series.StepMS) || r.Series.StepMS <= 0 {
		return nil
	}
	return m.of(r.Series)
}

// mostSteps is how many steps are drawn at most: more would lie closer than a line is wide.
const mostSteps = 240

// stepFactor returns how many steps are drawn as one: 1, 2, 5, 10 and so on.
func stepFactor(rows []Row, m measure) int {
	longest := 0
	for _, r := range rows {
		longest = max(longest, len(seriesOf(r, m)))
	}
	for power := 1; ; power *= 10 {
		for _, factor := range []int{power, 2 * power, 5 * power} {
			if longest <= factor*mostSteps {
				return factor
			}
		}
	}
}

// coarsen makes one step of factor steps: their sum, or of a level the highest.
func coarsen(vs values, factor int, level bool) values {
	var out values
	for steps := range slices.Chunk(vs, factor) {
		total := 0.0
		for _, v := range steps {
			total += v
		}
		if level {
			total = slices.Max(steps)
		}
		out = append(out, total)
	}
	return out
}

// stepText says how long a step is that is drawn, if it is as long for all strategies.
func stepText(rows []Row, factor int) string {
	var steps []float64
	for _, r := range rows {
		if r.Series != nil && !slices.Contains(steps, r.Series.StepMS) {
			steps = append(steps, r.Series.StepMS)
		}
	}
	if len(steps) != 1 {
		return "per step"
	}
	return "per " + instant(steps[0]*float64(factor))
}

// summary is a series in a few numbers; times are in milliseconds since the start.
type summary struct {
	total, most      float64
	mostAt, lastFrom float64 // when the step of the maximum began, and the last step that is not zero
	any              bool
}

func summarise(vs values, step float64) summary {
	var s summary
	for i, v := range vs {
		at := float64(i) * step
		s.total += v
		if v > s.most {
			s.most, s.mostAt = v, at
		}
		if v != 0 {
			s.lastFrom, s.any = at, true
		}
	}
	return s
}

func (s summary) words(m measure) string {
	switch {
	case !s.any:
		return "none"
	case m.level:
		return fmt.Sprintf("at most %s, at %s, and the last at %s", quantity(s.most), instant(s.mostAt), instant(s.lastFrom))
	}
	return fmt.Sprintf("%s in all, at most %s a step, at %s, and the last at %s", quantity(s.total), quantity(s.most), instant(s.mostAt), instant(s.lastFrom))
}

func summaryTable(s Section, m measure, step string) *table {
	t := &table{Caption: m.title + ": " + sectionName(s), Heads: []head{{Name: "strategy", Text: true}}}
	if m.level {
		t.Heads = append(t.Heads, head{Name: "most at one time"})
	} else {
		t.Heads = append(t.Heads, head{Name: "in all"}, head{Name: "most " + step})
	}
	t.Heads = append(t.Heads, head{Name: "most at"}, head{Name: "last at"})
	return t
}

func (s summary) cells(m measure) []cell {
	var texts []string
	if !m.level {
		texts = append(texts, quantity(s.total))
	}
	texts = append(texts, quantity(s.most))
	if s.any {
		texts = append(texts, instant(s.mostAt), instant(s.lastFrom))
	} else {
		texts = append(texts, missing, missing)
	}
	var cells []cell
	for _, text := range texts {
		cells = append(cells, cell{Text: text})
	}
	return cells
}

func allZero(all []summary) bool {
	return !slices.ContainsFunc(all, func(s summary) bool { return s.any })
}

// spread reports whether the largest strategy would press the smallest to the ground of a linear axis.
func spread(all []summary) bool {
	least, most := math.Inf(1), 0.0
	for _, s := range all {
		if s.any {
			least, most = min(least, s.most), max(most, s.most)
		}
	}
	return most > 20*least
}
