package cache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/loader"
)

// TestCacheStatus makes each kind of answer and compares its header with what
// RFC 9211 says.
func TestCacheStatus(t *testing.T) {
	inBubble(t, func(b *bubble) {
		policy := &cache.Policy{TTL: time.Minute, NotFoundTTL: 10 * time.Second, Jitter: -1}
		load := func(ctx context.Context, id string) (string, error) {
			time.Sleep(2 * time.Second)
			switch id {
			case "missing":
				return "", loader.ErrNotFound
			case "unstored":
				loader.NoStore(ctx)
			case "failing":
				return "", errSource
			}
			return "v", nil
		}
		_, k := openSpace(b, b.client(), load, policy)
		_, far := openSpace(b, b.client(), load, policy)
		check := func(what, id, want string, k *cache.Keyspace[string]) {
			r, _ := k.Fetch(b.Context(), id)
			if got := r.CacheStatus(); got != want {
				b.Errorf("%s: got %s, want %s", what, got, want)
			}
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			crowd(3, func(i int) {
				time.Sleep(time.Duration(i) * time.Millisecond)
				check([]string{"loads", "joins", "waits for a peer"}[i], "a", []string{
					"getorprime; fwd=miss; stored; ttl=60",
					"getorprime; fwd=miss; stored; ttl=60; collapsed",
					"getorprime; fwd=miss; stored; ttl=60; collapsed",
				}[i], []*cache.Keyspace[string]{k, k, far}[i])
			})
		}()
		<-done
		check("hit", "a", "getorprime; hit; ttl=60", k)
		time.Sleep(1500 * time.Millisecond)
		check("older hit", "a", "getorprime; hit; ttl=58", far)
		check("not found", "missing", `getorprime; fwd=miss; stored; ttl=10; detail="not found"`, k)
		check("negative hit", "missing", `getorprime; hit; ttl=10; detail="not found"`, k)
		check("not stored", "unstored", "getorprime; fwd=miss", k)
		check("failed", "failing", "getorprime; fwd=miss", k)
		check("cooling down", "failing", "getorprime; fwd=miss", far)
		check("bad key", "", "getorprime; fwd=miss", k)
	})
}

func TestNameInCacheStatus(t *testing.T) {
	tests := []struct{ name, want string }{
		{"", "getorprime"},
		{"shop", "shop"},
		{"ExampleCache", "ExampleCache"},
		{"edge-1.eu:8080/a", "edge-1.eu:8080/a"},
		{"*star", "*star"},
		{"my cache", `"my cache"`},
		{"1st", `"1st"`},
		{"a(b)", `"a(b)"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := open(t, rdb, &cache.Options{Name: tt.name, Namespace: "name:"})
			k := space[string](t, c, "k:", nil, nil)
			r, err := k.Fetch(t.Context(), "nothing")
			if got := r.CacheStatus(); got != tt.want+"; fwd=miss" || !errors.Is(err, cache.ErrNoLoader) {
				t.Errorf("got %s, %v; want %s; fwd=miss", got, err, tt.want)
			}
		})
	}
}

func TestResult(t *testing.T) {
	inBubble(t, func(b *bubble) {
		source := newGated()
		policy := &cache.Policy{TTL: time.Minute, Jitter: -1}
		_, k := openSpace(b, b.client(), source.load, policy)
		_, far := openSpace(b, b.client(), source.load, policy)
		fetch := func(k *cache.Keyspace[int64]) <-chan got[cache.Result[int64]] {
			done := calling(func() (cache.Result[int64], error) { return k.Fetch(b.Context(), "a") })
			synctest.Wait()
			return done
		}
		check := func(what string, g got[cache.Result[int64]], want cache.Result[int64]) {
			r := g.value
			if g.err != nil || r.Source != want.Source || r.Joined != want.Joined || r.Stored != want.Stored || r.TTL != want.TTL || r.Age != want.Age {
				b.Errorf("%s: got %+v, %v; want %+v", what, r, g.err, want)
			}
		}
		leads, joins, waits := fetch(k), fetch(k), fetch(far)
		source.leave <- struct{}{}
		check("leads", <-leads, cache.Result[int64]{Source: cache.FromLoad, Stored: true, TTL: time.Minute})
		check("joins", <-joins, cache.Result[int64]{Source: cache.FromLoad, Stored: true, Joined: true, TTL: time.Minute})
		check("waits", <-waits, cache.Result[int64]{Source: cache.FromPeer, Stored: true, TTL: time.Minute})
		time.Sleep(20 * time.Second)
		check("hit", <-fetch(k), cache.Result[int64]{Source: cache.FromRedis, Stored: true, Age: 20 * time.Second, TTL: 40 * time.Second})
	})
}

func TestSourceNames(t *testing.T) {
	for s, want := range map[cache.Source]string{cache.FromRedis: "redis", cache.FromLoad: "load", cache.FromPeer: "peer"} {
		if got := s.String(); got != want {
			t.Errorf("Source %d = %q, want %q", int(s), got, want)
		}
	}
}
