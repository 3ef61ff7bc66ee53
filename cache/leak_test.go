package cache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/loader"
)

// closeNow closes a cache within the test.
func closeNow(tb testing.TB, c *cache.Cache) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), bound)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		tb.Errorf("Close: %v", err)
	}
}

// heapInUse returns the bytes of live objects.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestG11NothingIsLeftOfManyKeys has distinct keys of every outcome come and go.
// Nothing of them stays in the process. With PROOF=full they are a million.
func TestG11NothingIsLeftOfManyKeys(t *testing.T) {
	keys := 100_000
	switch {
	case testing.Short():
		keys = 10_000
	case os.Getenv("PROOF") == "full":
		keys = 1_000_000
	}
	server := redistest.Start(t)
	redistest.NoLeaks(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 64})
	c := open(t, client, nil)
	k := space(t, c, "k:", outcomeByID, &cache.Policy{TTL: time.Millisecond, NotFoundTTL: time.Millisecond, ErrorCooldown: time.Millisecond})
	ids := make(chan int, 1000)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := range ids {
				primeAny(t, k, i)
			}
		})
	}
	before := heapInUse()
	for i := range keys {
		ids <- i
	}
	close(ids)
	wg.Wait()
	if s := c.Stats(); s.FlightsNow != 0 || s.LeasesNow != 0 || s.HungNow != 0 || s.Misses+s.Failed < int64(keys) {
		t.Errorf("%d flights, %d leases, %d hung, %d misses; want none under way and a miss per key", s.FlightsNow, s.LeasesNow, s.HungNow, s.Misses)
	}
	if after := heapInUse(); after > before+16<<20 {
		t.Errorf("the heap grew by %d MB over %d keys", (after-before)>>20, keys)
	}
	closeNow(t, c)
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	admin := server.Client(t)
	redistest.Eventually(t, bound, func() bool {
		return strings.Contains(admin.Info(t.Context(), "clients").Val(), "connected_clients:1\r\n")
	}, "all connections are closed")
	redistest.Eventually(t, bound, func() bool { return admin.DBSize(t.Context()).Val() <= 5000 }, "keys expire")
}

// outcomeByID is a loader that does for each id one of what a loader can do.
func outcomeByID(ctx context.Context, id string) (string, error) {
	switch {
	case strings.HasSuffix(id, "1"):
		return "", loader.ErrNotFound
	case strings.HasSuffix(id, "22"):
		return "", errSource
	case strings.HasSuffix(id, "33"):
		panic(id)
	case strings.HasSuffix(id, "4"):
		loader.NoStore(ctx)
	case strings.HasSuffix(id, "55"):
		<-ctx.Done()
		return "", ctx.Err()
	}
	return id, nil
}

// primeAny calls for one id, whose caller leaves if the load would wait for that.
func primeAny(t *testing.T, k *cache.Keyspace[string], i int) {
	ctx := t.Context()
	if i%100 == 55 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 2*time.Millisecond)
		defer cancel()
	}
	v, err := k.GetOrPrime(ctx, fmt.Sprint(i))
	if err == nil && v != fmt.Sprint(i) {
		t.Errorf("key %d: got %q", i, v)
	}
	if errors.Is(err, cache.ErrUnavailable) {
		t.Errorf("key %d: %v", i, err)
	}
}

// TestG3StormThroughTheCache has, in each round, a leader and waiters whose
// contexts end at the instant at which a newcomer arrives. Who stays is served,
// nothing counts as a failure, and nothing is left behind.
func TestG3StormThroughTheCache(t *testing.T) {
	rounds := 10_000
	if testing.Short() {
		rounds = 500
	}
	server := redistest.Start(t)
	redistest.NoLeaks(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 32})
	c := open(t, client, nil)
	k := space(t, c, "k:", func(ctx context.Context, id string) (string, error) {
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(time.Duration(rand.IntN(200)) * time.Microsecond):
			return id, nil // some loads are over before anybody leaves
		}
	}, nil)
	for round := range rounds {
		id := fmt.Sprint(round)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if v, err := k.GetOrPrime(ctx, id); (err == nil && v != id) || (err != nil && !errors.Is(err, context.Canceled)) {
					t.Errorf("round %d: who left got %q, %v; want the value or the context's error", round, v, err)
				}
			})
		}
		wg.Go(func() {
			<-time.After(time.Duration(rand.IntN(800)) * time.Microsecond)
			cancel()
		})
		wg.Go(func() {
			if round%2 == 0 {
				<-ctx.Done()
			}
			want(t, "newcomer", id)(k.GetOrPrime(t.Context(), id))
		})
		wg.Wait()
	}
	redistest.Eventually(t, bound, func() bool { s := c.Stats(); return s.FlightsNow == 0 && s.LeasesNow == 0 && s.HungNow == 0 }, "all flights end")
	if s := c.Stats(); s.LoadsFailed != 0 || s.CoolingHits != 0 {
		t.Errorf("%d loads failed, %d calls cooled down; want none: a cancellation is no failure", s.LoadsFailed, s.CoolingHits)
	}
	if s := c.Stats(); s.LoadsCanceled == 0 || s.Loaded == 0 {
		t.Errorf("%d loads cancelled, %d not: the storm missed one of them", s.LoadsCanceled, s.Loaded)
	}
	closeNow(t, c)
	client.Close()
}

// TestCloseUnderTraffic closes a cache while it is called: each call is answered
// or refused, and when Close has returned nothing runs any more.
func TestCloseUnderTraffic(t *testing.T) {
	rounds := 50
	if testing.Short() {
		rounds = 10
	}
	server := redistest.Start(t)
	client := server.Client(t)
	for round := range rounds {
		c := open(t, client, nil)
		k := space(t, c, "k:", func(_ context.Context, id string) (string, error) { return id, nil }, nil)
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := 0; ; i++ {
					id := fmt.Sprint(round, "-", w%4, "-", i)
					v, err := k.GetOrPrime(t.Context(), id)
					if errors.Is(err, cache.ErrClosed) {
						return
					}
					if err != nil || v != id {
						t.Errorf("got %q, %v; want an answer or ErrClosed", v, err)
						return
					}
				}
			})
		}
		waitsFor(t, 50, c)
		closeNow(t, c)
		if s := c.Stats(); s.FlightsNow != 0 || s.LeasesNow != 0 {
			t.Errorf("after Close: %d flights, %d leases", s.FlightsNow, s.LeasesNow)
		}
		loads := c.Stats().Loaded
		wg.Wait()
		if more := c.Stats().Loaded - loads; more != 0 {
			t.Errorf("%d loads ended after Close had returned", more)
		}
	}
}
