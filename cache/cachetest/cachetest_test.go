package cachetest_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/cache/cachetest"
	"github.com/getorprime/getorprime/internal/redistest"
)

// TestAdvanceUnderLoad checks that no call gets a value that was older than its
// TTL when the call began, whatever is under way while the clock is advanced.
// Redis keeps the values longer, so it is the process that has to tell.
func TestAdvanceUnderLoad(t *testing.T) {
	c, clock := cachetest.New(t, nil)
	const ttl, jump = time.Hour, 25 * time.Minute
	k := register(t, c, func(context.Context, string) (time.Time, error) { return clock.Now(), nil },
		cache.Policy{TTL: ttl, StaleIfError: 100 * ttl})
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				began := clock.Now()
				loaded, err := k.GetOrPrime(t.Context(), "a")
				// The value's time is taken by the server when it is stored, which may be
				// after a jump.
				if age := began.Sub(loaded); err != nil || age > ttl+jump+time.Minute {
					t.Errorf("got a value of age %v, %v", age, err)
					return
				}
			}
		})
	}
	const jumps = 48
	for range jumps {
		clock.Advance(jump)
		if _, err := k.GetOrPrime(t.Context(), "b"); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	readers.Wait()
	if s := c.Stats(); s.Hits == 0 || s.Loaded < int64(jumps*jump/ttl) {
		t.Errorf("%d hits and %d loads over %v with a TTL of %v", s.Hits, s.Loaded, jumps*jump, ttl)
	}
}

// TestAdvanceLeavesTheProcessAlone checks that deadlines and leases go by real
// time: an hour on the server does not end a load.
func TestAdvanceLeavesTheProcessAlone(t *testing.T) {
	c, clock := cachetest.New(t, nil)
	entered, leave := make(chan struct{}), make(chan struct{})
	k := register(t, c, func(ctx context.Context, _ string) (string, error) {
		close(entered)
		<-leave
		return "loaded", ctx.Err()
	}, cache.Policy{TTL: 24 * time.Hour, LoadTimeout: time.Minute})
	got := make(chan string, 1)
	go func() {
		v, err := k.GetOrPrime(t.Context(), "a")
		if err != nil {
			t.Error(err)
		}
		got <- v
	}()
	<-entered
	clock.Advance(time.Hour)
	close(leave)
	if v := <-got; v != "loaded" {
		t.Errorf("got %q, want what was loaded", v)
	}
}

// TestSettleWaitsForTheRefresh is in a bubble, where a slow loader takes no time.
func TestSettleWaitsForTheRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, clock := cachetest.New(t, nil)
		loads := 0
		k := register(t, c, func(context.Context, string) (int, error) {
			time.Sleep(time.Second)
			loads++
			return loads, nil
		}, cache.Policy{TTL: time.Hour, StaleWhileRevalidate: time.Hour})
		for i, want := range []int{1, 1, 2} {
			if got, err := k.GetOrPrime(t.Context(), "a"); got != want || err != nil {
				t.Errorf("call %d: got %d, %v; want %d", i+1, got, err, want)
			}
			clock.Settle()
			if loads != i+1 {
				t.Errorf("call %d: %d loads, want %d", i+1, loads, i+1)
			}
			clock.Advance(time.Hour)
		}
	})
}

func TestEachCacheHasItsOwnServer(t *testing.T) {
	one, first := cachetest.New(t, nil)
	other, second := cachetest.New(t, nil)
	var a, b source
	ka, kb := register(t, one, a.load, cache.Policy{TTL: time.Hour}), register(t, other, b.load, cache.Policy{TTL: time.Hour})
	for range 2 {
		ka.GetOrPrime(t.Context(), "a")
		kb.GetOrPrime(t.Context(), "a")
		first.Advance(time.Hour)
	}
	if a.count() != 2 || b.count() != 1 {
		t.Errorf("%d and %d loads, want 2 and 1", a.count(), b.count())
	}
	if ahead := first.Now().Sub(second.Now()); ahead < 2*time.Hour-time.Minute || ahead > 2*time.Hour {
		t.Errorf("the clocks are %v apart, want 2h", ahead)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	redistest.NoLeaks(t)
	t.Run("a test", func(t *testing.T) {
		c, clock := cachetest.New(t, &cache.Options{Namespace: "n:"})
		var s source
		k := register(t, c, s.load, cache.Policy{TTL: time.Hour, StaleWhileRevalidate: time.Hour})
		for range 3 {
			if _, err := k.GetOrPrime(t.Context(), "a"); err != nil {
				t.Error(err)
			}
			clock.Advance(time.Hour)
		}
	})
}

func TestMistakesFailTheTest(t *testing.T) {
	tests := []struct {
		name string
		test func(testing.TB)
		want string
	}{
		{"options", func(tb testing.TB) { cachetest.New(tb, &cache.Options{LeaseTTL: time.Hour}) }, "LeaseTTL"},
		{"backwards", func(tb testing.TB) {
			_, clock := cachetest.New(tb, nil)
			clock.Advance(-time.Second)
		}, "Advance(-1s)"},
		{"none", func(tb testing.TB) {
			_, clock := cachetest.New(tb, nil)
			clock.Advance(time.Second)
			clock.Settle()
		}, ""},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			r := &recorder{TB: t}
			got := strings.Join(r.run(func() { c.test(r) }), "\n")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("failures: %q, want one with %q", got, c.want)
			}
		})
	}
}

// TestSettleIsBounded is about a loader that does not return, in a bubble, where
// ten seconds take no time.
func TestSettleIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		failures := r.run(func() {
			c, clock := cachetest.New(r, nil)
			k := register(t, c, func(ctx context.Context, _ string) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			}, cache.Policy{})
			go k.GetOrPrime(t.Context(), "a")
			synctest.Wait()
			clock.Settle()
		})
		if len(failures) == 0 || !strings.Contains(failures[0], "Settle: 1 loads still under way after 10s") {
			t.Errorf("failures: %q, want one of Settle", failures)
		}
	})
}

// TestInABubble checks that sleeping and advancing add up, and that sleeping
// alone moves the process.
func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, clock := cachetest.New(t, nil)
		var s source
		k := register(t, c, s.load, cache.Policy{TTL: 4 * time.Hour})
		get := func(want string) {
			t.Helper()
			if got, err := k.GetOrPrime(t.Context(), "a"); got != want || err != nil {
				t.Errorf("got %q, %v; want %q", got, err, want)
			}
		}
		get("v1")
		time.Sleep(4*time.Hour - time.Millisecond)
		get("v1")
		time.Sleep(time.Millisecond)
		get("v2")
		clock.Advance(4*time.Hour - time.Millisecond)
		get("v2")
		time.Sleep(time.Millisecond)
		get("v3")
		time.Sleep(2 * time.Hour)
		clock.Advance(2*time.Hour - time.Millisecond)
		get("v3")
		clock.Advance(time.Millisecond)
		get("v4")
		if got, want := time.Until(clock.Now()), 6*time.Hour-time.Millisecond; got != want {
			t.Errorf("the server is %v ahead, want %v", got, want)
		}
	})
}
