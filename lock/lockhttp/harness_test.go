package lockhttp_test

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
	"github.com/getorprime/getorprime/lock/lockhttp"
)

const (
	// bound is how long a test waits for what should happen soon.
	bound = 20 * time.Second
	// long is a TTL that no test lives to see the end of: what is free before
	// was released.
	long = time.Hour
)

// quiet is a logger for tests in which Redis fails.
var quiet = slog.New(slog.DiscardHandler)

// open returns a locker that is closed when the test ends, with a Redis budget
// that a busy machine does not exhaust unless opts have another.
func open(tb testing.TB, client redis.UniversalClient, opts *lock.Options) *lock.Locker {
	tb.Helper()
	o := lock.Options{TTL: long, RedisBudget: bound}
	if opts != nil {
		o = *opts
	}
	l, err := lock.New(client, &o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return l
}

// guarded wraps a handler whose key is the path value id.
func guarded(tb testing.TB, l *lock.Locker, opts *lockhttp.Options, h http.HandlerFunc) http.Handler {
	tb.Helper()
	return wrap(tb, l, lockhttp.PathKey("id"), opts, h)
}

func wrap(tb testing.TB, l *lock.Locker, key lockhttp.KeyFunc, opts *lockhttp.Options, h http.HandlerFunc) http.Handler {
	tb.Helper()
	guard, err := lockhttp.Middleware(l, key, opts)
	if err != nil {
		tb.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/things/{id}", guard(h))
	return mux
}

// serve runs a server until the test ends. A test that fails lets its handlers go
// before, by cancelling their contexts.
func serve(tb testing.TB, h http.Handler) *httptest.Server {
	tb.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // handlers panic
	s.Start()
	s.Client().Timeout = bound
	tb.Cleanup(s.Close)
	tb.Cleanup(s.CloseClientConnections)
	return s
}

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

// send makes a request and reads the answer.
func send(ctx context.Context, s *httptest.Server, method, path string, body io.Reader) answer {
	r, err := http.NewRequestWithContext(ctx, method, s.URL+path, body)
	if err != nil {
		return answer{err: err}
	}
	return roundTrip(s, r)
}

func roundTrip(s *httptest.Server, r *http.Request) answer {
	w, err := s.Client().Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	return answer{w.StatusCode, w.Header, string(text), err}
}

// post makes the request of most tests.
func post(tb testing.TB, s *httptest.Server, path string) answer {
	return send(tb.Context(), s, http.MethodPost, path, nil)
}

// posting makes it in the background.
func posting(ctx context.Context, s *httptest.Server, path string) <-chan answer {
	got := make(chan answer, 1)
	go func() { got <- send(ctx, s, http.MethodPost, path, nil) }()
	return got
}

// receive waits for what has to come.
func receive[T any](tb testing.TB, c <-chan T, what string) T {
	tb.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(bound):
		tb.Fatalf("not within %v: %s", bound, what)
		panic("unreachable")
	}
}

// wantStatus reports an answer that is not the one wanted.
func wantStatus(tb testing.TB, what string, got answer, status int) {
	tb.Helper()
	if got.err != nil || got.status != status {
		tb.Errorf("%s: got %d %q, %v; want %d", what, got.status, got.body, got.err, status)
	}
}

// wantProblem reports an answer that is not the problem wanted. Those with a type
// of their own must say when to come back.
func wantProblem(tb testing.TB, what string, got answer, status int, kind string) {
	tb.Helper()
	wantStatus(tb, what, got, status)
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	if err := json.Unmarshal([]byte(got.body), &p); err != nil {
		tb.Errorf("%s: body %q: %v", what, got.body, err)
	}
	if p.Type != kind || p.Status != status || p.Title == "" || p.Detail == "" {
		tb.Errorf("%s: got %+v, want type %s and status %d", what, p, kind, status)
	}
	if got.header.Get("Content-Type") != "application/problem+json" || got.header.Get("Cache-Control") != "no-store" {
		tb.Errorf("%s: header %v", what, got.header)
	}
	after, err := strconv.Atoi(got.header.Get("Retry-After"))
	if strings.HasPrefix(kind, "https:") && (err != nil || after < 1) {
		tb.Errorf("%s: Retry-After %q", what, got.header.Get("Retry-After"))
	}
}

// gate is a handler that says when it has begun, and ends when it is let go or its
// context ends.
type gate struct {
	entered chan *http.Request // receives once per request
	leave   chan struct{}      // a request ends per value sent; close it to end all
}

func newGate() *gate {
	return &gate{entered: make(chan *http.Request, 1000), leave: make(chan struct{})}
}

func (g *gate) serve(_ http.ResponseWriter, r *http.Request) {
	g.entered <- r
	select {
	case <-g.leave:
	case <-r.Context().Done():
	}
}

// free reports whether nobody holds the lock of a thing.
func free(tb testing.TB, client redis.UniversalClient, id string) bool {
	tb.Helper()
	n, err := client.Exists(context.Background(), "lock:{http:"+id+"}").Result()
	if err != nil {
		tb.Fatal(err)
	}
	return n == 0
}

// wantFree waits until the lock of a thing is free.
func wantFree(tb testing.TB, client redis.UniversalClient, id string) {
	tb.Helper()
	redistest.Eventually(tb, bound, func() bool { return free(tb, client, id) }, "the lock of "+id+" is free")
}
