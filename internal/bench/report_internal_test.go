package bench

import (
	"bytes"
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

func TestMergeAddsWorkersUp(t *testing.T) {
	const start = monotime.Instant(1000)
	at := func(ms int) monotime.Instant { return start.Add(time.Duration(ms) * time.Millisecond) }
	results := []*result{
		{
			Returned: []monotime.Instant{at(140), at(110)}, Answers: []string{"a"},
			Loads: []origin.Load{{Start: at(1), End: at(101), Digest: "a"}, {Start: at(2), End: at(90)}},
		},
		{
			Returned: []monotime.Instant{at(120)}, Answers: []string{"a", "b"}, Errors: 1, FirstError: "no",
			Loads: []origin.Load{{Start: at(5), End: at(105), Digest: "b"}, {Start: at(6)}},
		},
	}
	o := merge(results, start)
	if o.Loads != 4 || o.Errors != 1 || o.FirstError != "no" {
		t.Errorf("loads %d, errors %d, first %q; want 4, 1, no", o.Loads, o.Errors, o.FirstError)
	}
	if want := []time.Duration{110e6, 120e6, 140e6}; !slices.Equal(o.Latencies, want) {
		t.Errorf("latencies %v, want %v", o.Latencies, want)
	}
	if want := 39 * time.Millisecond; o.Wake == nil || *o.Wake != want {
		t.Errorf("wake %v, want %v: from the first load that ended with a value", o.Wake, want)
	}
	if len(o.Answers) != 2 || len(o.Loaded) != 2 {
		t.Errorf("answers %v, loaded %v; want two each", o.Answers, o.Loaded)
	}
}

func TestMergeWithoutValue(t *testing.T) {
	o := merge([]*result{{Returned: []monotime.Instant{5}, Errors: 1, Loads: []origin.Load{{Start: 1, End: 3}}}}, 1)
	if o.Wake != nil {
		t.Errorf("wake %v, want nil when no load ended with a value", *o.Wake)
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
		if got := *quantile(sorted, q); got != want {
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
		{"one caller late", func(o *Outcome) { o.Latencies[1] = o.Bound + 1 }, []string{"nobody stuck"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			good := &Outcome{Loads: 1, Latencies: []time.Duration{1, 2}, Bound: time.Second, Answers: digests("a"), Loaded: digests("a")}
			bad := &Outcome{Loads: 1, Latencies: []time.Duration{1, 2}, Bound: time.Second, Answers: digests("a"), Loaded: digests("a")}
			tt.change(bad)
			if got := broken(cold{}, []*Outcome{good, bad, good}); !slices.Equal(got, tt.want) {
				t.Errorf("broken %q, want %q", got, tt.want)
			}
		})
	}
}

func TestOursBroken(t *testing.T) {
	broken := []string{"G1 one load"}
	tests := []struct {
		name string
		row  Row
		want bool
	}{
		{"another's", Row{Broken: broken}, false},
		{"ours kept", Row{ours: true, Broken: []string{}}, false},
		{"ours broken", Row{ours: true, Broken: broken}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &Report{Rows: []Row{{Broken: broken}, tt.row}}
			if got := r.OursBroken(); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func sampleReport() *Report {
	ms := func(v float64) *float64 { return &v }
	n := func(v int64) *int64 { return &v }
	row := Row{Scenario: "cold", Processes: 8, Callers: 64}
	rows := []Row{row, row, row, row}
	rows[0].Strategy, rows[0].Loads, rows[0].P50MS, rows[0].P99MS, rows[0].MaxMS = "none", 512, 114.02, 126.96, 131.1
	rows[0].WakeMS, rows[0].RedisCommands, rows[0].Broken = ms(26.3), n(1024), []string{"G1 one load", "equal answers"}
	rows[1].Strategy, rows[1].Loads, rows[1].P50MS, rows[1].P99MS, rows[1].MaxMS = "classic", 1, 538.1, 548.44, 1548
	rows[1].WakeMS, rows[1].Broken = ms(441.04), []string{}
	rows[2].Strategy, rows[2].Loads, rows[2].Errors, rows[2].firstError = "other", 2, 512, "connection <refused>"
	rows[2].Broken = []string{"G1 one load"}
	rows[3].Strategy, rows[3].Loads, rows[3].P50MS, rows[3].P99MS, rows[3].MaxMS = "getorprime", 2, 103.96, 105.5, 106
	rows[3].WakeMS, rows[3].RedisCommands, rows[3].Broken, rows[3].ours = ms(3.12), n(58), []string{"G1 one load"}, true
	return &Report{Title: "cold: 8 processes × 64 callers", Server: "embedded Redis", Rows: rows, verdict: cold{}.Verdict}
}

func TestReportGolden(t *testing.T) {
	tests := []struct {
		file  string
		write func(*bytes.Buffer) error
	}{
		{"bench-report.txt", func(b *bytes.Buffer) error { return sampleReport().WriteTable(b) }},
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
