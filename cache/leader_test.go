package cache_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/internal/proxy"
	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/loader"
)

// slowScript is a cache with a Redis budget of 5 s, for which the server, known as
// direct, takes 2 s to run the next script.
func slowScript(t *testing.T, s *source, p *cache.Policy) (direct *redis.Client, c *cache.Cache, k *cache.Keyspace[int64]) {
	t.Helper()
	server := redistest.Start(t)
	net, client := newProxy(t, server.Addr())
	c = open(t, client, &cache.Options{RedisBudget: 5 * time.Second})
	k = space(t, c, "k:", s.load, p)
	want(t, "warm-up", s.now.Load())(k.GetOrPrime(t.Context(), "warm"))
	s.loads.Store(0)
	var once atomic.Bool
	net.OnCommand(func(cmd [][]byte) proxy.Fault {
		if string(cmd[0]) != "evalsha" || once.Swap(true) {
			return proxy.Pass()
		}
		return proxy.Delay(2 * time.Second)
	})
	return server.Client(t), c, k
}

// travel is a cache whose packets with a command take their time to reach Redis,
// from when the server's clock and the keyspace's scripts are known.
type travel struct {
	*cache.Cache
	*cache.Keyspace[int64]
}

func travels(b *bubble, d time.Duration, command string, o *cache.Options, load loader.Func[int64], p *cache.Policy) travel {
	b.Helper()
	var begun atomic.Bool
	o.DisablePubSub, o.Logger = true, slog.New(slog.DiscardHandler)
	c := open(b, b.slowly(func(packet string) time.Duration {
		if begun.Load() && strings.Contains(packet, "\r\n"+command+"\r\n") {
			return d
		}
		return 0
	}), o)
	warm := space(b, c, "warm:", constant("v"), nil)
	want(b, "warm-up", "v")(warm.GetOrPrime(b.Context(), "a"))
	begun.Store(true)
	return travel{c, space(b, c, "k:", load, p)}
}

// TestALeaderMeetsItsDeadline has a leader whose deadline passes while a command
// that ends its load is under way, for each of the ways a load ends. The leader
// leaves; the command goes on, and who has joined has the answer.
func TestALeaderMeetsItsDeadline(t *testing.T) {
	tests := []struct {
		name   string
		load   time.Duration // ignoring its context
		travel time.Duration // of the command
		close  bool          // after 2 s
		served bool          // who has joined
	}{
		{name: "FILL", load: 1500 * time.Millisecond, travel: 1900 * time.Millisecond, served: true},
		{name: "FILL gets lost", load: 1500 * time.Millisecond, travel: time.Minute, served: true},
		{name: "FAIL after the load timeout", load: time.Hour, travel: time.Minute},
		{name: "RELEASE at Close", load: time.Hour, travel: time.Minute, close: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				var source source
				k := travels(b, tt.travel, "evalsha", &cache.Options{RedisBudget: 2 * time.Second},
					takes(&source, tt.load), &cache.Policy{LoadTimeout: 2 * time.Second})
				ctx, cancel := context.WithTimeout(b.Context(), 3*time.Second)
				defer cancel()
				start := time.Now()
				leader := calling(func() (int64, error) { return k.GetOrPrime(ctx, "a") })
				synctest.Wait()
				other := calling(func() (int64, error) { return k.GetOrPrime(b.Context(), "a") })
				if tt.close {
					time.Sleep(1900 * time.Millisecond)
					ended, cancel := context.WithCancel(b.Context())
					cancel()
					go k.Close(ended)
				}
				got := <-leader
				if took := time.Since(start); !errors.Is(got.err, context.DeadlineExceeded) || took != 3*time.Second {
					b.Errorf("leader got %v after %v, want its deadline's error after 3s", got.err, took)
				}
				if got = <-other; (got.err == nil) != tt.served {
					b.Errorf("who joined got %v, %v; want a value: %v", got.value, got.err, tt.served)
				}
				time.Sleep(2 * time.Hour)
				if s := k.Stats(); s.FlightsNow+s.HungNow+s.LeasesNow != 0 {
					b.Errorf("%d flights, %d hung, %d leases at the end; want none", s.FlightsNow, s.HungNow, s.LeasesNow)
				}
			})
		})
	}
}

// cancelling cancels its caller when a load has ended.
type cancelling struct{ cancel context.CancelFunc }

func (c *cancelling) Observe(_ context.Context, e cache.Event) {
	if e.Kind == cache.Loaded && c.cancel != nil {
		c.cancel()
	}
}

// TestALeaderLeavesBeforeItStores has a leader who is cancelled when the value is
// loaded and FILL not sent yet.
func TestALeaderLeavesBeforeItStores(t *testing.T) {
	inBubble(t, func(b *bubble) {
		ctx, cancel := context.WithCancel(b.Context())
		o := &cancelling{}
		k := travels(b, time.Second, "evalsha", &cache.Options{Observer: o}, new(source).load, nil)
		o.cancel = cancel
		start := time.Now()
		_, err := k.GetOrPrime(ctx, "a")
		if took := time.Since(start); !errors.Is(err, context.Canceled) || took != 0 {
			b.Errorf("got %v after %v, want the context's error at once", err, took)
		}
	})
}

// TestADeadlineWhileTheClaimTravels has a leader whose deadline passes before SET
// NX arrives. What it did is learned all the same, and no lease left behind.
func TestADeadlineWhileTheClaimTravels(t *testing.T) {
	inBubble(t, func(b *bubble) {
		k := travels(b, 100*time.Millisecond, "set", &cache.Options{RedisBudget: 500 * time.Millisecond}, new(source).load, nil)
		ctx, cancel := context.WithTimeout(b.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := k.GetOrPrime(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("got %v, want the deadline's error", err)
		}
		time.Sleep(200 * time.Millisecond)
		if b.redis.Exists("k:a") {
			b.Error("a lease is left behind that nobody holds")
		}
	})
}

// nilError is the error that is not nil, although it is: asked what it says, it
// panics.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// TestAnErrorThatPanics has a loader return such an error: it counts as a panic of
// the load, whoever leads it and joins.
func TestAnErrorThatPanics(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var source source
		load := func(ctx context.Context, id string) (int64, error) {
			v, _ := source.load(ctx, id)
			time.Sleep(time.Second)
			if source.loads.Load() == 1 {
				return 0, (*nilError)(nil)
			}
			return v, nil
		}
		c, k := openSpace(b, b.client(), load, nil)
		crowd(3, func(int) {
			var panicked *loader.PanicError
			if _, err := k.GetOrPrime(b.Context(), "a"); !errors.As(err, &panicked) {
				b.Errorf("got %v, want a PanicError", err)
			}
		})
		time.Sleep(time.Second)
		want(b, "after the cool-down", int64(0))(k.GetOrPrime(b.Context(), "a"))
		if s := c.Stats(); s.LoadsPanicked != 1 || s.FlightsNow != 0 {
			b.Errorf("%d loads panicked, %d flights; want 1, 0", s.LoadsPanicked, s.FlightsNow)
		}
	})
}

// leaving ends the goroutine it is told of a stored value in, as a test's FailNow
// does.
type leaving struct{}

func (leaving) Observe(_ context.Context, e cache.Event) {
	if e.Kind == cache.Stored {
		runtime.Goexit()
	}
}

// TestAnObserverEndsTheLeader has the leader's goroutine end under the observer:
// who has joined is told, and the key is free.
func TestAnObserverEndsTheLeader(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var source source
		c := open(b, b.client(), &cache.Options{Observer: leaving{}})
		k := space(b, c, "k:", takes(&source, time.Second), nil)
		go func() { _, _ = k.GetOrPrime(b.Context(), "a") }()
		synctest.Wait()
		var panicked *loader.PanicError
		if _, err := k.GetOrPrime(b.Context(), "a"); !errors.As(err, &panicked) {
			b.Errorf("who joined got %v, want a PanicError", err)
		}
		want(b, "the next caller", int64(0))(k.GetOrPrime(b.Context(), "a"))
		if n := c.Stats().FlightsNow; n != 0 {
			b.Errorf("%d flights are left", n)
		}
	})
}

// leavingOnce ends the goroutine in which it is told of the first load.
type leavingOnce struct {
	quiet
	left atomic.Bool
}

func (l *leavingOnce) StartLoad(ctx context.Context, _, _ string) (context.Context, func(error)) {
	if !l.left.Swap(true) {
		runtime.Goexit()
	}
	return ctx, func(error) {}
}

func (*leavingOnce) Shared(_, _ context.Context) {}

type quiet struct{}

func (quiet) Observe(context.Context, cache.Event) {}

// TestATracerEndsTheLeader has the leader's goroutine end before the load: the
// place in the bulkhead is given back, and the lease lapses.
func TestATracerEndsTheLeader(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var source source
		c := open(b, b.client(), &cache.Options{Observer: &leavingOnce{}})
		k := space(b, c, "k:", source.load, &cache.Policy{MaxConcurrentLoads: 1})
		go func() { _, _ = k.GetOrPrime(b.Context(), "a") }()
		synctest.Wait()
		want(b, "another key", int64(0))(k.GetOrPrime(b.Context(), "b"))
		want(b, "the same key", int64(0))(k.GetOrPrime(b.Context(), "a"))
		source.wantLoads(b, 2)
		if s := c.Stats(); s.FlightsNow+s.LeasesNow != 0 {
			b.Errorf("%d flights and %d leases are left", s.FlightsNow, s.LeasesNow)
		}
	})
}

// TestTheWaitTimeoutPassesInsideACommand has a waiter whose time is over while
// Redis answers: that is the end of its wait, and no trouble with Redis.
func TestTheWaitTimeoutPassesInsideACommand(t *testing.T) {
	var source source
	direct, c, k := slowScript(t, &source, &cache.Policy{WaitTimeout: 300 * time.Millisecond})
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
