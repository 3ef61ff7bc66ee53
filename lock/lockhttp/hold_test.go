package lockhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
	"github.com/getorprime/getorprime/lock/lockhttp"
)

// TestEndsThatRelease has handlers that end badly, under a lock that would
// otherwise outlive the test by far.
func TestEndsThatRelease(t *testing.T) {
	boom := errors.New("boom")
	tests := []struct {
		name string
		end  func(http.ResponseWriter)
	}{
		{"panic", func(http.ResponseWriter) { panic(boom) }},
		{"abort", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }},
		{"panic after a part of the answer", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "a part"); panic(boom) }},
		{"goexit", func(http.ResponseWriter) { runtime.Goexit() }},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			redistest.NoLeaks(t)
			client := redistest.Start(t).Client(t)
			ended := make(chan time.Time, 1)
			s := serve(t, guarded(t, open(t, client, nil), nil, func(w http.ResponseWriter, _ *http.Request) {
				if free(t, client, "7") {
					t.Error("the handler runs without the lock")
				}
				ended <- time.Now()
				tc.end(w)
			}))
			if tc.name == "goexit" { // which net/http does not mind: it keeps the connection open
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				posting(ctx, s, "/things/7")
			} else if got := post(t, s, "/things/7"); got.err == nil {
				t.Errorf("the client got %+v, want the connection closed", got)
			}
			since := receive(t, ended, "the handler ran")
			wantFree(t, client, "7")
			t.Logf("free %v after", time.Since(since))
		})
	}
}

// TestClientLeaves has a client that leaves, and a handler that goes on for a
// while.
func TestClientLeaves(t *testing.T) {
	redistest.NoLeaks(t)
	client := redistest.Start(t).Client(t)
	entered, told, leave, ended := make(chan struct{}, 1), make(chan error, 1), make(chan struct{}), make(chan time.Time, 1)
	s := serve(t, guarded(t, open(t, client, nil), nil, func(_ http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
		told <- context.Cause(r.Context())
		<-leave
		ended <- time.Now()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	gone := posting(ctx, s, "/things/7")
	receive(t, entered, "the handler runs")
	cancel()
	receive(t, gone, "the client leaves")
	if err := receive(t, told, "the handler's context ends"); !errors.Is(err, context.Canceled) || errors.Is(err, lock.ErrLost) {
		t.Errorf("cause %v, want that the client has left", err)
	}
	for i := 0; i < 20 && !t.Failed(); i++ { // a lock given back too early is seen by one of them
		wantProblem(t, "while the handler goes on", post(t, s, "/things/7"), http.StatusLocked, lockhttp.TypeLocked)
	}
	close(leave)
	since := receive(t, ended, "the handler ends")
	wantFree(t, client, "7")
	t.Logf("free %v after", time.Since(since))
}

// TestTimeoutHandler answers before the handler inside has returned. On a busy
// machine it may do so before that has begun, and then is asked again.
func TestTimeoutHandler(t *testing.T) {
	client := redistest.Start(t).Client(t)
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	inner := guarded(t, open(t, client, nil), nil, func(_ http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
		<-leave
	})
	s := serve(t, http.TimeoutHandler(inner, 50*time.Millisecond, "too slow"))
	redistest.Eventually(t, bound, func() bool {
		wantStatus(t, "a slow handler", post(t, s, "/things/7"), http.StatusServiceUnavailable)
		return len(entered) > 0
	}, "the handler runs")
	if free(t, client, "7") {
		t.Error("the lock was released while the handler ran")
	}
	close(leave)
	wantFree(t, client, "7")
}

// TestLost takes the lock away while the handler runs.
func TestLost(t *testing.T) {
	const ttl = 300 * time.Millisecond
	wait := func(r *http.Request) { <-r.Context().Done() }
	tests := []struct {
		name    string
		opts    lockhttp.Options
		handler func(http.ResponseWriter, *http.Request)
		status  int
		body    string // "": the problem
	}{
		{"nothing written", lockhttp.Options{TTL: ttl}, func(_ http.ResponseWriter, r *http.Request) { wait(r) }, 503, ""},
		{"only headers set", lockhttp.Options{TTL: ttl, FenceHeader: "Lock-Fence"}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "4000")
			w.Header().Set("Etag", `"x"`)
			wait(r)
		}, 503, ""},
		{"informed", lockhttp.Options{TTL: ttl}, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			wait(r)
		}, 503, ""},
		{"written before", lockhttp.Options{TTL: ttl}, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "done")
			wait(r)
		}, 200, "done"},
		{"status written before", lockhttp.Options{TTL: ttl}, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			wait(r)
		}, 202, "-"},
		{"flushed before", lockhttp.Options{TTL: ttl}, func(w http.ResponseWriter, r *http.Request) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			wait(r)
		}, 200, "-"},
		{"copied before", lockhttp.Options{TTL: ttl}, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, struct{ io.Reader }{strings.NewReader("done")}) // no WriterTo
			wait(r)
		}, 200, "done"},
		{"the handler answers itself", lockhttp.Options{TTL: ttl}, func(w http.ResponseWriter, r *http.Request) {
			wait(r)
			http.Error(w, "stopped", http.StatusConflict)
		}, 409, "stopped"},
		{"found at the release", lockhttp.Options{TTL: long}, func(http.ResponseWriter, *http.Request) {}, 503, ""},
	}
	client := redistest.Start(t).Client(t)
	l := open(t, client, nil)
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			tc.opts.Logger = quiet
			causes := make(chan error, 1)
			h := guarded(t, l, &tc.opts, func(w http.ResponseWriter, r *http.Request) {
				if n, err := client.Del(context.Background(), "lock:{http:7}").Result(); n != 1 || err != nil {
					t.Errorf("deleted %d locks, %v", n, err)
				}
				tc.handler(w, r)
				causes <- context.Cause(r.Context())
			})
			s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Request-Id", "1")
				h.ServeHTTP(w, r)
			}))
			got := post(t, s, "/things/7")
			if cause := receive(t, causes, "the handler ends"); tc.opts.TTL == ttl && !errors.Is(cause, lock.ErrLost) {
				t.Errorf("cause %v, want %v", cause, lock.ErrLost)
			}
			wantLost(t, got, tc.status, tc.body)
		})
	}
}

func wantLost(t *testing.T, got answer, status int, body string) {
	t.Helper()
	if got.header.Get("Request-Id") != "1" {
		t.Errorf("what was set outside is gone: %v", got.header)
	}
	if body != "" {
		wantStatus(t, "what was written", got, status)
		if want := strings.Trim(body, "-"); strings.TrimSpace(got.body) != want {
			t.Errorf("body %q, want %q", got.body, want)
		}
		return
	}
	wantProblem(t, "nothing was written", got, status, lockhttp.TypeLost)
	for _, name := range []string{"Etag", "Lock-Fence"} {
		if v := got.header.Get(name); v != "" {
			t.Errorf("%s is %q, want none", name, v)
		}
	}
}

func TestMaxHold(t *testing.T) {
	client := redistest.Start(t).Client(t)
	g := newGate()
	s := serve(t, guarded(t, open(t, client, nil), &lockhttp.Options{MaxHold: 100 * time.Millisecond, Logger: quiet}, g.serve))
	wantProblem(t, "held for long", post(t, s, "/things/7"), http.StatusServiceUnavailable, lockhttp.TypeLost)
	wantFree(t, client, "7")
}

// TestRenewed has a handler that takes several times the TTL.
func TestRenewed(t *testing.T) {
	client := redistest.Start(t).Client(t)
	s := serve(t, guarded(t, open(t, client, nil), &lockhttp.Options{TTL: 300 * time.Millisecond}, func(_ http.ResponseWriter, r *http.Request) {
		over := time.NewTimer(time.Second)
		select {
		case <-over.C:
		case <-r.Context().Done():
			t.Errorf("the context ended: %v", context.Cause(r.Context()))
		}
	}))
	wantStatus(t, "a slow handler", post(t, s, "/things/7"), http.StatusOK)
}
