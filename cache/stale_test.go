package cache_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/loader"
)

// slow is a source whose loads take a while and can be told to fail.
type slow struct {
	source
	takes time.Duration
	fails atomic.Pointer[error]
}

func (s *slow) load(ctx context.Context, id string) (int64, error) {
	v, _ := s.source.load(ctx, id)
	time.Sleep(s.takes)
	if err := s.fails.Load(); err != nil {
		return 0, *err
	}
	return v, nil
}

func (s *slow) failWith(err error) { s.fails.Store(&err) }

// timed makes a call and returns its result and how long it took.
func timed(b *bubble, k *cache.Keyspace[int64]) (cache.Result[int64], time.Duration, error) {
	start := time.Now()
	r, err := k.Fetch(b.Context(), "a")
	return r, time.Since(start), err
}

// wantStale fails the test unless the call is answered at once with a stale value.
func wantStale(b *bubble, k *cache.Keyspace[int64], value int64) cache.Result[int64] {
	b.Helper()
	r, took, err := timed(b, k)
	if err != nil || r.Value != value || !r.Stale || took != 0 {
		b.Errorf("got %d, stale %v, after %v, %v; want %d, stale, at once", r.Value, r.Stale, took, err, value)
	}
	return r
}

// Cases 2 and 8: a stale value is the answer at once, and is refreshed once over
// all processes.
func TestStaleWhileRevalidate(t *testing.T) {
	inBubble(t, func(b *bubble) {
		s := &slow{takes: time.Second}
		policy := &cache.Policy{TTL: time.Minute, Jitter: -1, EarlyRefresh: -1, StaleWhileRevalidate: time.Minute}
		_, k := openSpace(b, b.client(), s.load, policy)
		_, far := openSpace(b, b.client(), s.load, policy)
		want(b, "cold", int64(0))(k.GetOrPrime(b.Context(), "a"))
		s.now.Store(1)
		time.Sleep(90 * time.Second)
		r := wantStale(b, k, 0)
		if got := r.CacheStatus(); got != "getorprime; hit; ttl=-30" || r.Age != 90*time.Second {
			b.Errorf("got %q, age %v; want a hit of 90 s, stale by 30", got, r.Age)
		}
		wantStale(b, far, 0)
		wantStale(b, k, 0)
		time.Sleep(1001 * time.Millisecond)
		want(b, "refreshed", int64(1))(far.GetOrPrime(b.Context(), "a"))
		s.wantLoads(b, 2)
	})
}

// G9: at its hard expiry a value is no answer any more.
func TestHardExpiry(t *testing.T) {
	inBubble(t, func(b *bubble) {
		s := &slow{takes: time.Second}
		_, k := openSpace(b, b.client(), s.load, &cache.Policy{
			TTL: time.Minute, Jitter: -1, StaleWhileRevalidate: time.Minute, StaleIfError: 2 * time.Minute,
		})
		want(b, "cold", int64(0))(k.GetOrPrime(b.Context(), "a"))
		s.now.Store(1)
		s.failWith(errors.New("down"))
		time.Sleep(3*time.Minute - 10*time.Second)
		if r, took, err := timed(b, k); err != nil || !r.Stale || took != time.Second {
			b.Errorf("before: got %v, stale %v, after %v; want a stale value when the load had failed", err, r.Stale, took)
		}
		time.Sleep(10 * time.Second)
		if r, _, err := timed(b, k); err == nil {
			b.Errorf("after: got %d, want the load's error", r.Value)
		}
	})
}

// Case 21: while a loader fails, every call is answered at once with the stale
// value; attempts go by the cool-down, not by the calls, over all processes.
func TestStaleIfError(t *testing.T) {
	inBubble(t, func(b *bubble) {
		s := &slow{}
		policy := &cache.Policy{
			TTL: time.Second, Jitter: -1, StaleWhileRevalidate: time.Hour,
			ErrorCooldown: time.Second, ErrorCooldownMax: time.Second,
		}
		var keys []*cache.Keyspace[int64]
		for range 4 {
			_, k := openSpace(b, b.client(), s.load, policy)
			keys = append(keys, k)
		}
		want(b, "cold", int64(0))(keys[0].GetOrPrime(b.Context(), "a"))
		s.failWith(errors.New("down"))
		time.Sleep(time.Second)
		loads := s.loads.Load()
		every := time.Millisecond
		if testing.Short() {
			every = 10 * time.Millisecond
		}
		for i := range int(time.Minute / every) {
			wantStale(b, keys[i%4], 0)
			time.Sleep(every)
		}
		if n := s.loads.Load() - loads; n < 50 || n > 70 {
			b.Errorf("%d attempts in a minute with a cool-down of 1 s, want 60 ± 10", n)
		}
		s.fails.Store(nil)
		s.now.Store(1)
		healed := time.Now()
		for {
			r, _, err := timed(b, keys[0])
			if err != nil || time.Since(healed) > 1100*time.Millisecond {
				b.Fatalf("after %v: got %d, %v; want the new value within one cool-down", time.Since(healed), r.Value, err)
			}
			if r.Value == 1 {
				return
			}
			time.Sleep(every)
		}
	})
}

// The cool-down of a value that is still there doubles up to its bound, and ends
// with a success.
func TestCooldownWithAValueDoubles(t *testing.T) {
	inBubble(t, func(b *bubble) {
		s := &slow{}
		_, k := openSpace(b, b.client(), s.load, &cache.Policy{
			TTL: time.Second, Jitter: -1, EarlyRefresh: -1, StaleWhileRevalidate: time.Hour,
			ErrorCooldown: 100 * time.Millisecond, ErrorCooldownMax: 400 * time.Millisecond,
		})
		want(b, "cold", int64(0))(k.GetOrPrime(b.Context(), "a"))
		s.failWith(errors.New("down"))
		time.Sleep(time.Second)
		var at []time.Duration
		start, loads := time.Now(), s.loads.Load()
		for len(at) < 6 {
			wantStale(b, k, 0)
			synctest.Wait()
			if n := s.loads.Load(); n != loads {
				loads, at = n, append(at, time.Since(start).Round(10*time.Millisecond))
			}
			time.Sleep(time.Millisecond)
		}
		for i, d := range []time.Duration{0, 100, 300, 700, 1100, 1500} {
			if d *= time.Millisecond; at[i] < d || at[i] > d+50*time.Millisecond {
				b.Errorf("attempts at %v, want number %d at %v", at, i, d)
			}
		}
	})
}

// Case 22: "not found" takes the value away, stale window or not.
func TestNotFoundEndsAStaleValue(t *testing.T) {
	inBubble(t, func(b *bubble) {
		s := &slow{}
		_, k := openSpace(b, b.client(), s.load, &cache.Policy{TTL: time.Minute, Jitter: -1, EarlyRefresh: -1, StaleWhileRevalidate: time.Hour})
		want(b, "cold", int64(0))(k.GetOrPrime(b.Context(), "a"))
		s.failWith(loader.ErrNotFound)
		time.Sleep(time.Minute)
		wantStale(b, k, 0)
		synctest.Wait()
		if _, err := k.GetOrPrime(b.Context(), "a"); !errors.Is(err, loader.ErrNotFound) {
			b.Errorf("got %v, want ErrNotFound", err)
		}
	})
}

// Case 25: an invalidation in the middle of a background refresh makes it void.
func TestInvalidateDuringARefresh(t *testing.T) {
	inBubble(t, func(b *bubble) {
		s := &slow{takes: time.Second}
		c, k := openSpace(b, b.client(), s.load, &cache.Policy{TTL: time.Minute, Jitter: -1, EarlyRefresh: -1, StaleWhileRevalidate: time.Hour})
		want(b, "cold", int64(0))(k.GetOrPrime(b.Context(), "a"))
		s.now.Store(1)
		time.Sleep(time.Minute)
		wantStale(b, k, 0) // the refresh reads 1
		time.Sleep(500 * time.Millisecond)
		s.now.Store(2)
		if err := k.Invalidate(b.Context(), "a"); err != nil {
			b.Fatal(err)
		}
		want(b, "after the invalidation", int64(2))(k.GetOrPrime(b.Context(), "a"))
		if n := c.Stats().StoresRefused; n != 1 {
			b.Errorf("%d stores refused, want that of the refresh", n)
		}
	})
}

// Cases 13 and 17: a background refresh outlives the request that started it and
// has its context's values; a panic in it leaves the value and is counted; Close
// waits for it.
func TestRefreshBehindARequest(t *testing.T) {
	type key struct{}
	inBubble(t, func(b *bubble) {
		seen := make(chan any, 10)
		var c *cache.Cache
		c, k := openSpace(b, b.client(), func(ctx context.Context, _ string) (int64, error) {
			if v := ctx.Value(key{}); v != nil {
				time.Sleep(time.Second)
				seen <- v
				if v == "panic" {
					panic(v)
				}
			}
			return 7, ctx.Err()
		}, &cache.Policy{TTL: time.Minute, Jitter: -1, EarlyRefresh: -1, StaleWhileRevalidate: time.Hour})
		want(b, "cold", int64(7))(k.GetOrPrime(b.Context(), "a"))
		for _, v := range []string{"panic", "request"} {
			time.Sleep(2 * time.Minute)
			ctx, cancel := context.WithCancel(context.WithValue(b.Context(), key{}, v))
			want(b, v, int64(7))(k.GetOrPrime(ctx, "a"))
			cancel()
			if got := <-seen; got != v {
				b.Errorf("the loader saw %v, want %v", got, v)
			}
			synctest.Wait()
		}
		if s := c.Stats(); s.LoadsPanicked != 1 || s.Loaded != 2 || s.Refreshed != 2 {
			b.Errorf("%d panicked, %d loaded, %d refreshed; want 1, 2, 2", s.LoadsPanicked, s.Loaded, s.Refreshed)
		}
		time.Sleep(2 * time.Minute)
		want(b, "last", int64(7))(k.GetOrPrime(context.WithValue(b.Context(), key{}, "last"), "a"))
		start := time.Now()
		if err := c.Close(b.Context()); err != nil || time.Since(start) != time.Second {
			b.Errorf("Close: %v after %v, want to wait for the refresh", err, time.Since(start))
		}
	})
}

// A soft timeout answers with the stale value while the load goes on.
func TestSoftTimeout(t *testing.T) {
	inBubble(t, func(b *bubble) {
		s := &slow{takes: 10 * time.Second}
		_, k := openSpace(b, b.client(), s.load, &cache.Policy{
			TTL: time.Minute, Jitter: -1, EarlyRefresh: -1, StaleIfError: time.Hour, SoftTimeout: 100 * time.Millisecond,
		})
		want(b, "cold, without a value to fall back to", int64(0))(k.GetOrPrime(b.Context(), "a"))
		s.now.Store(1)
		time.Sleep(time.Minute)
		for range 3 {
			r, took, err := timed(b, k)
			if err != nil || r.Value != 0 || took != 100*time.Millisecond || !strings.Contains(r.CacheStatus(), "fwd=stale") {
				b.Errorf("got %d after %v, %q, %v; want the stale value after 100ms", r.Value, took, r.CacheStatus(), err)
			}
		}
		time.Sleep(10 * time.Second)
		want(b, "when the load is over", int64(1))(k.GetOrPrime(b.Context(), "a"))
		s.wantLoads(b, 2)
	})
}

// MarkStale keeps a value as the answer while it is reloaded, and makes a load
// that is running void.
func TestMarkStale(t *testing.T) {
	inBubble(t, func(b *bubble) {
		s := &slow{takes: time.Second}
		c, k := openSpace(b, b.client(), s.load, &cache.Policy{TTL: time.Hour, Jitter: -1, EarlyRefresh: -1})
		want(b, "cold", int64(0))(k.GetOrPrime(b.Context(), "a"))
		s.now.Store(1)
		for _, id := range []string{"a", "never loaded"} {
			if err := k.MarkStale(b.Context(), id); err != nil {
				b.Fatal(err)
			}
		}
		wantStale(b, k, 0) // its refresh reads 1
		time.Sleep(500 * time.Millisecond)
		s.now.Store(2)
		if err := k.MarkStale(b.Context(), "a"); err != nil {
			b.Fatal(err)
		}
		time.Sleep(600 * time.Millisecond)
		wantStale(b, k, 0)
		time.Sleep(1001 * time.Millisecond)
		want(b, "refreshed", int64(2))(k.GetOrPrime(b.Context(), "a"))
		if n := c.Stats().StoresRefused; n != 1 {
			b.Errorf("%d stores refused, want that of the first refresh", n)
		}
		if err := k.MarkStale(b.Context(), ""); err == nil {
			b.Error("an empty id was accepted")
		}
	})
}
