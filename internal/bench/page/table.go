package page

import "slices"

// table is a table with a first column of strategies.
type table struct {
	Caption string
	Heads   []head
	Rows    []tableRow
}

// head heads a column. Text columns are aligned to the left.
type head struct {
	Name, Unit string
	Text       bool
}

// tableRow is a row of a table; its cells stand under the heads after the first.
type tableRow struct {
	Key   key
	Cells []cell
}

// cell is a cell of a table. State is that of a [badge], "" for a figure.
type cell struct {
	Text, State string
	Left        bool
}

// column is a column of the table of figures; it is left out where no row has the figure.
type column struct {
	name, unit string
	has        func(Row) bool
	text       func(Row) string
}

func always(Row) bool { return true }

var columns = []column{
	{"loads", "", always, func(r Row) string { return count(r.Loads) }},
	{"calls", "", always, func(r Row) string { return count(r.Calls) }},
	{"errors", "", always, func(r Row) string { return count(r.Errors) }},
	{"stale reads", "", func(r Row) bool { return r.StaleReads != nil }, func(r Row) string { return optionalCount(r.StaleReads) }},
	{"p50", "ms", always, func(r Row) string { return milliseconds(r.P50MS) }},
	{"p90", "ms", always, func(r Row) string { return milliseconds(r.P90MS) }},
	{"p99", "ms", always, func(r Row) string { return milliseconds(r.P99MS) }},
	{"p99.9", "ms", always, func(r Row) string { return milliseconds(r.P999MS) }},
	{"max", "ms", always, func(r Row) string { return milliseconds(r.MaxMS) }},
	{"wake", "ms", func(r Row) bool { return r.WakeMS != nil }, func(r Row) string { return optionalMilliseconds(r.WakeMS) }},
	{"commands", "", func(r Row) bool { return r.RedisCommands != nil }, func(r Row) string { return optionalCount(r.RedisCommands) }},
}

// rowTable is the table of a section's figures.
func rowTable(s Section, keys *keyring) table {
	t := table{Caption: "Figures by strategy: " + sectionName(s), Heads: []head{{Name: "strategy", Text: true}, {Name: "promises", Text: true}}}
	for _, r := range s.Rows {
		b := newBadge(r)
		t.Rows = append(t.Rows, tableRow{keys.of(r), []cell{{b.Text, b.State, true}}})
	}
	for _, c := range columns {
		if !slices.ContainsFunc(s.Rows, c.has) {
			continue
		}
		t.Heads = append(t.Heads, head{Name: c.name, Unit: c.unit})
		for i, r := range s.Rows {
			t.Rows[i].Cells = append(t.Rows[i].Cells, cell{Text: c.text(r)})
		}
	}
	return t
}
