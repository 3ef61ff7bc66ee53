package lockhttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
	"github.com/getorprime/getorprime/lock/lockhttp"
)

// TestOneOfAHundred sends 100 requests for one thing to two servers. The one that
// is let in stays until the others have their answers.
func TestOneOfAHundred(t *testing.T) {
	redistest.NoLeaks(t)
	server := redistest.Start(t)
	g := newGate()
	var answers []<-chan answer
	all := make(chan answer, 100)
	for range 2 {
		s := serve(t, guarded(t, open(t, server.Client(t), nil), nil, g.serve))
		for range 50 {
			answers = append(answers, posting(t.Context(), s, "/things/7"))
		}
	}
	for _, c := range answers {
		go func() { all <- <-c }()
	}
	for range 99 {
		wantProblem(t, "a second request", receive(t, all, "an answer"), http.StatusLocked, lockhttp.TypeLocked)
	}
	close(g.leave)
	wantStatus(t, "the first request", receive(t, all, "the last answer"), http.StatusOK)
	if n := len(g.entered); n != 1 {
		t.Errorf("%d requests were handled, want 1", n)
	}
	if !free(t, server.Client(t), "7") {
		t.Error("the lock is held after the answer")
	}
}

func TestOnlyTheSameThingIsLocked(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open(t, client, nil)
	g := newGate()
	things := serve(t, guarded(t, l, nil, g.serve))
	orders := serve(t, guarded(t, l, &lockhttp.Options{Prefix: "order:"}, g.serve))
	first := []<-chan answer{
		posting(t.Context(), things, "/things/7"), posting(t.Context(), things, "/things/8"), posting(t.Context(), orders, "/things/7"),
	}
	for range first {
		receive(t, g.entered, "three requests are in")
	}
	wantStatus(t, "again", post(t, things, "/things/7"), http.StatusLocked)
	wantStatus(t, "again, with a prefix", post(t, orders, "/things/7"), http.StatusLocked)
	close(g.leave)
	for _, c := range first {
		wantStatus(t, "first", receive(t, c, "the answer"), http.StatusOK)
	}
}

func TestMethods(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open(t, client, nil)
	held, err := l.Acquire(t.Context(), "http:7", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Release(context.Background()) }()
	tests := []struct {
		name    string
		methods []string
		locked  []string
		passed  []string
	}{
		{"default", nil, []string{"POST", "PUT", "PATCH", "DELETE"}, []string{"GET", "HEAD", "OPTIONS", "PURGE"}},
		{"chosen", []string{"GET", "PURGE"}, []string{"GET", "PURGE"}, []string{"POST", "HEAD"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := serve(t, guarded(t, l, &lockhttp.Options{Methods: tc.methods}, func(_ http.ResponseWriter, r *http.Request) {
				if lock.LeaseFrom(r.Context()) != nil {
					t.Errorf("%s has a lease", r.Method)
				}
			}))
			for _, m := range tc.locked {
				wantProblem(t, m, send(t.Context(), s, m, "/things/7", nil), http.StatusLocked, lockhttp.TypeLocked)
			}
			for _, m := range tc.passed {
				wantStatus(t, m, send(t.Context(), s, m, "/things/7", nil), http.StatusOK)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open(t, client, nil)
	held, err := l.Acquire(t.Context(), "http:7", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Release(context.Background()) }()
	for _, status := range []int{http.StatusConflict, http.StatusLocked, http.StatusTooManyRequests} {
		opts := &lockhttp.Options{Status: status, RetryAfter: 61 * time.Second / 2}
		s := serve(t, guarded(t, l, opts, func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") }))
		got := post(t, s, "/things/7")
		wantProblem(t, strconv.Itoa(status), got, status, lockhttp.TypeLocked)
		if after := got.header.Get("Retry-After"); after != "31" {
			t.Errorf("Retry-After %s, want 30.5 s rounded up", after)
		}
	}
}

func TestWait(t *testing.T) {
	server := redistest.Start(t)
	here, there := open(t, server.Client(t), nil), open(t, server.Client(t), nil)
	g := newGate()
	first := serve(t, guarded(t, here, nil, g.serve))
	patient := serve(t, guarded(t, there, &lockhttp.Options{Wait: bound}, g.serve))
	hasty := serve(t, guarded(t, there, &lockhttp.Options{Wait: 20 * time.Millisecond}, g.serve))

	holds := posting(t.Context(), first, "/things/7")
	receive(t, g.entered, "the first is in")
	wantProblem(t, "a short wait", post(t, hasty, "/things/7"), http.StatusLocked, lockhttp.TypeLocked)

	waiting := func(n int) {
		t.Helper()
		redistest.Eventually(t, bound, func() bool { return there.Stats().Waiting == n }, fmt.Sprintf("%d wait", n))
	}
	ctx, cancel := context.WithCancel(t.Context())
	leaves := posting(ctx, patient, "/things/7")
	waiting(1)
	cancel()
	if got := receive(t, leaves, "the client leaves"); !errors.Is(got.err, context.Canceled) {
		t.Errorf("a client that left: %+v", got)
	}
	waiting(0)

	next := posting(t.Context(), patient, "/things/7")
	waiting(1)
	g.leave <- struct{}{}
	wantStatus(t, "the first", receive(t, holds, "the first answer"), http.StatusOK)
	receive(t, g.entered, "the one that waited is in")
	g.leave <- struct{}{}
	wantStatus(t, "the one that waited", receive(t, next, "its answer"), http.StatusOK)
	if n := len(g.entered); n != 0 {
		t.Errorf("%d requests more were handled", n)
	}
}

func TestHolders(t *testing.T) {
	client := redistest.Start(t).Client(t)
	g := newGate()
	s := serve(t, guarded(t, open(t, client, nil), &lockhttp.Options{Holders: 3}, g.serve))
	var in []<-chan answer
	for range 3 {
		in = append(in, posting(t.Context(), s, "/things/7"))
		receive(t, g.entered, "another one is in")
	}
	wantProblem(t, "a fourth", post(t, s, "/things/7"), http.StatusLocked, lockhttp.TypeLocked)
	close(g.leave)
	for _, c := range in {
		wantStatus(t, "one of three", receive(t, c, "its answer"), http.StatusOK)
	}
}

func TestFence(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open(t, client, nil)
	tests := []struct {
		name string
		opts lockhttp.Options
	}{
		{"when asked for", lockhttp.Options{}},
		{"with the lock", lockhttp.Options{Fenced: true}},
		{"shown", lockhttp.Options{FenceHeader: "Lock-Fence"}},
	}
	var last atomic.Int64
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := serve(t, guarded(t, l, &tc.opts, func(w http.ResponseWriter, r *http.Request) {
				fence, err := lock.LeaseFrom(r.Context()).Fence(r.Context())
				if before := last.Swap(fence); err != nil || fence <= before {
					t.Errorf("fence %d after %d, %v", fence, before, err)
				}
			}))
			for range 3 {
				got := post(t, s, "/things/7")
				wantStatus(t, "a request", got, http.StatusOK)
				want := ""
				if tc.opts.FenceHeader != "" {
					want = strconv.FormatInt(last.Load(), 10)
				}
				if shown := got.header.Get("Lock-Fence"); shown != want {
					t.Errorf("the client is told fence %q, want %q", shown, want)
				}
			}
		})
	}
}

// TestRoundTrips counts what a request costs.
func TestRoundTrips(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open(t, client, nil)
	nothing := func(http.ResponseWriter, *http.Request) {}
	for name, opts := range map[string]*lockhttp.Options{"plain": nil, "fenced": {FenceHeader: "Lock-Fence"}} {
		s := serve(t, guarded(t, l, opts, nothing))
		wantStatus(t, name, post(t, s, "/things/7"), http.StatusOK) // connects, and loads the scripts
		if reads := redistest.SocketReads(t, client, func() { post(t, s, "/things/7") }); reads != 2 {
			t.Errorf("%s: %d round trips, want 2", name, reads)
		}
	}
}
