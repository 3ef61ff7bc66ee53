package page

import (
	"fmt"
	"math"
	"strconv"
)

// chart is a chart: what the page says of it, and, as JSON, what page.js draws.
type chart struct {
	// ID is unique in the page.
	ID string `json:"-"`
	// Title heads the chart, Alt says in words what can be seen.
	Title string `json:"-"`
	Alt   string `json:"-"`
	// Numbers are its main numbers; nil where a table of the section has them.
	Numbers *table `json:"-"`
	// Height is in pixels.
	Height int `json:"-"`

	// Kind is "time", "ranks" or "bars".
	Kind string `json:"kind"`
	// X and Y label the axes, with units. Bars lie, so that Y is the label below them.
	X string `json:"x,omitempty"`
	Y string `json:"y"`
	// Level marks a chart over time of what is at one time, as against what happens in a step.
	Level bool `json:"level,omitempty"`
	// Log asks for a logarithmic axis of values; on a chart over time it begins with 0.
	Log bool `json:"log,omitempty"`
	// Ranks name the places on the x axis of a chart of ranks.
	Ranks []string `json:"ranks,omitempty"`
	Lines []line   `json:"lines,omitempty"`
	Bars  []bar    `json:"bars,omitempty"`
	// Mark, if above 0, is a value that bars are compared with; bars end at Limit, if that is above 0, whatever their value.
	Mark  float64 `json:"mark,omitempty"`
	Limit float64 `json:"limit,omitempty"`
}

// say adds to the words for those who cannot see the chart.
func (c *chart) say(format string, args ...any) { c.Alt += fmt.Sprintf(format, args...) }

// line is the line of one strategy.
type line struct {
	// Key is the index of the strategy among the section's keys.
	Key int `json:"key"`
	// Step is the distance of two values in milliseconds, on charts over time.
	Step   float64 `json:"step,omitempty"`
	Values values  `json:"values"`
}

// bar is one bar; Text is written at its end.
type bar struct {
	Key   int     `json:"key"`
	Label string  `json:"label"`
	Value float64 `json:"value"`
	Text  string  `json:"text"`
}

// values are numbers of which some, NaN, are missing: null in JSON.
type values []float64

// MarshalJSON writes an array.
func (v values) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, 2+3*len(v))
	out = append(out, '[')
	for i, x := range v {
		if i > 0 {
			out = append(out, ',')
		}
		if finite(x) {
			out = strconv.AppendFloat(out, x, 'f', -1, 64)
		} else {
			out = append(out, "null"...)
		}
	}
	return append(out, ']'), nil
}

func newValues[T int | int64](numbers []T) values {
	out := make(values, len(numbers))
	for i, n := range numbers {
		out[i] = float64(n)
	}
	return out
}

// charts returns the charts for which a section has numbers, in the order of the page.
func charts(s Section, keys *keyring) []*chart {
	all := []*chart{
		timeChart(s, keys, loads), percentileChart(s, keys), timeChart(s, keys, waiting), timeChart(s, keys, stale), timeChart(s, keys, failures),
		commandChart(s), timeChart(s, keys, commands), timeChart(s, keys, calls),
	}
	var found []*chart
	for _, c := range all {
		if c != nil {
			found = append(found, c)
		}
	}
	return found
}

// Heights of charts in pixels.
const (
	lineHeight   = 240
	barHeight    = 34
	foldedHeight = 42 // of a bar whose label takes two lines
	barsFrame    = 52 // what the axis below the bars takes
)

var percentileRanks = []string{"p50", "p90", "p99", "p99.9", "max"}

// percentileChart draws the percentiles in the table. Its axis is logarithmic, so that what is not above 0 has no place on it.
func percentileChart(s Section, keys *keyring) *chart {
	c := &chart{
		Title: "Latency by percentile", Height: lineHeight, Kind: "ranks", X: "percentile of calls", Y: "ms (log scale)", Log: true, Ranks: percentileRanks,
	}
	c.say("Line chart of latency in milliseconds at the percentiles 50, 90, 99 and 99.9 and of the longest call. All numbers are in the table above.")
	for i, r := range s.Rows {
		vs := values{r.P50MS, r.P90MS, r.P99MS, r.P999MS, r.MaxMS}
		drawn := 0
		for n, v := range vs {
			if !finite(v) || v <= 0 {
				vs[n] = math.NaN()
				continue
			}
			drawn++
		}
		if drawn == 0 {
			continue
		}
		c.Lines = append(c.Lines, line{Key: i, Values: vs})
		c.say(" %s: p50 %s, p99 %s, max %s ms.", keys.of(r).Name, milliseconds(r.P50MS), milliseconds(r.P99MS), milliseconds(r.MaxMS))
	}
	if len(c.Lines) == 0 {
		return nil
	}
	return c
}

// commandChart compares what the strategies sent to Redis; its numbers are a column of the table.
func commandChart(s Section) *chart {
	c := &chart{Title: "Commands sent to Redis", Kind: "bars", Y: "commands in all"}
	c.say("Bar chart of the commands that Redis executed, by strategy. All numbers are in the table above.")
	for i, r := range s.Rows {
		if r.RedisCommands == nil {
			continue
		}
		text := count(*r.RedisCommands)
		c.Bars = append(c.Bars, bar{i, r.Strategy, float64(*r.RedisCommands), text})
		c.say(" %s: %s.", r.Strategy, text)
	}
	if len(c.Bars) == 0 {
		return nil
	}
	c.Height = barsFrame + barHeight*len(c.Bars)
	return c
}
