package bench_test

import (
	"slices"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/bench"
	"github.com/getorprime/getorprime/internal/redistest"
)

// TestScenarios runs every scenario at reduced length on a real server: ours keeps its promises, and those that break some by nature are
// seen to break them.
func TestScenarios(t *testing.T) {
	server := redistest.Start(t)
	tests := []struct {
		options bench.Options
		broken  map[string]string // by strategy: a promise that it breaks
	}{
		{bench.Options{Scenario: "cold", Load: 200 * time.Millisecond}, map[string]string{"none": "G1 one load", "singleflight": "G1 one load"}},
		{bench.Options{Scenario: "expiry", Strategies: []string{"none", "getorprime"}, Duration: 2500 * time.Millisecond, Rate: 200}, map[string]string{"none": "one load per expiry"}},
		{bench.Options{Scenario: "early", Duration: 3 * time.Second}, map[string]string{"xfetch": "1 refresh per expiry"}},
		{bench.Options{Scenario: "slow-loader", Strategies: []string{"none", "getorprime"}, Load: 3 * time.Second}, map[string]string{"none": "G1 one load"}},
		{bench.Options{Scenario: "failing-loader", Strategies: []string{"lock-only", "getorprime", "getorprime+stale"}}, map[string]string{"lock-only": "G5 told at once"}},
		{bench.Options{Scenario: "panicking-loader", Strategies: []string{"singleflight", "getorprime"}}, map[string]string{"singleflight": "G5 one attempt"}},
		{bench.Options{Scenario: "leader-killed", Strategies: []string{"none", "getorprime"}}, map[string]string{"none": "G1 one load per lease lost"}},
		{bench.Options{Scenario: "leader-paused", Strategies: []string{"lock-only", "getorprime"}, Rate: 200}, map[string]string{"lock-only": "G2 nothing stale"}},
		{bench.Options{Scenario: "invalidate-storm", Strategies: []string{"none", "getorprime", "getorprime+stale"}, Duration: 1500 * time.Millisecond}, map[string]string{"none": "G2 nothing stale"}},
		{bench.Options{Scenario: "mass-expiry", Strategies: []string{"getorprime-jitter"}, Duration: 2 * time.Second}, nil},
		{bench.Options{Scenario: "hot-key", Duration: 500 * time.Millisecond, Strategies: []string{"none", "getorprime"}}, map[string]string{"none": "G1 one load"}},
		{bench.Options{Scenario: "redis-outage", Strategies: []string{"getorprime"}, Rate: 200}, nil},
		{bench.Options{Scenario: "lost-messages"}, nil},
		{bench.Options{Scenario: "lock-herd"}, map[string]string{"none": "G10 one holder"}},
	}
	var names []string
	for _, tt := range tests {
		names = append(names, tt.options.Scenario)
		t.Run(tt.options.Scenario, func(t *testing.T) {
			if testing.Short() && !quick[tt.options.Scenario] {
				t.Skip("takes seconds: left out by -short")
			}
			o := tt.options
			o.RedisURL = server.URL()
			o.Processes, o.Callers = 3, 6
			report, err := bench.Run(t.Context(), &o)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range report.Sections[0].Rows {
				checkScenarioRow(t, row, tt.broken[row.Strategy])
			}
			for _, broken := range report.Broken() {
				// A process that does not get a processor in time reads too late to refresh early.
				if broken != "0 blocked reads in early" {
					t.Errorf("ours broke %s", broken)
				}
			}
		})
	}
	if want := bench.ScenarioNames(); !slices.Equal(names, want) {
		t.Errorf("scenarios %q are tested, want all of %q", names, want)
	}
	if got := keys(t, server.Client(t)); len(got) > 0 {
		t.Errorf("keys left: %q", got)
	}
}

// quick are the scenarios that -short leaves in.
var quick = map[string]bool{"cold": true, "panicking-loader": true, "hot-key": true, "lost-messages": true, "lock-herd": true}

func checkScenarioRow(t *testing.T, row *bench.Row, broken string) {
	t.Helper()
	t.Logf("%s: %s; %d calls, max %.0f ms, broken %q", row.Strategy, row.Verdict, row.Calls, row.MaxMS, row.Broken)
	if row.Calls == 0 || row.Loads == 0 || row.Verdict == "" {
		t.Errorf("%s: %d calls, %d loads, verdict %q; want some", row.Strategy, row.Calls, row.Loads, row.Verdict)
	}
	if broken != "" && !slices.Contains(row.Broken, broken) {
		t.Errorf("%s did not break %q: the scenario shows nothing", row.Strategy, broken)
	}
	sum := 0
	for _, n := range row.Series.Calls {
		sum += n
	}
	if sum != row.Calls {
		t.Errorf("%s: %d calls in the series, %d in all", row.Strategy, sum, row.Calls)
	}
}
