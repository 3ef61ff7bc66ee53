package cache_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/internal/redistest"
)

// Case 40: Redis is absent at the start. New succeeds, calls are answered as the
// policy says, and the cache heals by itself.
func TestStartsWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	server.Kill()
	var s source
	c := open(t, client, &cache.Options{RedisBudget: 200 * time.Millisecond})
	local := space(t, c, "local:", s.load, nil)
	failing := space(t, c, "failing:", s.load, &cache.Policy{OnOutage: cache.FailFast})

	r, err := local.Fetch(t.Context(), "a")
	if err != nil || !r.Degraded || r.Stored || !strings.Contains(r.CacheStatus(), "redis unavailable") {
		t.Errorf("LoadLocally: got %q, %v; want a degraded value", r.CacheStatus(), err)
	}
	if _, err := failing.GetOrPrime(t.Context(), "a"); !errors.Is(err, cache.ErrUnavailable) || !strings.Contains(err.Error(), `"failing:"`) {
		t.Errorf("FailFast: got %v, want ErrUnavailable that names the keyspace", err)
	}
	if err := local.Set(t.Context(), "a", 1); !errors.Is(err, cache.ErrUnavailable) {
		t.Errorf("Set: got %v, want ErrUnavailable", err)
	}
	if _, err := local.Peek(t.Context(), "a"); !errors.Is(err, cache.ErrUnavailable) {
		t.Errorf("Peek: got %v, want ErrUnavailable", err)
	}

	server.Restart()
	redistest.Eventually(t, bound, func() bool {
		r, err := local.Fetch(t.Context(), "a")
		return err == nil && r.Stored
	}, "the value is stored")
}

// Cases 41 to 43: Redis answers after 5 s, or refuses connections, or swallows
// what it is sent; and comes back.
func TestOutages(t *testing.T) {
	const budget, load = 200 * time.Millisecond, 20 * time.Millisecond
	lasts := 2 * time.Second
	if testing.Short() {
		lasts = 700 * time.Millisecond
	}
	server := redistest.Start(t)
	net, client := newProxy(t, server.Addr())
	var running, most atomic.Int64
	c := open(t, client, &cache.Options{RedisBudget: budget})
	k := space(t, c, "k:", func(context.Context, string) (int64, error) {
		defer running.Add(-1)
		for n := running.Add(1); ; {
			if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		<-time.After(load)
		return 7, nil
	}, nil)
	for _, outage := range []struct {
		name       string
		begin, end func()
	}{
		{"refused", net.Cut, func() {}},
		{"slow", func() { net.SetDelay(5*time.Second, 0) }, func() { net.SetDelay(0, 0) }},
		{"half-open", net.BlackHole, func() {}},
	} {
		t.Run(outage.name, func(t *testing.T) {
			want(t, "before", int64(7))(k.GetOrPrime(t.Context(), "a"))
			before := c.Stats()
			outage.begin()
			// A call that misses the beginning of a load waits for the next one, and
			// a command may end 50 ms after its deadline.
			if worst := hammer(t, k, lasts); worst > budget+2*load+150*time.Millisecond+slack {
				t.Errorf("a call took %v, want at most the budget of %v and two loads of %v", worst, budget, load)
			} else {
				t.Logf("the slowest call took %v", worst)
			}
			s := c.Stats()
			if s.BreakerOpened == before.BreakerOpened || s.Degraded == before.Degraded {
				t.Errorf("breaker opened %d times, %d degraded loads; want some", s.BreakerOpened-before.BreakerOpened, s.Degraded-before.Degraded)
			}
			outage.end()
			if err := net.Heal(); err != nil {
				t.Fatal(err)
			}
			healed := time.Now()
			redistest.Eventually(t, bound, func() bool {
				r, err := k.Fetch(t.Context(), "a")
				return err == nil && !r.Degraded
			}, "a healthy answer")
			if d := time.Since(healed); d > time.Second+slack {
				t.Errorf("first healthy answer after %v, want within 1 s", d)
			}
		})
	}
	if n := most.Load(); n > 1 {
		t.Errorf("%d loads of one key at a time, want 1", n)
	}
}

// hammer calls for one key 2000 times a second and returns how long the slowest
// call took.
func hammer(t *testing.T, k *cache.Keyspace[int64], lasts time.Duration) time.Duration {
	t.Helper()
	var worst atomic.Int64
	var wg sync.WaitGroup
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for start := time.Now(); time.Since(start) < lasts; <-tick.C {
		wg.Go(func() {
			asked := time.Now()
			if v, err := k.GetOrPrime(t.Context(), "a"); err != nil || v != 7 {
				t.Errorf("got %d, %v; want 7", v, err)
			}
			d := int64(time.Since(asked))
			for w := worst.Load(); d > w && !worst.CompareAndSwap(w, d); w = worst.Load() {
			}
		})
	}
	wg.Wait()
	return time.Duration(worst.Load())
}

// Case 46: the server is at maxmemory and evicts nothing. Values are returned,
// not stored; leases are freed; it heals when there is memory.
func TestFullServer(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	admin := server.Client(t)
	var s source
	c, k := openSpace(t, server.Client(t), s.load, &cache.Policy{LoadTimeout: 2 * time.Second})
	want(t, "before", int64(0))(k.GetOrPrime(t.Context(), "a"))
	set := func(limit string) {
		if err := admin.ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("1")
	for range 3 {
		r, err := k.Fetch(t.Context(), "b")
		if err != nil || r.Stored || r.Degraded {
			t.Errorf("full: stored %v, degraded %v, %v; want a value that is not stored", r.Stored, r.Degraded, err)
		}
	}
	want(t, "a value that is there", int64(0))(k.GetOrPrime(t.Context(), "a"))
	if err := k.Invalidate(t.Context(), "a"); err != nil {
		t.Errorf("Invalidate: %v", err)
	}
	set("0")
	loading := newGated()
	got := calling(func() (int64, error) { return k.GetOrLoad(t.Context(), "c", loading.load) })
	<-loading.entered
	set("1") // with the lease held
	loading.leave <- struct{}{}
	want(t, "full when it is to be stored", int64(0))((<-got).value, nil)
	if n, err := admin.Exists(t.Context(), "k:c").Result(); n != 0 || err != nil {
		t.Errorf("the lease was not freed: %d, %v", n, err)
	}
	if n := c.Stats().StoresFailed; n != 1 {
		t.Errorf("%d stores failed, want 1", n)
	}
	set("0")
	for _, id := range []string{"b", "c"} {
		if r, err := k.Fetch(t.Context(), id); err != nil || !r.Stored {
			t.Errorf("with memory again: %q stored %v, %v", id, r.Stored, err)
		}
	}
	if n := c.Stats().BreakerOpened; n != 0 {
		t.Errorf("the breaker opened %d times: a full server is there", n)
	}
}

// Case 47, and permissions: an infrastructure reply is never taken for a miss,
// nor for a loader's error, and says what it is.
func TestInfrastructureReplies(t *testing.T) {
	for _, c := range []struct {
		name    string
		begin   func(t *testing.T, admin *redis.Client)
		options redis.Options
	}{
		{"READONLY", func(t *testing.T, admin *redis.Client) {
			if err := admin.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
				t.Fatal(err)
			}
		}, redis.Options{}},
		{"NOAUTH", func(t *testing.T, admin *redis.Client) {
			if err := admin.ConfigSet(t.Context(), "requirepass", "secret").Err(); err != nil {
				t.Fatal(err)
			}
		}, redis.Options{}},
		{"NOPERM", func(t *testing.T, admin *redis.Client) {
			if err := admin.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">pw", "~*", "&*", "+@read", "+@connection", "+client", "+hello").Err(); err != nil {
				t.Fatal(err)
			}
		}, redis.Options{Username: "reader", Password: "pw"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := redistest.Start(t)
			c.begin(t, server.Client(t))
			c.options.Addr = server.Addr()
			client := redis.NewClient(&c.options)
			t.Cleanup(func() { client.Close() })
			var s source
			ca := open(t, client, &cache.Options{RedisBudget: 300 * time.Millisecond})
			k := space(t, ca, "k:", s.load, &cache.Policy{OnOutage: cache.FailFast})
			_, err := k.GetOrPrime(t.Context(), "a")
			if !errors.Is(err, cache.ErrUnavailable) || !strings.Contains(err.Error(), c.name) {
				t.Errorf("FailFast: got %v, want ErrUnavailable that says %s", err, c.name)
			}
			if n := s.loads.Load(); n != 0 {
				t.Errorf("FailFast: %d loads, want none", n)
			}
			k = space(t, ca, "local:", s.load, nil)
			if r, err := k.Fetch(t.Context(), "a"); err != nil || !r.Degraded {
				t.Errorf("LoadLocally: degraded %v, %v; want a degraded value", r.Degraded, err)
			}
		})
	}
}
