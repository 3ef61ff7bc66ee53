package cache_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/internal/proxy"
	"github.com/getorprime/getorprime/internal/redistest"
)

// takes returns a loader that ignores its context for d.
func takes(s *source, d time.Duration) func(context.Context, string) (int64, error) {
	return func(ctx context.Context, id string) (int64, error) {
		v, err := s.load(ctx, id)
		time.Sleep(d)
		return v, err
	}
}

// Case 10: who started the load leaves, ninety-nine others wait on.
func TestTheLeaderLeaves(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var source source
		source.now.Store(8)
		_, k := openSpace(b, b.client(), takes(&source, 300*time.Millisecond), nil)
		start := time.Now()
		ctx, cancel := context.WithTimeout(b.Context(), 50*time.Millisecond)
		defer cancel()
		leader := calling(func() (int64, error) { return k.GetOrPrime(ctx, "a") })
		time.Sleep(time.Millisecond)
		others := make(chan struct{})
		go func() {
			defer close(others)
			crowd(99, func(int) { want(b, "who stayed", int64(8))(k.GetOrPrime(b.Context(), "a")) })
		}()
		got := <-leader
		if took := time.Since(start); !errors.Is(got.err, context.DeadlineExceeded) || took != 50*time.Millisecond {
			b.Errorf("leader got %v after %v, want its deadline's error after 50ms", got.err, took)
		}
		<-others
		if took := time.Since(start); took != 300*time.Millisecond {
			b.Errorf("the others were served after %v, want 300ms", took)
		}
		source.wantLoads(b, 1)
	})
}

// Case 11: a deadline before the end of a load that ignores its context. The
// bubble ends only if all goroutines do.
func TestADeadlineBeforeTheLoadEnds(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var source source
		c, k := openSpace(b, b.client(), takes(&source, 2*time.Second), nil)
		stays := calling(func() (int64, error) { return k.GetOrPrime(b.Context(), "a") })
		ctx, cancel := context.WithTimeout(b.Context(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := k.GetOrPrime(ctx, "a")
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != 100*time.Millisecond {
			b.Errorf("waiter got %v after %v, want its deadline's error after 100ms", err, took)
		}
		got := <-stays
		want(b, "who stayed", int64(0))(got.value, got.err)
		if s := c.Stats(); s.FlightsNow != 0 || s.HungNow != 0 || s.LeasesNow != 0 {
			b.Errorf("after the load: %d flights, %d hung, %d leases; want none", s.FlightsNow, s.HungNow, s.LeasesNow)
		}
	})
}

// Case 12: everybody leaves.
func TestEverybodyLeaves(t *testing.T) {
	inBubble(t, func(b *bubble) {
		source := newGated()
		c, k := openSpace(b, b.client(), source.load, nil)
		ctx, cancel := context.WithCancel(b.Context())
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := k.GetOrPrime(ctx, "a"); !errors.Is(err, context.Canceled) {
					b.Errorf("got %v, want the context's error", err)
				}
			})
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		synctest.Wait()
		s := c.Stats()
		if s.LoadsCanceled != 1 || s.LoadsFailed != 0 || s.HungNow != 0 {
			b.Errorf("%d loads cancelled, %d failed, %d hung; want 1, 0, 0", s.LoadsCanceled, s.LoadsFailed, s.HungNow)
		}
		if b.redis.Exists("k:a") {
			b.Error("the key exists: the lease was not given back")
		}
		close(source.leave)
		want(b, "the next caller", int64(0))(k.GetOrPrime(b.Context(), "a"))
		source.wantLoads(b, 2)
	})
}

// Case 14: the caller is cancelled while the command that takes the lease is
// under way, and its reply comes late or not at all.
func TestCancelledWhileTakingTheLease(t *testing.T) {
	tests := []struct {
		name  string
		fault proxy.Fault
	}{
		{"the reply is late", proxy.Delay(200 * time.Millisecond)},
		{"the reply is lost", proxy.DropReply()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := redistest.Start(t)
			direct := server.Client(t)
			net, client := newProxy(t, server.Addr())
			c := open(t, client, &cache.Options{LeaseTTL: time.Minute})
			k := space(t, c, "k:", new(source).load, nil)
			want(t, "warm-up", int64(0))(k.GetOrPrime(t.Context(), "warm"))
			other := newGated()
			_, held := openSpace(t, direct, other.load, nil)
			theirs := calling(func() (int64, error) { return held.GetOrPrime(t.Context(), "theirs") })
			<-other.entered

			ctx, cancel := context.WithCancel(t.Context())
			net.OnCommand(func(cmd [][]byte) proxy.Fault {
				if string(cmd[0]) != "set" {
					return proxy.Pass()
				}
				cancel()
				return tt.fault
			})
			call := calling(func() (int64, error) { return k.GetOrPrime(ctx, "a") })
			if got := <-call; !errors.Is(got.err, context.Canceled) {
				t.Errorf("got %v, want the context's error", got.err)
			}
			redistest.Eventually(t, bound, func() bool { return c.Stats().FlightsNow == 0 }, "the flight ends")
			redistest.Eventually(t, 10*time.Second, func() bool { return staysGone(t, direct, "k:a") }, "no lease is left behind")
			close(other.leave)
			got := <-theirs
			want(t, "the other key's holder", int64(0))(got.value, got.err)
			other.wantLoads(t, 1)
		})
	}
}

// staysGone reports whether key does not exist, and did not a little later either:
// a delayed command may still bring it back.
func staysGone(tb testing.TB, client *redis.Client, key string) bool {
	tb.Helper()
	for range 100 {
		n, err := client.Exists(tb.Context(), key).Result()
		if err != nil {
			tb.Fatal(err)
		}
		if n != 0 {
			return false
		}
		<-time.After(2 * time.Millisecond)
	}
	return true
}

// Case 15: the caller leaves while it sleeps between two polls.
func TestLeavingDuringABackoff(t *testing.T) {
	inBubble(t, func(b *bubble) {
		source := newGated()
		_, holder := openSpace(b, b.client(), source.load, nil)
		_, waiter := openSpace(b, b.client(), source.load, nil)
		call := calling(func() (int64, error) { return holder.GetOrPrime(b.Context(), "a") })
		<-source.entered
		ctx, cancel := context.WithTimeout(b.Context(), 333*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := waiter.GetOrPrime(ctx, "a")
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != 333*time.Millisecond {
			b.Errorf("got %v after %v, want the deadline's error after 333ms", err, took)
		}
		close(source.leave)
		got := <-call
		want(b, "holder", int64(0))(got.value, got.err)
		source.wantLoads(b, 1)
	})
}

type userKey struct{}

func TestWhatOfTheContextReachesTheLoader(t *testing.T) {
	inBubble(t, func(b *bubble) {
		load := func(ctx context.Context, _ string) (string, error) {
			at, limited := ctx.Deadline()
			if left := time.Until(at); !limited || left != 7*time.Second {
				b.Errorf("the load has %v (limited %v), want the policy's 7s", left, limited)
			}
			return fmt.Sprint("for ", ctx.Value(userKey{})), nil
		}
		_, k := openSpace(b, b.client(), load, &cache.Policy{LoadTimeout: 7 * time.Second})
		ctx, cancel := context.WithTimeout(context.WithValue(b.Context(), userKey{}, "ada"), time.Second)
		defer cancel()
		want(b, "caller", "for ada")(k.GetOrPrime(ctx, "a"))
	})
}

func TestTheCauseOfACancellationIsReturned(t *testing.T) {
	inBubble(t, func(b *bubble) {
		source := newGated()
		_, k := openSpace(b, b.client(), source.load, nil)
		why := errors.New("client closed the connection")
		ctx, cancel := context.WithCancelCause(b.Context())
		call := calling(func() (int64, error) { return k.GetOrPrime(ctx, "a") })
		<-source.entered
		cancel(why)
		if got := <-call; !errors.Is(got.err, why) || !errors.Is(got.err, context.Canceled) {
			b.Errorf("got %v, want context.Canceled with its cause", got.err)
		}
		if _, err := k.GetOrPrime(ctx, "a"); !errors.Is(err, why) {
			b.Errorf("a call under an ended context got %v, want its cause", err)
		}
	})
}

// The caller's deadline is sooner than the answer of a slow Redis, on a hit, a
// miss and a write.
func TestACallersDeadlineBeatsASlowRedis(t *testing.T) {
	server := redistest.Start(t)
	net, client := newProxy(t, server.Addr())
	_, k := openSpace(t, client, new(source).load, nil)
	want(t, "warm-up", int64(0))(k.GetOrPrime(t.Context(), "warm"))
	net.SetDelay(0, 5*time.Second)
	calls := map[string]func(context.Context) error{
		"hit":  func(ctx context.Context) error { _, err := k.GetOrPrime(ctx, "warm"); return err },
		"miss": func(ctx context.Context) error { _, err := k.GetOrPrime(ctx, "cold"); return err },
		"peek": func(ctx context.Context) error { _, err := k.Peek(ctx, "warm"); return err },
		"set":  func(ctx context.Context) error { return k.Set(ctx, "warm", 1) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			start := time.Now()
			err := call(ctx)
			if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > 3*time.Second {
				t.Errorf("got %v after %v, want the deadline's error long before Redis answers", err, took)
			}
		})
	}
	net.SetDelay(0, 0)
}
