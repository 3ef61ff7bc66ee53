package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redistest"
)

var (
	decimals = regexp.MustCompile(` *\d+\.\d+`)
	// How many commands there are depends on who asks when.
	commands = regexp.MustCompile(`(?m)^(  .*N\.N) +\d+  `)
	header   = regexp.MustCompile(`(?m)^  strategy .*$`)
)

// normal takes out of a report what differs from run to run: figures with decimals, and the spaces that align them.
func normal(report string) string {
	report = decimals.ReplaceAllString(report, " N.N")
	report = commands.ReplaceAllString(report, "$1 N  ")
	return header.ReplaceAllStringFunc(report, func(line string) string { return "  " + strings.Join(strings.Fields(line), " ") })
}

func TestBenchGolden(t *testing.T) {
	status, stdout, stderr := prime(t.Context(), "bench", "--scenario", "cold", "--processes", "2", "--callers", "3", "--load", "250ms")
	if status != exitOK {
		t.Fatalf("status %d, want 0:\n%s%s", status, stdout, stderr)
	}
	golden(t, "bench.txt", normal(stdout))
	golden(t, "bench-progress.txt", normal(stderr))
}

func TestBenchJSON(t *testing.T) {
	status, stdout, stderr := prime(t.Context(), "bench", "--scenario", "cold", "--json", "--processes", "2", "--callers", "2", "--load", "50ms", "--strategy", "getorprime", "--strategy", "none")
	if status != exitOK {
		t.Fatalf("status %d, want 0:\n%s", status, stderr)
	}
	lines := json.NewDecoder(strings.NewReader(stdout))
	var got map[string][]map[string]any
	if err := lines.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if lines.More() || len(got) != 1 || len(got["rows"]) != 2 {
		t.Fatalf("want one object with two rows and nothing else, got %s", stdout)
	}
	want := strings.Fields("blocked broken callers calls errors loads max_ms p50_ms p90_ms p999_ms p99_ms processes ratio_to_none redis_commands scenario series strategy verdict wake_ms")
	for i, strategy := range []string{"getorprime", "none"} {
		row := got["rows"][i]
		if keys := slices.Sorted(maps.Keys(row)); !slices.Equal(keys, want) {
			t.Errorf("keys %q, want %q", keys, want)
		}
		if row["strategy"] != strategy {
			t.Errorf("row %d is of %v, want %s", i, row["strategy"], strategy)
		}
	}
}

func TestBenchWritesAPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.html")
	status, stdout, stderr := prime(t.Context(), "bench", "--scenario", "hot-key", "--duration", "200ms", "--strategy", "getorprime", "--processes", "1", "--callers", "2", "--report", file)
	if status != exitOK || !strings.Contains(stdout, "hot-key") {
		t.Fatalf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"hot-key", "getorprime", "prime bench --scenario hot-key --strategy getorprime --processes 1 --callers 2 --duration 200ms --report report.html"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	status, _, stderr = prime(t.Context(), "bench", "--scenario", "hot-key", "--duration", "100ms", "--strategy", "none", "--report", t.TempDir())
	if status != exitFailure || !strings.Contains(stderr, "directory") {
		t.Errorf("a report that is a directory: status %d, stderr %q", status, stderr)
	}
}

// TestBenchTour is prime bench as the README has it, at reduced length.
func TestBenchTour(t *testing.T) {
	if testing.Short() {
		t.Skip("takes most of a minute: left out by -short")
	}
	file := filepath.Join(t.TempDir(), "stampede.html")
	status, stdout, stderr := prime(t.Context(), "bench", "--duration", "1500ms", "--report", file)
	// A process that does not get a processor in time reads too late to refresh early.
	if status != exitOK && !strings.HasSuffix(strings.TrimSpace(stderr), "promise: 0 blocked reads in early") {
		t.Errorf("status %d: %s", status, stderr)
	}
	for _, want := range []string{"cold: ", "failing-loader: ", "leader-killed: ", "expiry: ", "early: ", "invalidate-storm: ", "redis-outage: ", "lost-messages: ", "getorprime: 0 stale of "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the tour does not tell %q", want)
		}
	}
	if page, err := os.Stat(file); err != nil || page.Size() < 50_000 {
		t.Errorf("page: %v, %v", page, err)
	}
}

func TestBenchList(t *testing.T) {
	status, stdout, _ := prime(t.Context(), "bench", "--list")
	if status != exitOK || !strings.Contains(stdout, "leader-paused") || !strings.Contains(stdout, "lock-only") {
		t.Errorf("status %d, %q", status, stdout)
	}
}

func TestBenchWithoutServer(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	status, stdout, stderr := prime(t.Context(), "bench", "--scenario", "cold", "--redis", server.URL())
	if status != exitFailure || stdout != "" || !strings.Contains(stderr, server.Addr()) {
		t.Errorf("status %d, stdout %q, stderr %q; want 1, nothing, and the address", status, stdout, stderr)
	}
}

// TestBenchFailsWhenOursBreaksAPromise deletes the entry in mid-load, and with it the lease: somebody loads again.
func TestBenchFailsWhenOursBreaksAPromise(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	type result struct {
		status         int
		stdout, stderr string
	}
	ended := make(chan result, 1)
	go func() {
		status, stdout, stderr := prime(t.Context(), "bench", "--scenario", "cold", "--redis", server.URL(), "--strategy", "getorprime", "--processes", "3", "--callers", "2", "--load", "1s")
		ended <- result{status, stdout, stderr}
	}()
	redistest.Eventually(t, 20*time.Second, func() bool {
		found := keys(t, client, "prime-bench:*:cold")
		return len(found) > 0 && client.Del(t.Context(), found...).Val() > 0
	}, "the cold key is being loaded")
	r := <-ended
	if r.status != exitFailure || !strings.Contains(r.stderr, "getorprime broke a promise") {
		t.Errorf("status %d, stderr %q; want 1 and the reason", r.status, r.stderr)
	}
	if !strings.Contains(r.stdout, "It BROKE its promises: G1 one load") {
		t.Errorf("the report does not say what was broken:\n%s", r.stdout)
	}
}

func TestInterruptedBenchHasItsStatus(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	status, stdout, stderr := prime(ctx, "bench")
	if status != exitInterrupted || stdout != "" || stderr != "prime: interrupted\n" {
		t.Errorf("status %d, stdout %q, stderr %q; want 130 and a word", status, stdout, stderr)
	}
}

func keys(t *testing.T, client *redis.Client, pattern string) []string {
	t.Helper()
	found, err := client.Keys(t.Context(), pattern).Result()
	if err != nil {
		t.Fatal(err)
	}
	return found
}
