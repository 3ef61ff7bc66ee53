package cache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/cache"
)

func TestCloseWaitsForLoads(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var source source
		c, k := openSpace(b, b.client(), takes(&source, 5*time.Second), nil)
		call := calling(func() (int64, error) { return k.GetOrPrime(b.Context(), "a") })
		synctest.Wait()
		start := time.Now()
		refused := calling(func() (int64, error) {
			time.Sleep(time.Second)
			return k.GetOrPrime(b.Context(), "a")
		})
		if err := c.Close(b.Context()); err != nil || time.Since(start) != 5*time.Second {
			b.Errorf("Close: %v after %v, want no error when the load has ended, after 5s", err, time.Since(start))
		}
		got := <-call
		want(b, "who waited", int64(0))(got.value, got.err)
		if got := <-refused; !errors.Is(got.err, cache.ErrClosed) {
			b.Errorf("a call during Close: got %v, want ErrClosed", got.err)
		}
		if err := c.Close(b.Context()); err != nil {
			b.Errorf("Close again: %v", err)
		}
		if _, err := b.redis.Get("k:a"); err != nil {
			b.Errorf("what was loaded is not stored: %v", err)
		}
	})
}

// TestCloseCancelsLoads when its context ends: those who wait are told, the
// leases are given back, and hung loaders are left behind.
func TestCloseCancelsLoads(t *testing.T) {
	inBubble(t, func(b *bubble) {
		source := newGated()
		awake := make(chan struct{})
		c, k := openSpace(b, b.client(), func(ctx context.Context, id string) (int64, error) {
			if id == "hangs" {
				<-awake
			}
			return source.load(ctx, id)
		}, nil)
		var calls []<-chan got64
		for _, id := range []string{"a", "b", "hangs"} {
			calls = append(calls, calling(func() (int64, error) { return k.GetOrPrime(b.Context(), id) }))
		}
		synctest.Wait()
		if err := k.Invalidate(b.Context(), "b"); err != nil { // its flight can be joined no more
			b.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			b.Errorf("Close: %v after %v, want its context's error after 1s", err, time.Since(start))
		}
		for i, call := range calls {
			if got := <-call; !errors.Is(got.err, cache.ErrClosed) {
				b.Errorf("caller %d: got %v, want ErrClosed", i, got.err)
			}
		}
		if keys := b.redis.Keys(); len(keys) != 0 {
			b.Errorf("keys left: %q, want no lease", keys)
		}
		if s := c.Stats(); s.LoadsCanceled != 3 || s.LoadsFailed != 0 || s.LeasesNow != 0 {
			b.Errorf("%d loads cancelled, %d failed, %d leases; want 3, 0, 0", s.LoadsCanceled, s.LoadsFailed, s.LeasesNow)
		}
		close(awake)
	})
}

// TestCloseEndsWaits for loads in other processes, too.
func TestCloseEndsWaits(t *testing.T) {
	inBubble(t, func(b *bubble) {
		source := newGated()
		_, holder := openSpace(b, b.client(), source.load, nil)
		c, waiter := openSpace(b, b.client(), source.load, nil)
		call := calling(func() (int64, error) { return holder.GetOrPrime(b.Context(), "a") })
		<-source.entered
		waits := calling(func() (int64, error) { return waiter.GetOrPrime(b.Context(), "a") })
		synctest.Wait()
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		if err := c.Close(ctx); !errors.Is(err, context.Canceled) {
			b.Errorf("Close: %v, want its context's error", err)
		}
		if got := <-waits; !errors.Is(got.err, cache.ErrClosed) {
			b.Errorf("waiter: got %v, want ErrClosed", got.err)
		}
		close(source.leave)
		got := <-call
		want(b, "holder", int64(0))(got.value, got.err)
	})
}
