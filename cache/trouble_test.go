package cache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/internal/proxy"
	"github.com/getorprime/getorprime/internal/redistest"
)

// Case 45: the network loses one reply; the command was run. The call goes on,
// with one load, and does not wait for its own lease to lapse. The proofs over
// processes have more of it.
func TestALostReply(t *testing.T) {
	tests := []struct {
		name string
		nth  int    // of the commands that match, from 1
		verb string // of the command whose reply is lost
		call func(context.Context, *cache.Keyspace[int64]) (int64, error)
	}{
		{"read", 1, "get", getA},
		{"fill", 1, "evalsha", getA},
		{"acquire of a refresh", 1, "evalsha", refreshA},
		{"fill of a refresh", 2, "evalsha", refreshA},
		{"seize", 1, "evalsha", setA},
		{"fill of a set", 2, "evalsha", setA},
		{"invalidate", 1, "evalsha", invalidateA},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := redistest.Start(t)
			net, client := newProxy(t, server.Addr())
			c := open(t, client, &cache.Options{LeaseTTL: time.Minute})
			var source source
			k := space(t, c, "k:", source.load, nil)
			want(t, "warm-up", int64(0))(refreshA(t.Context(), k))
			if err := k.Invalidate(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			source.loads.Store(0)
			var seen atomic.Int32
			net.OnCommand(func(cmd [][]byte) proxy.Fault {
				if strings.EqualFold(string(cmd[0]), tt.verb) && int(seen.Add(1)) == tt.nth {
					return proxy.DropReply()
				}
				return proxy.Pass()
			})
			want(t, "the call", int64(0))(tt.call(t.Context(), k))
			if n := int(seen.Load()); n <= tt.nth {
				t.Errorf("%d commands %s, want one more than the lost one at least", n, tt.verb)
			}
			want(t, "a later call", int64(0))(getA(t.Context(), k))
			if s := c.Stats(); s.LeasesNow != 0 || source.loads.Load() > 1 {
				t.Errorf("%d leases, %d loads; want none and at most 1", s.LeasesNow, source.loads.Load())
			}
		})
	}
}

func getA(ctx context.Context, k *cache.Keyspace[int64]) (int64, error) {
	return k.GetOrPrime(ctx, "a")
}

func refreshA(ctx context.Context, k *cache.Keyspace[int64]) (int64, error) {
	return k.Refresh(ctx, "a")
}

func setA(ctx context.Context, k *cache.Keyspace[int64]) (int64, error) { return 0, k.Set(ctx, "a", 0) }

func invalidateA(ctx context.Context, k *cache.Keyspace[int64]) (int64, error) {
	return 0, k.Invalidate(ctx, "a")
}

// Case 48: one connection, two hundred callers, and a lease to renew meanwhile.
func TestOneConnection(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 1, PoolTimeout: bound})
	t.Cleanup(func() { client.Close() })
	c := open(t, client, &cache.Options{LeaseTTL: 900 * time.Millisecond})
	var source source
	long := make(chan struct{})
	k := space(t, c, "k:", func(ctx context.Context, id string) (int64, error) {
		if id == "long" {
			<-long
		}
		return source.load(ctx, id)
	}, nil)
	slow := calling(func() (int64, error) { return k.GetOrPrime(t.Context(), "long") })
	for round, end := 0, time.Now().Add(2*time.Second); time.Now().Before(end); round++ {
		crowd(200, func(i int) {
			want(t, "caller", int64(0))(k.GetOrPrime(t.Context(), fmt.Sprint(round, "-", i%50)))
		})
	}
	close(long)
	got := <-slow
	want(t, "the long load's caller", int64(0))(got.value, got.err)
	if s := c.Stats(); s.LeasesLost != 0 || s.StoresRefused != 0 {
		t.Errorf("%d leases lost, %d stores refused; want none: renewals were starved", s.LeasesLost, s.StoresRefused)
	}
}

// Case 49: SUBSCRIBE is refused, or Pub/Sub is turned off: polls serve everyone.
func TestWithoutPubSub(t *testing.T) {
	acls := map[string][]any{
		"SUBSCRIBE refused": {"acl", "setuser", "app", "on", "nopass", "~*", "&*", "+@all", "-subscribe"},
		"no channels":       {"acl", "setuser", "app", "on", "nopass", "~*", "+@all", "resetchannels"},
		"DisablePubSub":     {"acl", "setuser", "app", "on", "nopass", "~*", "&*", "+@all"},
	}
	for name, acl := range acls {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			if err := server.Client(t).Do(t.Context(), acl...).Err(); err != nil {
				t.Fatal(err)
			}
			client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "app", Password: "any"})
			t.Cleanup(func() { client.Close() })
			source := newGated()
			c := open(t, client, &cache.Options{DisablePubSub: name == "DisablePubSub"})
			waiter := space(t, c, "k:", source.load, nil)
			_, holder := openSpace(t, client, source.load, nil)
			call := calling(func() (int64, error) { return holder.GetOrPrime(t.Context(), "a") })
			<-source.entered
			waits := make(chan struct{})
			go func() {
				defer close(waits)
				crowd(20, func(int) { want(t, "waiter", int64(0))(waiter.GetOrPrime(t.Context(), "a")) })
			}()
			waitsFor(t, 20, c)
			close(source.leave)
			<-waits
			got := <-call
			want(t, "holder", int64(0))(got.value, got.err)
			source.wantLoads(t, 1)
			if s := c.Stats(); s.WokenByMessage != 0 {
				t.Errorf("%d woken by message, want none", s.WokenByMessage)
			}
			if err := waiter.Invalidate(t.Context(), "a"); err != nil {
				t.Errorf("Invalidate: %v", err)
			}
			if _, err := waiter.GetOrLoad(t.Context(), "fails", func(context.Context, string) (int64, error) { return 0, errSource }); !errors.Is(err, errSource) {
				t.Errorf("a failing load: got %v, want its error", err)
			}
		})
	}
}

// Redis is absent at first: New works, calls fail in time and say so, and all is
// well when it comes.
func TestRedisAbsentAtFirst(t *testing.T) {
	server := redistest.Start(t)
	net, client := newProxy(t, server.Addr())
	net.Cut()
	c := open(t, client, &cache.Options{RedisBudget: 200 * time.Millisecond})
	k := space(t, c, "k:", constant("v"), &cache.Policy{OnOutage: cache.FailFast})
	start := time.Now()
	_, err := k.GetOrPrime(t.Context(), "a")
	if took := time.Since(start); !errors.Is(err, cache.ErrUnavailable) || took > 5*time.Second {
		t.Errorf("got %v after %v, want ErrUnavailable within the budget", err, took)
	}
	if err := net.Heal(); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, bound, func() bool { _, err := k.GetOrPrime(t.Context(), "a"); return err == nil }, "the cache heals by itself")
}
