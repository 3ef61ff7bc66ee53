package examples_test

import (
	"errors"
	"io/fs"
	"net/rpc"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/redistest"
)

// wantReport compares what was written with what should have been.
func wantReport(tb testing.TB, dir string, months ...string) {
	tb.Helper()
	text, err := os.ReadFile(dir + "/report")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		tb.Fatal(err)
	}
	if got := strings.Fields(string(text)); strings.Join(got, " ") != strings.Join(months, " ") {
		tb.Errorf("reports %q, want %q", got, months)
	}
}

// nodes starts n processes.
func nodes(tb testing.TB, n int) []*redistest.Worker {
	tb.Helper()
	var all []*redistest.Worker
	for range n {
		all = append(all, redistest.StartWorker(tb))
	}
	return all
}

// report has nodes write a report at once.
func report(site Site, nodes ...*redistest.Worker) []*rpc.Call {
	var calls []*rpc.Call
	for _, n := range nodes {
		calls = append(calls, n.Go("Report", site, &struct{}{}))
	}
	return calls
}

func TestOneNodeWritesTheReport(t *testing.T) {
	site := Site{Redis: redistest.Start(t).Addr(), Dir: t.TempDir(), TTL: time.Minute, Month: "2026-11"}
	all := nodes(t, 3)
	for _, call := range report(site, all...) {
		all[0].Await(call)
	}
	wantReport(t, site.Dir, "2026-11")
	for _, call := range report(site, all...) { // cron fires late somewhere
		all[0].Await(call)
	}
	wantReport(t, site.Dir, "2026-11")
	site.Month = "2026-12"
	for _, call := range report(site, all...) {
		all[0].Await(call)
	}
	wantReport(t, site.Dir, "2026-11", "2026-12")
}

// TestAnotherNodeTakesOver has the first node die, or fail, while the others wait.
func TestAnotherNodeTakesOver(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	site := Site{Redis: server.Addr(), TTL: 500 * time.Millisecond, Month: "2026-11"}
	all := nodes(t, 3)

	t.Run("fails", func(t *testing.T) {
		site := site
		site.Dir, site.Month, site.Fail = t.TempDir(), "2026-10", true
		if call := <-report(site, all[0])[0].Done; call.Error == nil || call.Error.Error() != "no paper" {
			t.Errorf("the first got %v, want its own error", call.Error)
		}
		site.Fail = false
		for _, call := range report(site, all[1:]...) {
			all[1].Await(call)
		}
		wantReport(t, site.Dir, "2026-10")
	})
	t.Run("dies", func(t *testing.T) {
		site := site
		site.Dir, site.Slow = t.TempDir(), true
		report(site, all[0])
		all[0].Call("Begun", struct{}{}, &struct{}{})
		site.Slow = false
		calls := report(site, all[1:]...)
		redistest.Eventually(t, bound, func() bool {
			return client.ZCard(t.Context(), "lock:{monthly-report}:w").Val() == 2
		}, "two nodes wait")
		wantReport(t, site.Dir)
		all[0].Kill()
		for _, call := range calls {
			all[1].Await(call)
		}
		wantReport(t, site.Dir, "2026-11")
	})
}
