package cache_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/internal/proxy"
	"github.com/getorprime/getorprime/internal/redistest"
)

// slowScript is a cache with a Redis budget of 5 s, for which the server, known as
// direct, takes 2 s to run the next script. When it is begun is told.
func slowScript(t *testing.T, s *source, p *cache.Policy) (direct *redis.Client, c *cache.Cache, k *cache.Keyspace[int64], begun <-chan struct{}) {
	t.Helper()
	server := redistest.Start(t)
	net, client := newProxy(t, server.Addr())
	c = open(t, client, &cache.Options{RedisBudget: 5 * time.Second})
	k = space(t, c, "k:", s.load, p)
	want(t, "warm-up", s.now.Load())(k.GetOrPrime(t.Context(), "warm"))
	s.loads.Store(0)
	running := make(chan struct{}, 1)
	var once atomic.Bool
	net.OnCommand(func(cmd [][]byte) proxy.Fault {
		if string(cmd[0]) != "evalsha" || once.Swap(true) {
			return proxy.Pass()
		}
		running <- struct{}{}
		return proxy.Delay(2 * time.Second)
	})
	return server.Client(t), c, k, running
}

// TestALeaderLeavesWhileTheValueIsStored has a leader whose deadline passes while
// Redis takes its time to store the value. It is let go; who has joined has the
// value once it is stored.
func TestALeaderLeavesWhileTheValueIsStored(t *testing.T) {
	var source source
	_, c, k, storing := slowScript(t, &source, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	leader := calling(func() (int64, error) { return k.GetOrPrime(ctx, "a") })
	<-storing
	other := calling(func() (int64, error) { return k.GetOrPrime(t.Context(), "a") })
	got := <-leader
	if took := time.Since(start); !errors.Is(got.err, context.DeadlineExceeded) || took > 1500*time.Millisecond {
		t.Errorf("leader got %v after %v, want its deadline's error long before the value is stored", got.err, took)
	}
	got = <-other
	want(t, "who joined", int64(0))(got.value, got.err)
	source.wantLoads(t, 1)
	redistest.Eventually(t, bound, func() bool { return c.Stats().FlightsNow == 0 }, "the flight ends")
}

// TestTheWaitTimeoutPassesInsideACommand has a waiter whose time is over while
// Redis answers: that is the end of its wait, and no trouble with Redis.
func TestTheWaitTimeoutPassesInsideACommand(t *testing.T) {
	var source source
	direct, c, k, _ := slowScript(t, &source, &cache.Policy{WaitTimeout: 300 * time.Millisecond})
	other := newGated()
	_, holder := openSpace(t, direct, other.load, nil)
	loading := calling(func() (int64, error) { return holder.GetOrPrime(t.Context(), "a") })
	<-other.entered
	start := time.Now()
	_, err := k.GetOrPrime(t.Context(), "a")
	if took := time.Since(start); !errors.Is(err, cache.ErrWaitTimeout) || took > 1500*time.Millisecond {
		t.Errorf("got %v after %v, want ErrWaitTimeout long before Redis answers", err, took)
	}
	source.wantLoads(t, 0)
	if s := c.Stats(); s.Degraded != 0 || s.WaitsTimedOut != 1 {
		t.Errorf("%d loads without Redis, %d waits timed out; want 0, 1", s.Degraded, s.WaitsTimedOut)
	}
	close(other.leave)
	got := <-loading
	want(t, "holder", int64(0))(got.value, got.err)
}
