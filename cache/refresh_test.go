package cache_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/cache"
)

func TestRefreshLoadsThoughTheValueIsFresh(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var source source
		_, k := openSpace(b, b.client(), source.load, nil)
		_, far := openSpace(b, b.client(), source.load, nil)
		want(b, "loaded", int64(0))(k.GetOrPrime(b.Context(), "a"))
		source.now.Store(1)
		want(b, "refreshed", int64(1))(k.Refresh(b.Context(), "a"))
		want(b, "elsewhere", int64(1))(far.GetOrPrime(b.Context(), "a"))
		want(b, "a cold key", int64(1))(far.Refresh(b.Context(), "b"))
		source.wantLoads(b, 3)
	})
}

// TestRefreshWantsALoadOfItsTime calls Refresh while a load that began before it
// runs: in this process, and in another one.
func TestRefreshWantsALoadOfItsTime(t *testing.T) {
	for _, where := range []string{"this process", "another process"} {
		t.Run(where, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				source := newGated()
				_, k := openSpace(b, b.client(), source.load, nil)
				loading := k
				if where == "another process" {
					_, loading = openSpace(b, b.client(), source.load, nil)
				}
				source.now.Store(1)
				older := calling(func() (int64, error) { return loading.GetOrPrime(b.Context(), "a") })
				<-source.entered
				source.now.Store(2)
				refresh := calling(func() (int64, error) { return k.Refresh(b.Context(), "a") })
				synctest.Wait()
				close(source.leave)
				got := <-older
				want(b, "the older call", int64(1))(got.value, got.err)
				got = <-refresh
				want(b, "the refresh", int64(2))(got.value, got.err)
				want(b, "afterwards", int64(2))(loading.GetOrPrime(b.Context(), "a"))
				source.wantLoads(b, 2)
			})
		})
	}
}

// holding is an observer that holds back calls that miss, by their context.
type holding struct{ missed, goOn chan struct{} }

type heldKey struct{}

// Observe implements cache.Observer.
func (h *holding) Observe(ctx context.Context, e cache.Event) {
	if e.Kind == cache.Miss && ctx.Value(heldKey{}) != nil {
		close(h.missed)
		<-h.goOn
	}
}

// TestRefreshThatJoinsAnOrdinaryFlight is told of a value by a flight that began
// after the refresh, though the value's load began before.
func TestRefreshThatJoinsAnOrdinaryFlight(t *testing.T) {
	inBubble(t, func(b *bubble) {
		source := newGated()
		_, far := openSpace(b, b.client(), source.load, nil)
		hold := &holding{make(chan struct{}), make(chan struct{})}
		c := open(b, b.client(), &cache.Options{Observer: hold})
		k := space(b, c, "k:", source.load, nil)

		source.now.Store(1)
		older := calling(func() (int64, error) { return far.GetOrPrime(b.Context(), "a") })
		<-source.entered
		source.now.Store(2)
		refresh := calling(func() (int64, error) {
			return k.Refresh(context.WithValue(b.Context(), heldKey{}, true), "a")
		})
		<-hold.missed
		ordinary := calling(func() (int64, error) { return k.GetOrPrime(b.Context(), "a") })
		synctest.Wait()
		close(hold.goOn)
		synctest.Wait()
		close(source.leave)
		<-older
		<-ordinary
		got := <-refresh
		want(b, "the refresh", int64(2))(got.value, got.err)
	})
}

func TestConcurrentRefreshes(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var source source
		load := takes(&source, 100*time.Millisecond)
		_, k := openSpace(b, b.client(), load, nil)
		_, far := openSpace(b, b.client(), load, nil)
		start := time.Now()
		crowd(40, func(i int) {
			time.Sleep(time.Duration(i) * time.Millisecond)
			source.now.Add(1) // the version that this refresh has to see
			version := source.now.Load()
			got, err := []*cache.Keyspace[int64]{k, far}[i%2].Refresh(b.Context(), "a")
			if err != nil || got < version {
				b.Errorf("refresh %d: got version %d, %v; want at least %d", i, got, err, version)
			}
		})
		if n := source.loads.Load(); n > 4 {
			b.Errorf("%d loads for 40 refreshes within one load's time, want at most 4: they share", n)
		}
		if took := time.Since(start); took > time.Second {
			b.Errorf("took %v, want a few loads' time", took)
		}
	})
}

func TestAFailedRefreshKeepsTheValue(t *testing.T) {
	for _, name := range []string{"error", "panic", "load timeout"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				var fails atomic.Bool
				_, k := openSpace(b, b.client(), func(ctx context.Context, _ string) (string, error) {
					switch {
					case !fails.Load():
						return "v", nil
					case name == "panic":
						panic(errSource)
					case name == "error":
						return "", errSource
					}
					<-ctx.Done()
					return "", ctx.Err()
				}, &cache.Policy{LoadTimeout: 5 * time.Second})
				want(b, "loaded", "v")(k.GetOrPrime(b.Context(), "a"))
				fails.Store(true)
				_, err := k.Refresh(b.Context(), "a")
				if err == nil || (name != "load timeout" && !errors.Is(err, errSource)) || (name == "load timeout" && !errors.Is(err, cache.ErrLoadTimeout)) {
					b.Errorf("refresh: got %v, want why it failed", err)
				}
				want(b, "the value stays", "v")(k.GetOrPrime(b.Context(), "a"))
				if d := b.ttl("k:a"); d > time.Minute {
					b.Errorf("TTL %v, want no longer than before", d)
				}
				fails.Store(false)
				time.Sleep(250 * time.Millisecond)
				want(b, "after the cool-down", "v")(k.Refresh(b.Context(), "a"))
			})
		})
	}
}

// TestACancelledRefreshKeepsTheValue leaves a refresh that nobody else waits for.
func TestACancelledRefreshKeepsTheValue(t *testing.T) {
	inBubble(t, func(b *bubble) {
		source := newGated()
		c, k := openSpace(b, b.client(), source.load, &cache.Policy{Jitter: -1})
		if err := k.Set(b.Context(), "a", 9); err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
		defer cancel()
		if _, err := k.Refresh(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("got %v, want the deadline's error", err)
		}
		synctest.Wait()
		want(b, "the value stays", int64(9))(k.Peek(b.Context(), "a"))
		if d := b.ttl("k:a"); d > 50*time.Second {
			b.Errorf("TTL %v, want what was left before", d)
		}
		if s := c.Stats(); s.LoadsCanceled != 1 || s.LoadsFailed != 0 {
			b.Errorf("%d cancelled, %d failed; want 1, 0", s.LoadsCanceled, s.LoadsFailed)
		}
	})
}

// TestReadersDuringARefresh get the old value at once.
func TestReadersDuringARefresh(t *testing.T) {
	inBubble(t, func(b *bubble) {
		source := newGated()
		_, k := openSpace(b, b.client(), source.load, nil)
		_, far := openSpace(b, b.client(), source.load, nil)
		if err := k.Set(b.Context(), "a", 1); err != nil {
			b.Fatal(err)
		}
		source.now.Store(2)
		refresh := calling(func() (int64, error) { return k.Refresh(b.Context(), "a") })
		<-source.entered
		var wg sync.WaitGroup
		for _, k := range []*cache.Keyspace[int64]{k, far} {
			wg.Go(func() { want(b, "reader", int64(1))(k.GetOrPrime(b.Context(), "a")) })
		}
		wg.Wait()
		close(source.leave)
		got := <-refresh
		want(b, "refresh", int64(2))(got.value, got.err)
		source.wantLoads(b, 1)
	})
}
