package cache_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/internal/redistest"
)

// Case 1: a cold key, three caches with a hundred callers each.
func TestColdKeyIsLoadedOnce(t *testing.T) {
	server := redistest.Start(t)
	source := newGated()
	source.now.Store(42)
	var caches []*cache.Cache
	var spaces []*cache.Keyspace[int64]
	for range 3 {
		c, k := openSpace(t, server.Client(t), source.load, nil)
		caches, spaces = append(caches, c), append(spaces, k)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		crowd(300, func(i int) { want(t, "caller", int64(42))(spaces[i%3].GetOrPrime(t.Context(), "a")) })
	}()
	waitsFor(t, 300, caches...)
	close(source.leave)
	<-done
	source.wantLoads(t, 1)
}

// Case 3: the loader takes three times as long as a lease lasts.
func TestSlowLoadKeepsItsLease(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var source source
		load := func(ctx context.Context, id string) (int64, error) {
			time.Sleep(6 * time.Second)
			return source.load(ctx, id)
		}
		a, first := openSpace(b, b.client(), load, nil)
		_, second := openSpace(b, b.client(), load, nil)
		source.now.Store(7)
		crowd(20, func(i int) {
			k := []*cache.Keyspace[int64]{first, second}[i%2]
			want(b, "caller", int64(7))(k.GetOrPrime(b.Context(), "a"))
		})
		source.wantLoads(b, 1)
		if s := a.Stats(); s.LeasesLost+s.StoresRefused != 0 {
			b.Errorf("%d leases lost, %d stores refused; want none", s.LeasesLost, s.StoresRefused)
		}
	})
}

// Case 4: the lease is lost in mid-load, once.
func TestLostLeaseStillAnswersItsOwnCallers(t *testing.T) {
	server := redistest.Start(t)
	source := newGated()
	client := server.Client(t)
	c, k := openSpace(t, client, source.load, nil)
	_, other := openSpace(t, server.Client(t), source.load, nil)
	source.now.Store(1)
	first := calling(func() (int64, error) { return k.GetOrPrime(t.Context(), "a") })
	<-source.entered
	if err := client.Del(t.Context(), "k:a").Err(); err != nil { // as an eviction does
		t.Fatal(err)
	}
	source.now.Store(2)
	second := calling(func() (int64, error) { return other.GetOrPrime(t.Context(), "a") })
	<-source.entered
	close(source.leave)
	got := <-first
	want(t, "the loader's own caller", int64(1))(got.value, got.err)
	got = <-second
	want(t, "the other process's caller", int64(2))(got.value, got.err)
	want(t, "a later caller", int64(2))(k.GetOrPrime(t.Context(), "a"))
	source.wantLoads(t, 2)
	if got := c.Stats().StoresRefused; got != 1 {
		t.Errorf("%d stores refused, want 1", got)
	}
}

// Case 5: what one call loaded the next one finds, and so does another process.
func TestTwoGetsInSequenceLoadOnce(t *testing.T) {
	server := redistest.Start(t)
	var source source
	source.now.Store(3)
	_, k := openSpace(t, server.Client(t), source.load, nil)
	_, other := openSpace(t, server.Client(t), source.load, nil)
	for i := range 100 {
		id := fmt.Sprint(i)
		want(t, "first", int64(3))(k.GetOrPrime(t.Context(), id))
		want(t, "second", int64(3))(k.GetOrPrime(t.Context(), id))
		want(t, "another process", int64(3))(other.Peek(t.Context(), id))
	}
	source.wantLoads(t, 100)
}

// Case 6: one of ten waiters leaves.
func TestAWaiterLeavesTheOthersShare(t *testing.T) {
	inBubble(t, func(b *bubble) {
		source := newGated()
		source.now.Store(5)
		_, k := openSpace(b, b.client(), source.load, nil)
		ctx, cancel := context.WithCancel(b.Context())
		leaver := calling(func() (int64, error) { return k.GetOrPrime(ctx, "a") })
		var rest []<-chan got[int64]
		for range 9 {
			rest = append(rest, calling(func() (int64, error) { return k.GetOrPrime(b.Context(), "a") }))
		}
		synctest.Wait()
		cancel()
		if got := <-leaver; !errors.Is(got.err, context.Canceled) {
			b.Errorf("leaver got %v, %v; want its context's error", got.value, got.err)
		}
		close(source.leave)
		for _, done := range rest {
			got := <-done
			want(b, "who stayed", int64(5))(got.value, got.err)
		}
		source.wantLoads(b, 1)
	})
}

// Case 7: distinct keys load side by side, as many as the bulkhead lets in. Every
// load waits until the bulkhead is full.
func TestDistinctKeysLoadInParallel(t *testing.T) {
	const places = 64
	server := redistest.Start(t)
	var running, most atomic.Int64
	full := make(chan struct{})
	fill := sync.OnceFunc(func() { close(full) })
	load := func(context.Context, string) (string, error) {
		n := running.Add(1)
		defer running.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == places {
			fill()
		}
		<-full
		return "v", nil
	}
	_, k := openSpace(t, server.Client(t), load, &cache.Policy{MaxConcurrentLoads: places})
	crowd(1000, func(i int) { want(t, "caller", "v")(k.GetOrPrime(t.Context(), fmt.Sprint(i))) })
	if got := most.Load(); got != places {
		t.Errorf("%d loads at once, want %d", got, places)
	}
}

// Case 9: a loader that answers at once, over many expiries. A flight whose slot
// opened before its value could be seen would load twice.
func TestLoadsEqualExpiries(t *testing.T) {
	expiries := 100_000
	if testing.Short() {
		expiries = 3_000
	}
	const keys = 200
	server := redistest.Start(t)
	client := server.Client(t)
	var source source
	c, k := openSpace(t, client, source.load, nil)
	var ids, full []string
	for i := range keys {
		ids = append(ids, fmt.Sprint(i))
		full = append(full, "k:"+fmt.Sprint(i))
	}
	for range expiries / keys {
		// Deleting them is an expiry that nobody has to wait for.
		if err := client.Del(t.Context(), full...).Err(); err != nil {
			t.Fatal(err)
		}
		crowd(2, func(int) {
			for _, id := range ids {
				want(t, "caller", int64(0))(k.GetOrPrime(t.Context(), id))
			}
		})
	}
	source.wantLoads(t, int64(expiries))
	if s := c.Stats(); s.Stored != int64(expiries) {
		t.Errorf("%d stored, want %d", s.Stored, expiries)
	}
}
