package bench_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/bench"
	"github.com/getorprime/getorprime/internal/redistest"
)

const (
	processes = 3
	callers   = 4
	load      = 250 * time.Millisecond // far more than the callers need to meet
)

func options() *bench.Options {
	return &bench.Options{
		Scenario: "cold", Strategies: []string{"none", "singleflight", "classic", "lock-only", "getorprime"}, Processes: processes, Callers: callers,
		Load: load, TTL: time.Minute, Runs: 1, Seed: 1,
	}
}

// wants says what each strategy does on an absent key.
var wants = map[string]struct {
	loads  int
	broken []string
}{
	"none":         {processes * callers, []string{"G1 one load", "equal answers"}},
	"singleflight": {processes, []string{"G1 one load", "equal answers"}},
	"classic":      {1, []string{}},
	"lock-only":    {1, []string{}},
	"getorprime":   {1, []string{}},
}

func checkRow(t *testing.T, row *bench.Row) {
	t.Helper()
	want := wants[row.Strategy]
	if row.Loads != want.loads || row.Errors != 0 || !slices.Equal(row.Broken, want.broken) {
		t.Errorf("%s: %d loads, %d errors, broken %q; want %d, 0, %q", row.Strategy, row.Loads, row.Errors, row.Broken, want.loads, want.broken)
	}
	if low := float64(load.Milliseconds()); row.P50MS < low || row.P99MS < row.P50MS || row.MaxMS < row.P99MS {
		t.Errorf("%s: p50 %v, p99 %v, max %v ms; want them rising from at least %v", row.Strategy, row.P50MS, row.P99MS, row.MaxMS, low)
	}
	// The loads began after the common start, so nobody waits longer after the first load than in all less one load. The slack is rounding.
	longest := row.MaxMS - float64(load.Milliseconds()) + 0.002
	switch {
	case row.WakeMS == nil:
		t.Errorf("%s: no wake, want one", row.Strategy)
	case *row.WakeMS < 0 || *row.WakeMS > longest:
		t.Errorf("%s: wake %v ms, want 0 to %v", row.Strategy, *row.WakeMS, longest)
	}
	if row.RedisCommands == nil || *row.RedisCommands < processes {
		t.Errorf("%s: too few commands, want at least one for each process", row.Strategy)
	}
}

func checkReport(t *testing.T, o *bench.Options) {
	t.Helper()
	report, err := bench.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	rows := report.Sections[0].Rows
	if got, want := len(rows), len(o.Strategies); got != want {
		t.Fatalf("%d rows, want %d", got, want)
	}
	for i, row := range rows {
		if row.Strategy != o.Strategies[i] {
			t.Errorf("row %d is of %s, want %s", i, row.Strategy, o.Strategies[i])
		}
		checkRow(t, row)
	}
	if broken := report.Broken(); broken != nil {
		t.Errorf("ours broke %q", broken)
	}
}

func TestColdOnEmbeddedServer(t *testing.T) {
	checkReport(t, options())
}

func TestColdOnRealServer(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	if err := client.Set(t.Context(), "theirs", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	o := options()
	o.RedisURL = server.URL()
	checkReport(t, o)
	if got := keys(t, client); !slices.Equal(got, []string{"theirs"}) {
		t.Errorf("keys left: %q, want only the one that was there", got)
	}
}

func TestRunsTakeTurns(t *testing.T) {
	o := options()
	o.Strategies, o.Runs, o.Load, o.Callers = []string{"none", "singleflight", "none"}, 2, time.Millisecond, 1
	var order []string
	o.Progress = func(p bench.Progress) {
		if p.Row != nil {
			order = append(order, fmt.Sprintf("%s %d/%d", p.Strategy, p.Done, p.Total))
		}
	}
	report, err := bench.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"none 1/4", "singleflight 2/4", "singleflight 3/4", "none 4/4"}; !slices.Equal(order, want) {
		t.Errorf("runs ended as %q, want %q", order, want)
	}
	if len(report.Sections[0].Rows) != 2 {
		t.Errorf("%d rows, want one for each strategy named", len(report.Sections[0].Rows))
	}
}

func TestCancelledRunLeavesNothing(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	o := options()
	o.RedisURL, o.Load, o.Strategies = server.URL(), time.Minute, []string{"classic"}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := bench.Run(ctx, o)
		ended <- err
	}()
	redistest.Eventually(t, 20*time.Second, func() bool {
		return slices.ContainsFunc(keys(t, client), func(k string) bool { return strings.HasSuffix(k, "lock:cold") })
	}, "a caller holds the lock of the cold key")
	cancel(why)
	if err := <-ended; !errors.Is(err, why) {
		t.Errorf("Run = %v, want the cause %v", err, why)
	}
	if got := keys(t, client); len(got) > 0 {
		t.Errorf("keys left: %q", got)
	}
}

func TestRunWithoutServer(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	o := options()
	o.RedisURL = "redis://user:secret@" + server.Addr()
	_, err := bench.Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), server.Addr()) || strings.Contains(err.Error(), "secret") {
		t.Errorf("Run = %v, want an error that names the address and not the password", err)
	}
}

func keys(t *testing.T, client *redis.Client) []string {
	t.Helper()
	all, err := client.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return all
}
