package bench

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/bench/monotime"
	"github.com/getorprime/getorprime/internal/origin"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestWorkersAddUp(t *testing.T) {
	const start = monotime.Instant(1000)
	at := func(ms int) monotime.Instant { return start.Add(time.Duration(ms) * time.Millisecond) }
	first, second := &tally{start: start}, &tally{start: start}
	first.add(seen{start: start, end: at(140)})
	first.add(seen{start: start, end: at(110), stale: true, age: time.Second})
	first.Answers, first.Loads = []string{"a"}, []origin.Load{{Start: at(1), End: at(101), Digest: "a"}, {Start: at(2), End: at(90)}}
	second.add(seen{start: at(100), end: at(220), err: errors.New("no"), blocked: true})
	second.Answers, second.Loads = []string{"a", "b"}, []origin.Load{{Start: at(5), End: at(105), Digest: "b"}, {Start: at(6)}}
	var sum result
	sum.join(&first.result)
	sum.join(&second.result)
	o := newOutcome(&sum, start, []loadAt{{at(1), 0}, {at(2), 0}, {at(150), -1}})
	if o.Calls != 3 || o.Errors != 1 || o.FirstError != "no" || o.stale != 1 || o.Blocked != 1 || o.Oldest != time.Second {
		t.Errorf("%+v", o)
	}
	if want := []time.Duration{110e6, 120e6, 140e6}; !slices.Equal(o.Latencies, want) || o.Slowest != 140e6 {
		t.Errorf("latencies %v, slowest %v; want %v", o.Latencies, o.Slowest, want)
	}
	if want := 119 * time.Millisecond; o.Wake == nil || *o.Wake != want {
		t.Errorf("wake %v, want %v: from the first load that ended with a value", o.Wake, want)
	}
	if len(o.Answers) != 2 || len(o.Loaded) != 2 {
		t.Errorf("answers %v, loaded %v; want two each", o.Answers, o.Loaded)
	}
	s := o.Series
	for _, c := range []struct {
		name      string
		got, want []int
	}{
		{"calls", s.Calls, []int{0, 2, 1}},
		{"waiting", s.Waiting, []int{2, 1, 0}},
		{"errors", s.Errors, []int{0, 0, 1}},
		{"stale", s.Stale, []int{0, 1, 0}},
		{"loads", s.Loads, []int{2, 1, 0}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s by step %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestNoWakeWithoutValue(t *testing.T) {
	o := newOutcome(&result{Last: 5, Loads: []origin.Load{{Start: 1, End: 3}}}, 1, nil)
	if o.Wake != nil {
		t.Errorf("wake %v, want nil when no load ended with a value", *o.Wake)
	}
}

// TestSampleKeepsTheSlowest adds more calls than are kept.
func TestSampleKeepsTheSlowest(t *testing.T) {
	var c tally
	for i := range 3 * maxSample {
		c.add(seen{end: monotime.Instant(i)})
	}
	if len(c.Latencies) != maxSample || c.Calls != 3*maxSample || c.Slowest != 3*maxSample-1 {
		t.Errorf("%d kept of %d, slowest %d", len(c.Latencies), c.Calls, c.Slowest)
	}
	slices.Sort(c.Latencies)
	if middle := quantile(c.Latencies, 0.5); middle < maxSample || middle > 2*maxSample {
		t.Errorf("the median of the sample is %d, want about %d", middle, 3*maxSample/2)
	}
}

// TestExpiries counts what belongs together.
func TestExpiries(t *testing.T) {
	s := &Stage{Options: &Options{TTL: time.Second, Load: 100 * time.Millisecond}}
	at := func(ms int) monotime.Instant { return monotime.Instant(time.Duration(ms) * time.Millisecond) }
	expiries, refreshes, lead := s.expiries([]loadAt{
		{at(0), 1},
		{at(10), 2},
		{at(5), -1},
		{at(900), 1},
		{at(950), 1},
		{at(1010), 2},
		{at(1900), 1},
	})
	if expiries != 3 || refreshes != 4 || lead != 400*time.Millisecond {
		t.Errorf("%d expiries, %d refreshes, lead %v; want 3, 4, 400 ms", expiries, refreshes, lead)
	}
}

func TestMedian(t *testing.T) {
	tests := []struct {
		name  string
		loads []int
		want  int
	}{
		{"one", []int{3}, 3},
		{"odd", []int{9, 1, 5}, 5},
		{"even takes the higher", []int{1, 2}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var runs []*Outcome
			for _, n := range tt.loads {
				runs = append(runs, &Outcome{Loads: n})
			}
			if got := *median(runs, func(o *Outcome) *int { return &o.Loads }); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
	if got := median([]*Outcome{{}}, func(o *Outcome) *int64 { return o.Commands }); got != nil {
		t.Errorf("got %d, want nil when no run has the figure", *got)
	}
}

func TestQuantile(t *testing.T) {
	var sorted []time.Duration
	for i := range 200 {
		sorted = append(sorted, time.Duration(i+1))
	}
	for q, want := range map[float64]time.Duration{0.001: 1, 0.5: 100, 0.99: 198, 1: 200} {
		if got := quantile(sorted, q); got != want {
			t.Errorf("quantile %v is %d, want %d", q, got, want)
		}
	}
}

// TestColdPromises breaks one promise at a time.
func TestColdPromises(t *testing.T) {
	digests := func(names ...string) map[string]bool {
		set := map[string]bool{}
		for _, n := range names {
			set[n] = true
		}
		return set
	}
	tests := []struct {
		name   string
		change func(*Outcome)
		want   []string
	}{
		{"all kept", func(*Outcome) {}, []string{}},
		{"no load", func(o *Outcome) { o.Loads = 0 }, []string{"G1 one load"}},
		{"two loads", func(o *Outcome) { o.Loads = 2 }, []string{"G1 one load"}},
		{"one error", func(o *Outcome) { o.Errors = 1 }, []string{"G3/G7 no errors"}},
		{"two answers", func(o *Outcome) { o.Answers = digests("a", "b") }, []string{"equal answers"}},
		{"an answer that no load made", func(o *Outcome) { o.Answers = digests("b") }, []string{"equal answers"}},
		{"no answer", func(o *Outcome) { o.Answers = nil }, []string{"equal answers"}},
		{"one caller late", func(o *Outcome) { o.Slowest = o.Bound + 1 }, []string{"nobody stuck"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			good := &Outcome{Loads: 1, Slowest: 2, Bound: time.Second, Answers: digests("a"), Loaded: digests("a")}
			bad := &Outcome{Loads: 1, Slowest: 2, Bound: time.Second, Answers: digests("a"), Loaded: digests("a")}
			tt.change(bad)
			if got := broken(cold(), []*Outcome{good, bad, good}); !slices.Equal(got, tt.want) {
				t.Errorf("broken %q, want %q", got, tt.want)
			}
		})
	}
}

func TestBrokenNamesOurs(t *testing.T) {
	broken := []string{"G1 one load"}
	tests := []struct {
		name string
		row  Row
		want []string
	}{
		{"another's", Row{Broken: broken}, nil},
		{"ours kept", Row{ours: true, Broken: []string{}}, nil},
		{"ours broken", Row{ours: true, Broken: broken}, []string{"G1 one load in cold"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &Report{Sections: []*Section{{}, {Scenario: "cold", Rows: []*Row{{Broken: broken}, &tt.row}}}}
			if got := r.Broken(); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func sampleReport() *Report {
	ms := func(v float64) *float64 { return &v }
	n := func(v int64) *int64 { return &v }
	stale := 7
	rows := []*Row{
		{Strategy: "none", Loads: 512, P50MS: 114.02, P99MS: 126.96, MaxMS: 131.1, WakeMS: ms(26.3), RedisCommands: n(1024), Broken: []string{"G1 one load", "equal answers"}},
		{Strategy: "classic", Loads: 1, P50MS: 538.1, P99MS: 548.44, MaxMS: 1548, WakeMS: ms(441.04), StaleReads: &stale, Broken: []string{}},
		{Strategy: "other", Loads: 2, Errors: 512, firstError: "connection <refused>", Broken: []string{"G1 one load"}},
		{Strategy: "getorprime", Loads: 2, P50MS: 103.96, P99MS: 105.5, MaxMS: 106, WakeMS: ms(3.12), RedisCommands: n(58), Broken: []string{"G1 one load"}, ours: true},
	}
	for _, row := range rows {
		row.Scenario, row.Processes, row.Callers, row.Calls = "cold", 8, 64, 512
		row.Verdict = herdVerdict(row)
		row.Series = &Series{StepMS: 100, Loads: []int{row.Loads, 0}, Calls: []int{0, 512}, Waiting: []int{512, 0}, Errors: []int{0, 0}, Stale: []int{0, 0}, Commands: []int64{9, 1}}
	}
	compare(rows)
	rows[3].Figures = []Figure{{"refreshes per expiry", "", ms(2.718), 2.75}}
	return &Report{Sections: []*Section{
		{Scenario: "cold", Title: "cold: 8 processes × 64 callers", Server: "embedded Redis", Rows: rows},
		{Scenario: "hot", Title: "hot: one more", Server: "embedded Redis", Rows: rows[3:]},
	}}
}

func TestReportGolden(t *testing.T) {
	tests := []struct {
		file  string
		write func(*bytes.Buffer) error
	}{
		{"bench-report.txt", func(b *bytes.Buffer) error { return sampleReport().WriteTable(b) }},
		{"bench-list.txt", func(b *bytes.Buffer) error { return WriteList(b) }},
		{"bench-report.json", func(b *bytes.Buffer) error { return sampleReport().WriteJSON(b) }},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			var got bytes.Buffer
			if err := tt.write(&got); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("..", "..", "testdata", "cli", tt.file), got.Bytes())
		})
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got:\n%s\nwant:\n%s", file, got, want)
	}
}
