package cache_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/internal/redistest"
)

// Cases 25, 26 and 27: a load reads 1, the source becomes 2, the key is
// invalidated in some way, the load ends. A caller that comes after that gets 2
// without waiting for the old load, and so does everybody later.
func TestNoStaleFill(t *testing.T) {
	type keyspace = *cache.Keyspace[int64]
	ends := map[string]func(b *bubble, c *cache.Cache, k, far keyspace) error{
		"Invalidate":       func(b *bubble, _ *cache.Cache, k, _ keyspace) error { return k.Invalidate(b.Context(), "a") },
		"Cache.Invalidate": func(b *bubble, c *cache.Cache, _, _ keyspace) error { return c.Invalidate(b.Context(), "k:a") },
		"DEL":              func(b *bubble, _ *cache.Cache, _, _ keyspace) error { return b.client().Del(b.Context(), "k:a").Err() },
		"FLUSHALL":         func(b *bubble, _ *cache.Cache, _, _ keyspace) error { return b.client().FlushAll(b.Context()).Err() },
		"Set by another":   func(b *bubble, _ *cache.Cache, _, far keyspace) error { return far.Set(b.Context(), "a", 2) },
	}
	loads := map[string]func(b *bubble, k keyspace) func() (int64, error){
		"first load": func(b *bubble, k keyspace) func() (int64, error) {
			return func() (int64, error) { return k.GetOrPrime(b.Context(), "a") }
		},
		"refresh": func(b *bubble, k keyspace) func() (int64, error) {
			if err := k.Set(b.Context(), "a", 0); err != nil {
				b.Fatal(err)
			}
			return func() (int64, error) { return k.Refresh(b.Context(), "a") }
		},
	}
	for how, end := range ends {
		for what, load := range loads {
			t.Run(what+"/"+how, func(t *testing.T) {
				inBubble(t, func(b *bubble) {
					source := newGated()
					c, k := openSpace(b, b.client(), source.load, nil)
					_, far := openSpace(b, b.client(), source.load, nil)
					source.now.Store(1)
					old := calling(load(b, k))
					<-source.entered
					source.now.Store(2)
					if err := end(b, c, k, far); err != nil {
						b.Fatal(err)
					}
					newcomer := calling(func() (int64, error) { return far.GetOrPrime(b.Context(), "a") })
					synctest.Wait()
					close(source.leave)
					got := <-newcomer
					want(b, "newcomer in another process", int64(2))(got.value, got.err)
					got = <-old
					want(b, "the old load's caller", int64(1))(got.value, got.err)
					want(b, "later caller", int64(2))(k.GetOrPrime(b.Context(), "a"))
					if s := c.Stats(); s.StoresRefused != 1 {
						b.Errorf("%d stores refused, want 1", s.StoresRefused)
					}
				})
			})
		}
	}
}

// Case 26: a caller that comes after Invalidate is not handed the load that began
// before it, in the same process; after somebody else's DEL neither.
func TestANewcomerDoesNotJoinAnOlderLoad(t *testing.T) {
	for _, how := range []string{"Invalidate", "Invalidate elsewhere", "DEL"} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				client := b.client()
				source := newGated()
				_, k := openSpace(b, client, source.load, nil)
				_, far := openSpace(b, b.client(), source.load, nil)
				source.now.Store(1)
				old := calling(func() (int64, error) { return k.GetOrPrime(b.Context(), "a") })
				<-source.entered
				waiter := calling(func() (int64, error) { return k.GetOrPrime(b.Context(), "a") })
				synctest.Wait()
				source.now.Store(2)
				var err error
				switch how {
				case "Invalidate":
					err = k.Invalidate(b.Context(), "a")
				case "Invalidate elsewhere":
					err = far.Invalidate(b.Context(), "a")
				default:
					err = client.Del(b.Context(), "k:a").Err()
				}
				if err != nil {
					b.Fatal(err)
				}
				newcomer := calling(func() (int64, error) { return k.GetOrPrime(b.Context(), "a") })
				synctest.Wait()
				close(source.leave)
				got := <-newcomer
				want(b, "newcomer", int64(2))(got.value, got.err)
				for _, call := range []<-chan got64{old, waiter} {
					if got := <-call; got.err != nil || got.value > 2 || got.value < 1 {
						b.Errorf("who was there before: got %v, %v; want 1 or 2", got.value, got.err)
					}
				}
				want(b, "later", int64(2))(k.Peek(b.Context(), "a"))
			})
		})
	}
}

type got64 = got[int64]

// After Invalidate in this process a newcomer needs not wait for the old load.
func TestANewcomerLoadsBesideTheOldLoad(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var loads atomic.Int64
		_, k := openSpace(b, b.client(), func(context.Context, string) (int64, error) {
			n := loads.Add(1)
			if n == 1 {
				time.Sleep(10 * time.Second)
			}
			return n, nil
		}, nil)
		start := time.Now()
		old := calling(func() (int64, error) { return k.GetOrPrime(b.Context(), "a") })
		time.Sleep(time.Second)
		if err := k.Invalidate(b.Context(), "a"); err != nil {
			b.Fatal(err)
		}
		want(b, "newcomer", int64(2))(k.GetOrPrime(b.Context(), "a"))
		if took := time.Since(start); took != time.Second {
			b.Errorf("the newcomer had its answer %v after the old load began, want at once, 1s", took)
		}
		<-old
		want(b, "later", int64(2))(k.GetOrPrime(b.Context(), "a"))
	})
}

// Case 28: one hot key is invalidated again and again under load.
func TestInvalidationStorm(t *testing.T) {
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	server := redistest.Start(t)
	var source source
	var acked atomic.Int64
	var spaces []*cache.Keyspace[int64]
	for range 2 {
		_, k := openSpace(t, server.Client(t), source.load, nil)
		spaces = append(spaces, k)
	}
	stop := make(chan struct{})
	reads := make([]int, 8)
	readers := make(chan struct{})
	go func() {
		defer close(readers)
		crowd(len(reads), func(i int) {
			for {
				select {
				case <-stop:
					return
				default:
				}
				least := acked.Load()
				v, err := spaces[i%2].GetOrPrime(t.Context(), "hot")
				if err != nil || v < least {
					t.Errorf("reader %d got version %d, %v after %d was invalidated; want at least that", i, v, err, least)
				}
				reads[i]++
			}
		})
	}()
	for i := range rounds {
		version := source.now.Add(1)
		if err := spaces[i%2].Invalidate(t.Context(), "hot"); err != nil {
			t.Fatal(err)
		}
		acked.Store(version)
	}
	close(stop)
	<-readers
	if n := source.loads.Load(); n > int64(rounds)+1 {
		t.Errorf("%d loads for %d invalidations, want at most one each and the first", n, rounds)
	}
	if least := slices.Min(reads); least == 0 {
		t.Errorf("calls per reader: %v; one starved", reads)
	}
}

// Case 29: Redis cannot be reached when a key is invalidated.
func TestInvalidateWhileRedisIsDown(t *testing.T) {
	server := redistest.Start(t)
	net, client := newProxy(t, server.Addr())
	c := open(t, client, &cache.Options{RedisBudget: 500 * time.Millisecond})
	var source source
	k := space(t, c, "k:", source.load, &cache.Policy{OnOutage: cache.FailFast})
	source.now.Store(1)
	want(t, "loaded", int64(1))(k.GetOrPrime(t.Context(), "a"))
	want(t, "loaded", int64(1))(k.GetOrPrime(t.Context(), "b"))

	source.now.Store(2)
	net.Cut()
	err := k.Invalidate(t.Context(), "a")
	var ie *cache.InvalidateError
	if !errors.As(err, &ie) || !slices.Equal(ie.Keys, []string{"k:a"}) || !errors.Is(err, cache.ErrUnavailable) || !strings.Contains(err.Error(), "try again") {
		t.Errorf("got %v, want an *InvalidateError for k:a that says what to do", err)
	}
	if _, err := k.GetOrPrime(t.Context(), "a"); !errors.Is(err, cache.ErrUnavailable) || !strings.Contains(err.Error(), `"k:"`) {
		t.Errorf("while Redis is down: got %v, want ErrUnavailable that names the keyspace", err)
	}
	if err := net.Heal(); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, bound, func() bool { return client.Ping(t.Context()).Err() == nil }, "Redis is back")
	want(t, "another key", int64(1))(k.GetOrPrime(t.Context(), "b"))
	if v, err := k.Peek(t.Context(), "a"); err == nil {
		t.Errorf("Peek served %d, which should have been invalidated", v)
	}
	want(t, "after the heal", int64(2))(k.GetOrPrime(t.Context(), "a"))
	_, far := openSpace(t, server.Client(t), source.load, nil)
	want(t, "another process after that", int64(2))(far.GetOrPrime(t.Context(), "a"))
}

// A cancelled context does not keep an invalidation from being done: the
// database has committed.
func TestInvalidateUnderACancelledContext(t *testing.T) {
	inBubble(t, func(b *bubble) {
		c, k := openSpace(b, b.client(), constant("v"), nil)
		for _, id := range []string{"a", "b", "c"} {
			want(b, "loaded", "v")(k.GetOrPrime(b.Context(), id))
		}
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		if err := k.Invalidate(ctx, "a", "b"); err != nil {
			b.Errorf("Invalidate: %v", err)
		}
		if err := c.Invalidate(ctx, "k:c"); err != nil {
			b.Errorf("Cache.Invalidate: %v", err)
		}
		if keys := b.redis.Keys(); len(keys) != 0 {
			b.Errorf("keys left: %q", keys)
		}
		if s := c.Stats(); s.Invalidated != 3 {
			b.Errorf("%d invalidated, want 3", s.Invalidated)
		}
	})
}

func TestInvalidateManyAndBadKeys(t *testing.T) {
	inBubble(t, func(b *bubble) {
		c, k := openSpace(b, b.client(), constant("v"), nil)
		var ids []string
		for range 40 {
			id := strings.Repeat("x", len(ids)+1)
			ids = append(ids, id)
			want(b, "loaded", "v")(k.GetOrPrime(b.Context(), id))
		}
		if err := k.Invalidate(b.Context(), append(slices.Clone(ids), "")...); err == nil {
			b.Error("Invalidate of an empty id: no error")
		}
		if got := len(b.redis.Keys()); got != 40 {
			b.Errorf("%d keys after a refused Invalidate, want all 40", got)
		}
		var ke *cache.KeyError
		if err := c.Invalidate(b.Context(), "k:x", "k:"); !errors.As(err, &ke) {
			b.Errorf("got %v, want a *KeyError for the empty id", err)
		}
		if err := c.Invalidate(b.Context(), "nobody's"); !errors.Is(err, cache.ErrNoLoader) {
			b.Errorf("got %v, want ErrNoLoader", err)
		}
		if err := k.Invalidate(b.Context(), ids...); err != nil || len(b.redis.Keys()) != 0 {
			b.Errorf("got %v, %d keys left; want none", err, len(b.redis.Keys()))
		}
		if err := k.Invalidate(b.Context()); err != nil {
			b.Errorf("of nothing: %v", err)
		}
	})
}

// A Cluster's or a pool's odd reply is not success.
func TestInvalidateIsRefused(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	if err := admin.Do(t.Context(), "acl", "setuser", "reader", "on", "nopass", "~*", "&*", "+@all", "-evalsha", "-eval").Err(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "reader", Password: "any"})
	t.Cleanup(func() { client.Close() })
	_, k := openSpace(t, client, constant("v"), nil)
	var ie *cache.InvalidateError
	if err := k.Invalidate(t.Context(), "a", "b"); !errors.As(err, &ie) || len(ie.Keys) != 2 || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("got %v, want an *InvalidateError for both keys with the server's reason", err)
	}
}
