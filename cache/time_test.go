package cache_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/loader"
)

// Case 32: whatever writes a key gives it an expiry.
func TestEveryKeyExpires(t *testing.T) {
	writes := map[string]func(b *bubble, k *cache.Keyspace[string]) error{
		"load":    func(b *bubble, k *cache.Keyspace[string]) error { _, err := k.GetOrPrime(b.Context(), "a"); return err },
		"refresh": func(b *bubble, k *cache.Keyspace[string]) error { _, err := k.Refresh(b.Context(), "a"); return err },
		"set":     func(b *bubble, k *cache.Keyspace[string]) error { return k.Set(b.Context(), "a", "v") },
		"not found": func(b *bubble, k *cache.Keyspace[string]) error {
			_, err := k.GetOrLoad(b.Context(), "a", func(context.Context, string) (string, error) { return "", loader.ErrNotFound })
			return wantErr(err, loader.ErrNotFound)
		},
		"own TTL": func(b *bubble, k *cache.Keyspace[string]) error {
			_, err := k.GetOrLoad(b.Context(), "a", func(ctx context.Context, _ string) (string, error) {
				loader.SetTTL(ctx, b.policyTTL)
				return "v", nil
			})
			return err
		},
	}
	for _, ttl := range []time.Duration{time.Millisecond, 999 * time.Millisecond, time.Second, 1001 * time.Millisecond, 24 * time.Hour} {
		for _, jitter := range []float64{-1, 0.1, 0.5} {
			for how, write := range writes {
				t.Run(fmt.Sprintf("%v/%v/%s", ttl, jitter, how), func(t *testing.T) {
					inBubble(t, func(b *bubble) {
						b.policyTTL = ttl
						_, k := openSpace(b, b.client(), constant("v"), &cache.Policy{TTL: ttl, NotFoundTTL: ttl, Jitter: jitter})
						if err := write(b, k); err != nil {
							b.Fatal(err)
						}
						least := time.Duration(float64(ttl) * (1 - math.Max(jitter, 0)))
						if d := b.ttl("k:a"); d > ttl || d < least.Truncate(time.Millisecond) {
							b.Errorf("TTL %v, want from %v to %v", d, least, ttl)
						}
					})
				})
			}
		}
	}
}

// wantErr returns nil if err is target.
func wantErr(err, target error) error {
	if errors.Is(err, target) {
		return nil
	}
	return fmt.Errorf("got %v, want %w", err, target)
}

// Case 32: the keys of cool-downs, leases and "do not store" expire too.
func TestKeysWithoutAValueExpire(t *testing.T) {
	inBubble(t, func(b *bubble) {
		c := open(b, b.client(), nil)
		k := space[string](b, c, "k:", nil, &cache.Policy{ErrorCooldown: time.Millisecond, LoadTimeout: time.Minute})
		_, _ = k.GetOrLoad(b.Context(), "failed", func(context.Context, string) (string, error) { return "", errSource })
		b.ttl("k:failed")
		_, _ = k.GetOrLoad(b.Context(), "unstored", func(ctx context.Context, _ string) (string, error) { loader.NoStore(ctx); return "v", nil })
		if d := b.ttl("k:unstored"); d > time.Second {
			b.Errorf("TTL of “do not store” %v, want at most 1s", d)
		}
		_, _ = k.GetOrLoad(b.Context(), "stub", func(context.Context, string) (string, error) {
			for range 10 {
				time.Sleep(5 * time.Second)
				if d := b.ttl("k:stub"); d > 62*time.Second {
					b.Errorf("TTL of a lease %v, want at most the load timeout and the lease", d)
				}
			}
			return "v", nil
		})
		if d := b.ttl("k:stub"); d > time.Minute {
			b.Errorf("TTL of what the lease became %v, want the policy's", d)
		}
	})
}

// Case 33: what was primed at once expires spread over the window of its jitter.
func TestJitterSpreadsExpiries(t *testing.T) {
	keys := 10_000
	if testing.Short() {
		keys = 2_000
	}
	server := redistest.Start(t)
	client := server.Client(t)
	_, k := openSpace(t, client, constant("v"), &cache.Policy{TTL: time.Minute, Jitter: 0.1})
	const workers = 16
	crowd(workers, func(w int) {
		for i := w; i < keys; i += workers {
			if _, err := k.GetOrPrime(t.Context(), fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		}
	})
	var tenths [10]int // how many expire in each tenth of the window
	for i := range keys {
		raw, err := client.Get(t.Context(), fmt.Sprint("k:", i)).Bytes()
		if err != nil {
			t.Fatal(err)
		}
		h, _, err := entry.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		life := h.FreshUntil - h.WrittenAt // ms, from 54 000 to 60 000
		if life < 54_000 || life > 60_000 {
			t.Fatalf("a value lives %d ms, want from 54000 to 60000", life)
		}
		tenths[min(9, (life-54_000)/600)]++
	}
	for i, n := range tenths {
		if fair := keys / 10; n < fair*3/4 || n > fair*5/4 {
			t.Errorf("%d of %d expire in tenth %d of the window, want a tenth of them: %v", n, keys, i, tenths)
		}
	}
}

// Case 34: the server's clock is half a minute off the processes', either way:
// freshness goes by the server's.
func TestClocksApart(t *testing.T) {
	for _, off := range []time.Duration{-30 * time.Second, 0, 30 * time.Second, -24 * time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				pass := func(d time.Duration) {
					for ; d > 0; d -= 5 * time.Second {
						time.Sleep(min(d, 5*time.Second))
						b.redis.SetTime(time.Now().Add(off))
					}
				}
				b.redis.SetTime(time.Now().Add(off))
				b.redis.ClockTTL(true)
				var source source
				policy := &cache.Policy{TTL: 10 * time.Minute, Jitter: -1}
				_, k := openSpace(b, b.client(), source.load, policy)
				_, far := openSpace(b, b.client(), source.load, policy)
				for round := int64(1); round <= 3; round++ {
					for _, k := range []*cache.Keyspace[int64]{k, far} {
						want(b, "loaded or found", int64(0))(k.GetOrPrime(b.Context(), "a"))
					}
					pass(10*time.Minute - time.Second)
					for _, k := range []*cache.Keyspace[int64]{k, far} {
						want(b, "a second before its end", int64(0))(k.Peek(b.Context(), "a"))
					}
					pass(time.Second)
					for _, k := range []*cache.Keyspace[int64]{k, far} {
						if _, err := k.Peek(b.Context(), "a"); !errors.Is(err, cache.ErrMiss) {
							b.Errorf("at its end: got %v, want ErrMiss", err)
						}
					}
					source.wantLoads(b, round)
				}
			})
		})
	}
}

// G9: nothing is served past its expiry, to the millisecond of the bubble; the
// key is not even there.
func TestADayOfHits(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var source source
		_, k := openSpace(b, b.client(), source.load, &cache.Policy{TTL: 24 * time.Hour, Jitter: -1})
		want(b, "loaded", int64(0))(k.GetOrPrime(b.Context(), "a"))
		source.now.Store(1)
		for range 23 {
			time.Sleep(time.Hour)
			want(b, "each hour", int64(0))(k.GetOrPrime(b.Context(), "a"))
		}
		time.Sleep(time.Hour - time.Millisecond)
		r, err := k.Fetch(b.Context(), "a")
		if err != nil || r.Value != 0 || r.Age < 24*time.Hour-2*time.Millisecond || r.TTL > 2*time.Millisecond {
			b.Errorf("at the end: got %+v, %v; want the first value, a day old", r, err)
		}
		time.Sleep(time.Millisecond)
		want(b, "after a day", int64(1))(k.GetOrPrime(b.Context(), "a"))
		source.wantLoads(b, 2)
	})
}

// TestWaitTimeout ends a wait for another process's load, which goes on.
func TestWaitTimeout(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var source source
		load := takes(&source, 20*time.Second)
		_, holder := openSpace(b, b.client(), load, nil)
		c, waiter := openSpace(b, b.client(), load, &cache.Policy{WaitTimeout: 3 * time.Second})
		call := calling(func() (int64, error) { return holder.GetOrPrime(b.Context(), "a") })
		time.Sleep(time.Second)
		start := time.Now()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				_, err := waiter.GetOrPrime(b.Context(), "a")
				if took := time.Since(start); !errors.Is(err, cache.ErrWaitTimeout) || took != 3*time.Second {
					b.Errorf("got %v after %v, want ErrWaitTimeout after 3s", err, took)
				}
			})
		}
		wg.Wait()
		if s := c.Stats(); s.WaitsTimedOut != 1 {
			b.Errorf("%d waits timed out, want 1: the callers share it", s.WaitsTimedOut)
		}
		got := <-call
		want(b, "holder", int64(0))(got.value, got.err)
		source.wantLoads(b, 1)
	})
}
