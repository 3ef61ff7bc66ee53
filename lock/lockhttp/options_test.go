package lockhttp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
	"github.com/getorprime/getorprime/lock/lockhttp"
)

func TestMiddlewareReportsAllProblems(t *testing.T) {
	_, err := lockhttp.Middleware(nil, nil, &lockhttp.Options{
		Prefix: "}", Methods: []string{"POST", "get"}, Status: 418, Wait: -1, TTL: time.Millisecond, MaxHold: -1, Holders: -1,
		FenceHeader: "a b", RetryAfter: -1,
	})
	if err == nil {
		t.Fatal("no error")
	}
	got := strings.Split(err.Error(), "\n")
	want := []string{"locker", "key", "Prefix", "Methods", "Status", "Wait", "TTL", "MaxHold", "Holders", "FenceHeader", "RetryAfter"}
	if len(got) != len(want) {
		t.Fatalf("%d problems, want %d:\n%v", len(got), len(want), err)
	}
	for i, field := range want {
		if !strings.HasPrefix(got[i], "lockhttp: "+field+" is ") && !strings.HasPrefix(got[i], "lockhttp: Options."+field+" is ") {
			t.Errorf("got %q, want %s first", got[i], field)
		}
	}
}

func TestNoMethods(t *testing.T) {
	l := open(t, redistest.Start(t).Client(t), nil)
	for _, methods := range [][]string{{}, {""}, {"PO ST"}} {
		if _, err := lockhttp.Middleware(l, lockhttp.PathKey("id"), &lockhttp.Options{Methods: methods}); err == nil {
			t.Errorf("%q were accepted", methods)
		}
	}
}

// TestBoundsAreTheLockers compares what the middleware accepts with what the
// locker does.
func TestBoundsAreTheLockers(t *testing.T) {
	l := open(t, redistest.Start(t).Client(t), nil)
	tests := []struct {
		name string
		opts lockhttp.Options
		ok   bool
	}{
		{"shortest TTL", lockhttp.Options{TTL: 10 * time.Millisecond}, true},
		{"too short", lockhttp.Options{TTL: 10*time.Millisecond - 1}, false},
		{"longest TTL", lockhttp.Options{TTL: 24 * time.Hour}, true},
		{"too long", lockhttp.Options{TTL: 24*time.Hour + 1}, false},
		{"most holders", lockhttp.Options{Holders: 10_000}, true},
		{"too many", lockhttp.Options{Holders: 10_001}, false},
		{"too few", lockhttp.Options{Holders: -1}, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, here := lockhttp.Middleware(l, lockhttp.PathKey("id"), &tc.opts)
			h, there := l.TryAcquire(t.Context(), tc.name, &lock.AcquireOptions{TTL: tc.opts.TTL, Holders: tc.opts.Holders})
			if h != nil {
				_ = h.Release(t.Context())
			}
			if (here == nil) != tc.ok || (there == nil) != tc.ok && tc.opts.TTL != 10*time.Millisecond {
				t.Errorf("the middleware says %v, the locker %v; want an error: %v", here, there, !tc.ok)
			}
		})
	}
}
