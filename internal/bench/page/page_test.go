package page_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getorprime/getorprime/internal/bench/page"
)

func write(t testing.TB, d *page.Data) string {
	t.Helper()
	var out bytes.Buffer
	if err := page.Write(&out, d); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// small is a report of one scenario with two strategies, everything in it.
func small() *page.Data {
	return &page.Data{
		Title: "Bench", Command: "prime bench --scenario cold", Machine: "4 cores, Linux", Versions: "Go 1.26", When: "today", Kept: true,
		Sections: []page.Section{{
			Scenario: "cold", Title: "cold: all at once", Server: "Redis 7.2",
			Rows: []page.Row{row("none", false), row("getorprime", true)},
		}},
	}
}

func row(name string, ours bool) page.Row {
	r := page.Row{
		Strategy: name, Ours: ours, Loads: 4, Calls: 1200, Errors: 1, StaleReads: new(3), P50MS: 100.25, P90MS: 101, P99MS: 120, P999MS: 130, MaxMS: 1234.5,
		WakeMS: new(2.125), RedisCommands: new(int64(4321)), Promises: []page.Promise{{Name: "one load", Kept: ours}, {Name: "no errors", Kept: true}},
		Verdict: name + ": 4 loads",
		Series: &page.Series{
			StepMS: 10, Loads: []int{4, 0}, Calls: []int{1200, 0, 0}, Errors: []int{0, 1}, Waiting: []int{1200, 40}, Stale: []int{3}, Commands: []int64{4000, 321},
		},
		Figures: []page.Figure{{Name: "refreshes", Unit: "each", Predicted: new(2.0), Measured: 3}, {Name: "gap", Unit: "ms", Measured: 12}},
	}
	if !ours {
		r.Broken = []string{"one load"}
	}
	return r
}

func TestVerdict(t *testing.T) {
	broke := row("getorprime", true)
	broke.Broken = []string{"no errors"}
	unnamed := row("getorprime", true)
	unnamed.Promises, unnamed.Broken = nil, []string{"unheard of"}
	sections := func(rows ...page.Row) []page.Section {
		return []page.Section{{Scenario: "cold", Rows: rows}, {Scenario: "hot", Rows: []page.Row{row("getorprime", true)}}}
	}
	tests := []struct {
		name     string
		kept     bool
		sections []page.Section
		want     []string // in this order
	}{
		{"kept", true, sections(row("getorprime", true)), []string{"verdict kept", "getorprime kept all its promises in 2 scenarios"}},
		{"one scenario", true, sections(row("getorprime", true))[:1], []string{"getorprime kept all its promises in 1 scenario<"}},
		{"the same scenario twice", true, append(sections(row("getorprime", true)), sections(row("getorprime", true))...), []string{"in 2 scenarios<"}},
		{"two of ours", true, sections(row("getorprime", true), row("getorprime-local", true)), []string{"getorprime and getorprime-local kept all their promises in 2"}},
		{"broken", false, sections(broke), []string{"verdict broken", "getorprime broke 1 promise<", `href="#s1">no errors, by getorprime in cold<`}},
		{"broken outweighs kept", true, sections(broke), []string{"verdict broken", "getorprime broke 1 promise<"}},
		{"broken though not listed", false, sections(unnamed), []string{"verdict broken", "unheard of, by getorprime in cold"}},
		{"not kept, nobody knows what", false, sections(row("getorprime", true)), []string{"verdict broken", "getorprime did not keep all promises"}},
		{"others do not count", true, sections(row("none", false)), []string{"verdict kept", "getorprime kept all its promises in 1 scenario", "broke a promise: none 1 of 1."}},
		{"without ours", true, sections(row("none", false))[:1], []string{"getorprime took no part"}},
		{"without sections", true, nil, []string{"Nothing was measured"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			html := write(t, &page.Data{Kept: tt.kept, Sections: tt.sections})
			inOrder(t, html[strings.Index(html, "<h1"):], tt.want...)
		})
	}
}

// inOrder fails unless the text has all parts, each after the one before.
func inOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		_, after, found := strings.Cut(text, part)
		if !found {
			t.Fatalf("%q is missing, or before what should come first", part)
		}
		text = after
	}
}

func TestSectionInWords(t *testing.T) {
	html := write(t, small())
	inOrder(t, html, "<main>", "All scenarios", ">cold<", "kept", "1 of 2 broken",
		"<h2 id=\"s1-title\">cold</h2>", "all at once", "Redis 7.2",
		"<caption>Figures by strategy: cold</caption>", "1 of 2 broken", ">4<", ">1,200<", ">3<", ">100.2<", ">101.0<", ">1,235<", ">2.12<", ">4,321<",
		"Strategy by strategy", "<strong>getorprime</strong>", "<p>4 loads.</p>", "<strong>none</strong>", "Broken: one load.",
		"Promise by promise", "<dt>one load</dt>", "kept by getorprime", "broken by none", "<dt>no errors</dt>", "kept by all",
		"<caption>Predicted and measured: cold</caption>", "refreshes", "2 each", "3 each", "&#43;50 %", "gap", "–", "12 ms",
		"prime bench --scenario cold", "4 cores, Linux", "Go 1.26", "today")
}

// captions finds the titles of the charts.
var captions = regexp.MustCompile(`<figcaption>([^<]*)</figcaption>`)

func titles(html string) []string {
	var found []string
	for _, match := range captions.FindAllStringSubmatch(html, -1) {
		found = append(found, match[1])
	}
	return found
}

func TestChartsAreThoseWithNumbers(t *testing.T) {
	const byTime = " over time"
	tests := []struct {
		name string
		row  page.Row
		want []string
	}{
		{"nothing", page.Row{}, nil},
		{"percentiles", page.Row{P50MS: 1}, []string{"Latency by percentile"}},
		{"percentiles that have no logarithm", page.Row{P50MS: -1, MaxMS: math.Inf(1), P99MS: math.NaN()}, nil},
		{"commands", page.Row{RedisCommands: new(int64(0))}, []string{"Commands sent to Redis"}},
		{"empty series", page.Row{Series: &page.Series{StepMS: 1}}, nil},
		{"series without a step", page.Row{Series: &page.Series{Loads: []int{1}}}, nil},
		{"series with an odd step", page.Row{Series: &page.Series{StepMS: math.NaN(), Loads: []int{1}}}, nil},
		{"loads", page.Row{Series: &page.Series{StepMS: 1, Loads: []int{0}}}, []string{"Loads from the origin" + byTime}},
		{"waiting", page.Row{Series: &page.Series{StepMS: 1, Waiting: []int{0}}}, []string{"Waiting callers" + byTime}},
		{"commands by time", page.Row{Series: &page.Series{StepMS: 1, Commands: []int64{0}}}, []string{"Commands sent to Redis" + byTime}},
		{"calls", page.Row{Series: &page.Series{StepMS: 1, Calls: []int{0}}}, []string{"Calls" + byTime}},
		{"no errors", page.Row{Series: &page.Series{StepMS: 1, Errors: []int{0}}}, nil},
		{"errors", page.Row{Series: &page.Series{StepMS: 1, Errors: []int{1}}}, []string{"Errors" + byTime}},
		{"no stale reads", page.Row{Series: &page.Series{StepMS: 1, Stale: []int{0}}}, nil},
		{"no stale reads where there might be", page.Row{StaleReads: new(0), Series: &page.Series{StepMS: 1, Stale: []int{0}}}, []string{"Stale reads" + byTime}},
		{"stale reads", page.Row{Series: &page.Series{StepMS: 1, Stale: []int{0, 1}}}, []string{"Stale reads" + byTime}},
		{"figure without prediction", page.Row{Figures: []page.Figure{{Name: "gap", Measured: 1}}}, nil},
		{"figure predicted to be 0", page.Row{Figures: []page.Figure{{Predicted: new(0.0), Measured: 1}}}, nil},
		{"figure", page.Row{Figures: []page.Figure{{Predicted: new(2.0), Measured: 1}}}, []string{"Measured in per cent of predicted"}},
		{"figure beyond all numbers", page.Row{Figures: []page.Figure{{Predicted: new(1.0), Measured: math.MaxFloat64}}}, nil},
		{"figure that is no number", page.Row{Figures: []page.Figure{{Predicted: new(2.0), Measured: math.NaN()}}}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			html := write(t, &page.Data{Sections: []page.Section{{Scenario: "x", Rows: []page.Row{tt.row, {Strategy: "bare"}}}}})
			checkForm(t, html)
			if got := titles(html); !slices.Equal(got, tt.want) {
				t.Errorf("charts %q, want %q", got, tt.want)
			}
		})
	}
}

// numbers is what the script finds in a section.
type numbers struct {
	Keys []struct {
		Name string
		Ours bool
		Slot int
		Dash []float64
	}
	Charts []struct {
		Kind, Y string
		Log     bool
		Lines   []struct {
			Key    int
			Step   float64
			Values []*float64
		}
		Bars []struct {
			Key   int
			Label string
			Value float64
			Text  string
		}
	}
}

var dataBlock = regexp.MustCompile(`(?s)<script type="application/json" id="([^"]*)">(.*?)</script>`)

// sectionNumbers reads the numbers of each section back.
func sectionNumbers(t *testing.T, html string) []numbers {
	t.Helper()
	var all []numbers
	for _, block := range dataBlock.FindAllStringSubmatch(html, -1) {
		var n numbers
		if err := json.Unmarshal([]byte(block[2]), &n); err != nil {
			t.Fatalf("%s: %v", block[1], err)
		}
		all = append(all, n)
	}
	return all
}

func TestManyStepsAreDrawnAsFewer(t *testing.T) {
	d := small()
	series := &page.Series{StepMS: 5}
	for i := range 2000 {
		series.Loads = append(series.Loads, 1)
		series.Waiting = append(series.Waiting, i)
	}
	d.Sections[0].Rows = []page.Row{{Strategy: "x", Series: series}, {Strategy: "y", Series: &page.Series{StepMS: 5, Loads: make([]int, 7)}}}
	charts := sectionNumbers(t, write(t, d))[0].Charts
	loads, waiting := charts[0].Lines[0], charts[1].Lines[0]
	if charts[0].Y != "loads per 50 ms" || len(loads.Values) != 200 || loads.Step != 50 || *loads.Values[199] != 10 {
		t.Errorf("%q: %d values a step of %v ms, want 200 sums a step of 50 ms", charts[0].Y, len(loads.Values), loads.Step)
	}
	if len(waiting.Values) != 200 || *waiting.Values[199] != 1999 {
		t.Errorf("%d values of waiting callers, want the highest of each 10", len(waiting.Values))
	}
	if got := len(charts[0].Lines[1].Values); got != 1 {
		t.Errorf("%d values of a series of 7 steps, want them in one step as the longest has it", got)
	}
}

func TestFarApartCountsAreLogarithmic(t *testing.T) {
	for most, want := range map[int]bool{20: false, 21: true} {
		d := &page.Data{Sections: []page.Section{{Rows: []page.Row{
			{Strategy: "x", Series: &page.Series{StepMS: 1, Loads: []int{0, most}}},
			{Strategy: "y", Series: &page.Series{StepMS: 1, Loads: []int{1}}},
			{Strategy: "z", Series: &page.Series{StepMS: 1, Loads: []int{0}}},
		}}}}
		if got := sectionNumbers(t, write(t, d))[0].Charts[0].Log; got != want {
			t.Errorf("1 load beside %d: logarithmic %v, want %v", most, got, want)
		}
	}
}

func TestKeysAreTheSameInAllSections(t *testing.T) {
	rows := func(names ...string) (rows []page.Row) {
		for _, name := range names {
			rows = append(rows, page.Row{Strategy: name, Ours: strings.HasPrefix(name, "our"), P50MS: 1})
		}
		return rows
	}
	d := &page.Data{Sections: []page.Section{{Rows: rows("a", "b", "ours")}, {Rows: rows("ours2", "ours", "b", "c", "a", "d", "e", "f", "g")}}}
	slots, drawn := map[string]int{}, map[string]string{}
	for _, n := range sectionNumbers(t, write(t, d)) {
		for _, k := range n.Keys {
			if slot, known := slots[k.Name]; known && slot != k.Slot {
				t.Errorf("%s has the colours %d and %d", k.Name, slot, k.Slot)
			}
			slots[k.Name] = k.Slot
			if (k.Slot == 0) != k.Ours {
				t.Errorf("%s has the colour %d; 0 is for ours, and only for ours", k.Name, k.Slot)
			}
			look, _ := json.Marshal([]any{k.Slot, k.Dash})
			if other, used := drawn[string(look)]; used && other != k.Name {
				t.Errorf("%s and %s look the same", k.Name, other)
			}
			drawn[string(look)] = k.Name
		}
	}
	if len(slots) != 9 {
		t.Errorf("%d strategies, want 9", len(slots))
	}
}

// brokenWriter fails as a full disk does.
type brokenWriter struct{}

var errFull = errors.New("no space left")

func (brokenWriter) Write([]byte) (int, error) { return 0, errFull }

func TestWriteReturnsTheWritersError(t *testing.T) {
	if err := page.Write(brokenWriter{}, small()); !errors.Is(err, errFull) {
		t.Errorf("Write = %v, want %v", err, errFull)
	}
}

func BenchmarkWrite(b *testing.B) {
	d := small()
	for i := range d.Sections[0].Rows {
		d.Sections[0].Rows[i].Series = &page.Series{StepMS: 1, Loads: make([]int, 2000), Waiting: make([]int, 2000), Commands: make([]int64, 2000)}
	}
	for b.Loop() {
		write(b, d)
	}
}
