package loadctl_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/loadctl"
)

func TestFrom(t *testing.T) {
	if got := loadctl.From(t.Context()); got != nil {
		t.Errorf("From outside a load = %v, want nil", got)
	}
	var outer, inner loadctl.Control
	ctx := context.WithValue(t.Context(), loadctl.Key{}, &outer)
	if got := loadctl.From(ctx); got != &outer {
		t.Errorf("From = %p, want the control %p", got, &outer)
	}
	nested := context.WithValue(ctx, loadctl.Key{}, &inner)
	if got := loadctl.From(nested); got != &inner {
		t.Errorf("From in a nested load = %p, want the inner control %p", got, &inner)
	}
	if got := loadctl.From(context.WithoutCancel(ctx)); got != &outer {
		t.Errorf("From a detached context = %p, want %p", got, &outer)
	}
}

func TestOutcome(t *testing.T) {
	tests := []struct {
		name    string
		load    func(*loadctl.Control)
		ttl     time.Duration
		noStore bool
		err     string
	}{
		{name: "nothing said", load: func(*loadctl.Control) {}},
		{name: "TTL", load: func(c *loadctl.Control) { c.SetTTL(time.Second) }, ttl: time.Second},
		{name: "last TTL counts", load: func(c *loadctl.Control) {
			c.SetTTL(time.Second)
			c.SetTTL(time.Minute)
		}, ttl: time.Minute},
		{name: "no store", load: func(c *loadctl.Control) { c.NoStore() }, noStore: true},
		{name: "zero TTL", load: func(c *loadctl.Control) { c.SetTTL(0) }, err: "SetTTL(ctx, 0s)"},
		{name: "negative TTL after a good one", load: func(c *loadctl.Control) {
			c.SetTTL(time.Second)
			c.SetTTL(-time.Second)
		}, ttl: time.Second, err: "SetTTL(ctx, -1s)"},
		{name: "first misuse counts", load: func(c *loadctl.Control) {
			c.Misuse(errors.New("first"))
			c.SetTTL(0)
		}, err: "first"},
		{name: "sealed", load: func(c *loadctl.Control) {
			c.SetTTL(time.Second)
			c.Seal()
			c.SetTTL(time.Hour)
			c.SetTTL(-1)
			c.NoStore()
		}, ttl: time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c loadctl.Control
			tt.load(&c)
			ttl, noStore, err := c.Outcome()
			if ttl != tt.ttl || noStore != tt.noStore {
				t.Errorf("Outcome = %v, %v; want %v, %v", ttl, noStore, tt.ttl, tt.noStore)
			}
			checkError(t, err, tt.err)
		})
	}
}

// checkError wants no error for an empty prefix, else one that begins with it.
func checkError(t *testing.T, err error, prefix string) {
	t.Helper()
	switch {
	case prefix == "" && err != nil:
		t.Errorf("error = %v, want none", err)
	case prefix != "" && (err == nil || !strings.HasPrefix(err.Error(), prefix)):
		t.Errorf("error = %v, want one beginning with %q", err, prefix)
	}
}

func TestPreviousValue(t *testing.T) {
	var none loadctl.Control
	if v, ok := none.PreviousValue(); ok {
		t.Errorf("PreviousValue without one = %v, true; want false", v)
	}
	calls := 0
	c := loadctl.Control{Previous: func() (any, bool) { calls++; return "old", true }}
	if v, ok := c.PreviousValue(); v != "old" || !ok {
		t.Errorf("PreviousValue = %v, %v; want old, true", v, ok)
	}
	c.Seal()
	if v, ok := c.PreviousValue(); ok || calls != 1 {
		t.Errorf("PreviousValue after Seal = %v, %v after %d calls; want false after 1", v, ok, calls)
	}
}

// TestConcurrentUse is for the race detector: a loader's goroutines and the cache
// use the control at the same time, and nothing changes once it is sealed.
func TestConcurrentUse(t *testing.T) {
	c := &loadctl.Control{Previous: func() (any, bool) { return 1, true }}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				c.SetTTL(time.Duration(i*200 + j + 1))
				c.NoStore()
				c.Misuse(errors.New("misuse"))
				c.PreviousValue()
			}
		})
	}
	c.Seal()
	ttl, noStore, err := c.Outcome()
	wg.Wait()
	ttl2, noStore2, err2 := c.Outcome()
	if ttl != ttl2 || noStore != noStore2 || err != err2 {
		t.Errorf("Outcome changed after Seal from %v, %v, %v to %v, %v, %v", ttl, noStore, err, ttl2, noStore2, err2)
	}
}
