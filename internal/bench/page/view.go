package page

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// view is what the template walks: all words chosen and all figures written.
type view struct {
	Policy   string
	Style    template.CSS
	Script   template.JS
	Title    string
	When     string
	Verdict  verdict
	Keys     []key
	Overview []overviewRow
	Sections []section
	Facts    []fact
	Command  string
}

// fact is a line of the page's end.
type fact struct{ Name, Text string }

// overviewRow says what each strategy, in the order of the keys, made of one scenario.
type overviewRow struct {
	ID, Name string
	Cells    []badge
}

// badge is an outcome in a word. State is "kept", "broken" or "", and never the only sign of it.
type badge struct {
	State, Text string
	Ours        bool
}

// section is a scenario on the page.
type section struct {
	ID, Name, Title, Server string
	Keys                    []key
	Table                   table
	Verdicts                []strategyVerdict
	Promises                []promiseVerdict
	Figures                 *table
	Figure                  *chart // drawn beside Figures
	Charts                  []*chart
	Numbers                 sectionNumbers
}

// sectionNumbers is what the script draws a section's charts from.
type sectionNumbers struct {
	Keys   []key    `json:"keys"`
	Charts []*chart `json:"charts"`
}

func newView(d *Data) *view {
	keys := newKeys(d.Sections)
	columns := oursFirst(keys.all, func(k key) bool { return k.Ours })
	v := &view{
		Policy: policy, Style: template.CSS(style), Script: template.JS(script),
		Title: cmp.Or(d.Title, "Bench report"), When: d.When, Verdict: newVerdict(d), Keys: columns, Command: d.Command,
	}
	for i, s := range d.Sections {
		id := fmt.Sprintf("s%d", i+1)
		v.Sections = append(v.Sections, newSection(id, s, keys))
		v.Overview = append(v.Overview, overviewRow{id, sectionName(s), overviewCells(s, columns)})
	}
	for _, f := range []fact{{"Machine", d.Machine}, {"Versions", d.Versions}, {"When", d.When}} {
		if f.Text != "" {
			v.Facts = append(v.Facts, f)
		}
	}
	return v
}

func newSection(id string, s Section, keys *keyring) section {
	out := section{
		ID: id, Name: sectionName(s), Title: s.lede(), Server: s.Server, Table: rowTable(s, keys),
		Promises: promiseVerdicts(s.Rows), Figures: figureTable(s, keys), Figure: figureChart(s, keys), Charts: charts(s, keys),
	}
	for _, r := range s.Rows {
		out.Keys = append(out.Keys, keys.of(r))
		out.Verdicts = append(out.Verdicts, newStrategyVerdict(r, keys.of(r)))
	}
	out.Verdicts = oursFirst(out.Verdicts, func(v strategyVerdict) bool { return v.Key.Ours })
	out.Numbers = sectionNumbers{out.Keys, slices.Clone(out.Charts)}
	if out.Figure != nil {
		out.Numbers.Charts = append(out.Numbers.Charts, out.Figure)
	}
	for i, c := range out.Numbers.Charts {
		c.ID = fmt.Sprintf("%s-%d", id, i)
	}
	return out
}

func sectionName(s Section) string { return cmp.Or(s.Scenario, s.Title, "Scenario") }

// lede is the title without the name that stands above it.
func (s Section) lede() string {
	if s.Scenario == "" {
		return ""
	}
	if s.Title == s.Scenario {
		return ""
	}
	return strings.TrimPrefix(s.Title, s.Scenario+": ")
}

// overviewCells has a cell for each key. A strategy that has several rows in a section is judged by all of them.
func overviewCells(s Section, keys []key) []badge {
	var cells []badge
	for _, k := range keys {
		cell := badge{Text: missing, Ours: k.Ours}
		for _, r := range s.Rows {
			if r.Strategy == k.Name && cell.State != "broken" {
				cell = newBadge(r)
			}
		}
		cells = append(cells, cell)
	}
	return cells
}

// oursFirst returns all with this module's own strategies before the others.
func oursFirst[T any](all []T, ours func(T) bool) []T {
	rank := func(v T) int {
		if ours(v) {
			return 0
		}
		return 1
	}
	return slices.SortedStableFunc(slices.Values(all), func(a, b T) int { return rank(a) - rank(b) })
}

func newBadge(r Row) badge {
	promises := promisesOf(r)
	broken := brokenOf(promises)
	switch {
	case len(promises) == 0:
		return badge{"", "no promises", r.Ours}
	case len(broken) == 0:
		return badge{"kept", "kept", r.Ours}
	case len(promises) == 1:
		return badge{"broken", "broken", r.Ours}
	}
	return badge{"broken", fmt.Sprintf("%d of %d broken", len(broken), len(promises)), r.Ours}
}
