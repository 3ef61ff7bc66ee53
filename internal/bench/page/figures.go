package page

import (
	"fmt"
	"math"
	"slices"
)

// figureRow is a figure of one strategy, which has the key with that index in its section.
type figureRow struct {
	Figure
	key  key
	row  int
	name string // of the strategy
}

// figureRows returns the figures of a section, those of one name together, in the order in which the names first appear.
func figureRows(s Section, keys *keyring) []figureRow {
	var rows []figureRow
	var names []string
	for i, r := range s.Rows {
		for _, f := range r.Figures {
			if !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
			rows = append(rows, figureRow{f, keys.of(r), i, r.Strategy})
		}
	}
	slices.SortStableFunc(rows, func(a, b figureRow) int { return slices.Index(names, a.Name) - slices.Index(names, b.Name) })
	return rows
}

// figureTable holds what formulas predict beside what was measured; nil if the section has no figures.
func figureTable(s Section, keys *keyring) *table {
	t := &table{
		Caption: "Predicted and measured: " + sectionName(s),
		Heads:   []head{{Name: "strategy", Text: true}, {Name: "figure", Text: true}, {Name: "predicted"}, {Name: "measured"}, {Name: "difference"}},
	}
	for _, f := range figureRows(s, keys) {
		t.Rows = append(t.Rows, tableRow{f.key, figureCells(f.Figure)})
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

func figureCells(f Figure) []cell {
	predicted, difference := missing, missing
	if f.Predicted != nil {
		predicted, difference = withUnit(*f.Predicted, f.Unit), ratio(f.Measured, *f.Predicted)
	}
	return []cell{{Text: f.Name, Left: true}, {Text: predicted}, {Text: withUnit(f.Measured, f.Unit)}, {Text: difference}}
}

func withUnit(v float64, unit string) string {
	if unit == "" || !finite(v) {
		return quantity(v)
	}
	return quantity(v) + " " + unit
}

// percentLimit is where the bars of [figureChart] end: one that is far off would press the others to the ground.
const percentLimit = 250

// figureChart draws what was measured in per cent of what was predicted, where there is something to compare; its numbers are in the
// table before it.
func figureChart(s Section, keys *keyring) *chart {
	c := &chart{Title: "Measured in per cent of predicted", Kind: "bars", Y: "% of predicted", Mark: 100}
	c.say("Bar chart of measured figures in per cent of the predicted ones. All numbers are in the table before it.")
	for _, f := range figureRows(s, keys) {
		if f.Predicted == nil || ratio(f.Measured, *f.Predicted) == missing {
			continue
		}
		percent := 100 * (f.Measured / *f.Predicted)
		if !finite(percent) {
			continue
		}
		text := quantity(math.Round(percent)) + " %"
		if percent > percentLimit {
			c.Limit = percentLimit
		}
		c.Bars = append(c.Bars, bar{f.row, f.Name + " · " + f.name, percent, text})
		c.say(" %s, %s: %s.", f.Name, f.name, text)
	}
	if len(c.Bars) == 0 {
		return nil
	}
	if c.Limit > 0 {
		c.Title += fmt.Sprintf(" (bars end at %d %%)", percentLimit)
	}
	c.Height = barsFrame + foldedHeight*len(c.Bars)
	return c
}
