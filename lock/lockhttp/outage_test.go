package lockhttp_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
	"github.com/getorprime/getorprime/lock/lockhttp"
)

// TestOutage has Redis fail in several ways. The handler must not be called, and
// the answer come within the budget; on a busy machine, a little later.
func TestOutage(t *testing.T) {
	const budget = 300 * time.Millisecond
	tests := []struct {
		name string
		opts lockhttp.Options
		fail func(*redistest.Server)
		heal func(*redistest.Server)
	}{
		{"killed", lockhttp.Options{}, (*redistest.Server).Kill, (*redistest.Server).Restart},
		{"killed, with a wait", lockhttp.Options{Wait: bound}, (*redistest.Server).Kill, (*redistest.Server).Restart},
		{"killed, fenced", lockhttp.Options{FenceHeader: "Lock-Fence"}, (*redistest.Server).Kill, (*redistest.Server).Restart},
		{"stopped", lockhttp.Options{}, (*redistest.Server).Pause, (*redistest.Server).Resume},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			server := redistest.Start(t)
			l := open(t, server.Client(t), &lock.Options{RedisBudget: budget})
			var calls []string
			tc.opts.Logger = quiet
			s := serve(t, guarded(t, l, &tc.opts, func(_ http.ResponseWriter, r *http.Request) { calls = append(calls, r.URL.Path) }))
			redistest.Eventually(t, bound, func() bool { return post(t, s, "/things/1").status == http.StatusOK }, "Redis works")

			calls = nil
			tc.fail(server)
			start := time.Now()
			got := post(t, s, "/things/2")
			took := time.Since(start)
			wantProblem(t, "without Redis", got, http.StatusServiceUnavailable, lockhttp.TypeUnavailable)
			t.Logf("refused after %v; budget %v", took, budget)
			if took > budget+bound/4 {
				t.Errorf("refused after %v only", took)
			}
			if len(calls) > 0 {
				t.Errorf("handled without a lock: %q", calls)
			}

			tc.heal(server)
			redistest.Eventually(t, bound, func() bool { return post(t, s, "/things/3").status == http.StatusOK }, "Redis works again")
		})
	}
}

// TestRedisDiesMeanwhile: the lease ends before Redis could give the lock away.
func TestRedisDiesMeanwhile(t *testing.T) {
	server := redistest.Start(t)
	g := newGate()
	l := open(t, server.Client(t), &lock.Options{RedisBudget: 100 * time.Millisecond})
	s := serve(t, guarded(t, l, &lockhttp.Options{TTL: 300 * time.Millisecond, Logger: quiet}, g.serve))
	got := posting(t.Context(), s, "/things/7")
	r := receive(t, g.entered, "the request is in")
	server.Kill()
	wantProblem(t, "without Redis", receive(t, got, "the answer"), http.StatusServiceUnavailable, lockhttp.TypeLost)
	if cause := context.Cause(r.Context()); cause == nil || !strings.Contains(cause.Error(), lock.ErrLost.Error()) {
		t.Errorf("cause %v, want %v", cause, lock.ErrLost)
	}
}

func TestAnotherKindOfLock(t *testing.T) {
	client := redistest.Start(t).Client(t)
	if err := client.RPush(t.Context(), "lock:{http:7}", "x").Err(); err != nil {
		t.Fatal(err)
	}
	s := serve(t, guarded(t, open(t, client, nil), &lockhttp.Options{Fenced: true, Logger: quiet}, func(http.ResponseWriter, *http.Request) {
		t.Error("handled without a lock")
	}))
	got := post(t, s, "/things/7")
	wantProblem(t, "on a list", got, http.StatusInternalServerError, "about:blank")
	if strings.Contains(got.body, "lock:{") {
		t.Errorf("the client is told a key of Redis: %s", got.body)
	}
}

// TestClose waits for the handler, and refuses whoever comes.
func TestClose(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open(t, client, nil)
	g := newGate()
	s := serve(t, guarded(t, l, &lockhttp.Options{Logger: quiet}, g.serve))
	in := posting(t.Context(), s, "/things/7")
	receive(t, g.entered, "the request is in")
	closed := make(chan error, 1)
	go func() { closed <- l.Close(t.Context()) }()
	redistest.Eventually(t, bound, func() bool {
		got := post(t, s, "/things/8")
		if got.status == http.StatusOK {
			return false
		}
		wantProblem(t, "closed", got, http.StatusServiceUnavailable, lockhttp.TypeUnavailable)
		return true
	}, "newcomers are refused")
	select {
	case err := <-closed:
		t.Errorf("Close did not wait: %v", err)
	default:
	}
	g.leave <- struct{}{}
	wantStatus(t, "the one that was in", receive(t, in, "its answer"), http.StatusOK)
	if err := receive(t, closed, "Close returns"); err != nil {
		t.Error(err)
	}
}

// TestLog has an outage refuse many: that is one line, or one a second.
func TestLog(t *testing.T) {
	server := redistest.Start(t)
	l := open(t, server.Client(t), &lock.Options{RedisBudget: 100 * time.Millisecond})
	server.Kill()
	var text lines
	opts := &lockhttp.Options{Logger: slog.New(slog.NewTextHandler(&text, nil))}
	s := serve(t, guarded(t, l, opts, func(http.ResponseWriter, *http.Request) {}))
	start := time.Now()
	var refused []<-chan answer
	for i := range 50 {
		refused = append(refused, posting(t.Context(), s, fmt.Sprintf("/things/%d", i)))
	}
	for _, c := range refused {
		wantStatus(t, "without Redis", receive(t, c, "an answer"), http.StatusServiceUnavailable)
	}
	most := int(time.Since(start)/time.Second) + 1
	got := text.all()
	if len(got) < 1 || len(got) > most {
		t.Errorf("%d lines, want from 1 to %d:\n%s", len(got), most, strings.Join(got, "\n"))
	}
	for _, part := range []string{"lockhttp: a lock could not be asked for", "POST", "/things/{id}", "Redis unavailable"} {
		if !strings.Contains(got[0], part) {
			t.Errorf("the log does not say %q: %s", part, got[0])
		}
	}
}

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSuffix(l.text.String(), "\n"), "\n")
}
