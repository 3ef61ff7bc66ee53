package cache_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/loader"
)

func constant[V any](v V) loader.Func[V] {
	return func(context.Context, string) (V, error) { return v, nil }
}

func TestGetOrLoad(t *testing.T) {
	inBubble(t, func(b *bubble) {
		c := open(b, b.client(), nil)
		bare := space[string](b, c, "bare:", nil, nil)
		if _, err := bare.GetOrPrime(b.Context(), "a"); !errors.Is(err, cache.ErrNoLoader) || !strings.Contains(err.Error(), `"bare:"`) {
			b.Errorf("without a loader: got %v, want ErrNoLoader that names the keyspace", err)
		}
		if _, err := bare.GetOrLoad(b.Context(), "a", nil); !errors.Is(err, cache.ErrNoLoader) {
			b.Errorf("with a nil loader: got %v, want ErrNoLoader", err)
		}
		want(b, "loaded", "given")(bare.GetOrLoad(b.Context(), "a", constant("given")))
		want(b, "hit", "given")(bare.GetOrLoad(b.Context(), "a", constant("another")))
		want(b, "hit without a loader", "given")(bare.GetOrPrime(b.Context(), "a"))

		own := space(b, c, "own:", constant("registered"), nil)
		want(b, "the one given counts", "given")(own.GetOrLoad(b.Context(), "a", constant("given")))
		want(b, "the registered one", "registered")(own.GetOrPrime(b.Context(), "b"))
	})
}

func TestPeek(t *testing.T) {
	inBubble(t, func(b *bubble) {
		source := newGated()
		_, k := openSpace(b, b.client(), source.load, &cache.Policy{TTL: time.Minute, Jitter: -1})
		miss := func(what string) {
			if v, err := k.Peek(b.Context(), "a"); v != 0 || !errors.Is(err, cache.ErrMiss) {
				b.Errorf("%s: got %v, %v; want ErrMiss", what, v, err)
			}
		}
		miss("no key")
		load := calling(func() (int64, error) { return k.GetOrPrime(b.Context(), "a") })
		<-source.entered
		miss("while it is loaded")
		source.leave <- struct{}{}
		<-load
		want(b, "loaded", int64(0))(k.Peek(b.Context(), "a"))
		time.Sleep(time.Minute)
		miss("expired")
		source.wantLoads(b, 1)
	})
}

func TestSetOverEverything(t *testing.T) {
	tests := []struct {
		name  string
		state func(b *bubble, k *cache.Keyspace[int64])
	}{
		{"nothing", func(*bubble, *cache.Keyspace[int64]) {}},
		{"a value", func(b *bubble, k *cache.Keyspace[int64]) { _ = k.Set(b.Context(), "a", 1) }},
		{"not found", func(b *bubble, k *cache.Keyspace[int64]) {
			_, _ = k.GetOrLoad(b.Context(), "a", func(context.Context, string) (int64, error) { return 0, loader.ErrNotFound })
		}},
		{"a cool-down", func(b *bubble, k *cache.Keyspace[int64]) {
			_, _ = k.GetOrLoad(b.Context(), "a", func(context.Context, string) (int64, error) { return 0, errSource })
		}},
		{"do not store", func(b *bubble, k *cache.Keyspace[int64]) {
			_, _ = k.GetOrLoad(b.Context(), "a", func(ctx context.Context, _ string) (int64, error) { loader.NoStore(ctx); return 1, nil })
		}},
		{"foreign bytes", func(b *bubble, _ *cache.Keyspace[int64]) { _ = b.redis.Set("k:a", "foreign") }},
		{"an expired value", func(b *bubble, k *cache.Keyspace[int64]) {
			_ = k.Set(b.Context(), "a", 1)
			time.Sleep(time.Minute)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				_, k := openSpace[int64](b, b.client(), nil, nil)
				_, far := openSpace[int64](b, b.client(), nil, nil)
				tt.state(b, k)
				if err := k.Set(b.Context(), "a", 7); err != nil {
					b.Fatal(err)
				}
				want(b, "here", int64(7))(k.GetOrPrime(b.Context(), "a"))
				want(b, "elsewhere", int64(7))(far.GetOrPrime(b.Context(), "a"))
				if d := b.ttl("k:a"); d > time.Minute || d < 54*time.Second {
					b.Errorf("TTL %v, want the policy's minute less at most a tenth", d)
				}
			})
		})
	}
}

// TestSetOverARunningLoad writes while a load runs, here and elsewhere: what was
// written stays, and wakes those who wait.
func TestSetOverARunningLoad(t *testing.T) {
	inBubble(t, func(b *bubble) {
		source := newGated()
		_, k := openSpace(b, b.client(), source.load, nil)
		_, far := openSpace(b, b.client(), source.load, nil)
		source.now.Store(1)
		ours := calling(func() (int64, error) { return k.GetOrPrime(b.Context(), "a") })
		<-source.entered
		theirs := calling(func() (int64, error) { return far.GetOrPrime(b.Context(), "a") })
		synctest.Wait()
		if err := k.Set(b.Context(), "a", 2); err != nil {
			b.Fatal(err)
		}
		got := <-theirs
		want(b, "who waited elsewhere", int64(2))(got.value, got.err)
		want(b, "a caller after Set", int64(2))(k.GetOrPrime(b.Context(), "a"))
		close(source.leave)
		got = <-ours
		want(b, "the load's own caller", int64(1))(got.value, got.err)
		want(b, "after the old load", int64(2))(k.GetOrPrime(b.Context(), "a"))
		source.wantLoads(b, 1)
	})
}

// Case 38: the key holds something else than a string.
func TestKeyOfAnotherKind(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	_, k := openSpace(t, client, constant("v"), nil)
	kinds := map[string][]any{
		"list": {"rpush", "k:a", "x"}, "hash": {"hset", "k:a", "f", "x"}, "set": {"sadd", "k:a", "x"}, "zset": {"zadd", "k:a", 1, "x"}, "stream": {"xadd", "k:a", "*", "f", "x"},
	}
	for kind, cmd := range kinds {
		t.Run(kind, func(t *testing.T) {
			if err := client.Do(t.Context(), cmd...).Err(); err != nil {
				t.Fatal(err)
			}
			_, get := k.GetOrPrime(t.Context(), "a")
			_, peek := k.Peek(t.Context(), "a")
			_, refresh := k.Refresh(t.Context(), "a")
			for call, err := range map[string]error{"get": get, "peek": peek, "refresh": refresh, "set": k.Set(t.Context(), "a", "w")} {
				var ke *cache.KeyError
				if !errors.As(err, &ke) || ke.Prefix != "k:" || ke.Key != "k:a" || !strings.Contains(ke.Reason, "holds a "+kind) || errors.Is(err, cache.ErrUnavailable) {
					t.Errorf("%s: got %v, want a *KeyError that names the kind", call, err)
				}
			}
			if err := k.Invalidate(t.Context(), "a"); err != nil {
				t.Errorf("Invalidate: got %v, want it to remove the key", err)
			}
			want(t, "once it is gone", "v")(k.GetOrPrime(t.Context(), "a"))
			if err := k.Invalidate(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestVersions keeps two programs' entries apart; the newer one's writes and
// invalidations take the older one's away.
func TestVersions(t *testing.T) {
	inBubble(t, func(b *bubble) {
		older := space(b, open(b, b.client(), nil), "k:", constant("old"), &cache.Policy{Version: "1"})
		bare := space(b, open(b, b.client(), nil), "k:", constant("bare"), nil)
		c := open(b, b.client(), nil)
		newer := space(b, c, "k:", constant("new"), &cache.Policy{Version: "2", OldVersions: []string{"1", ""}})
		prime := func() {
			want(b, "older", "old")(older.GetOrPrime(b.Context(), "a"))
			want(b, "bare", "bare")(bare.GetOrPrime(b.Context(), "a"))
			want(b, "newer", "new")(newer.GetOrPrime(b.Context(), "a"))
		}
		ends := map[string]func() error{
			"Invalidate":       func() error { return newer.Invalidate(b.Context(), "a") },
			"Cache.Invalidate": func() error { return c.Invalidate(b.Context(), "k:a") },
			"Set":              func() error { return newer.Set(b.Context(), "a", "new") },
		}
		for what, end := range ends {
			prime()
			if err := end(); err != nil {
				b.Fatal(err)
			}
			for _, key := range []string{"1|k:a", "k:a"} {
				if b.redis.Exists(key) {
					b.Errorf("%s of the newer version left %q of an older one", what, key)
				}
			}
			if got := b.redis.Exists("2|k:a"); got != (what == "Set") {
				b.Errorf("%s: its own entry exists: %v", what, got)
			}
		}
		prime()
		if err := older.Invalidate(b.Context(), "a"); err != nil {
			b.Fatal(err)
		}
		if !b.redis.Exists("2|k:a") || b.redis.Exists("1|k:a") {
			b.Error("the older version's Invalidate must take its own entry away and no other")
		}
	})
}

func TestNamespacesAreApart(t *testing.T) {
	inBubble(t, func(b *bubble) {
		one := space(b, open(b, b.client(), &cache.Options{Namespace: "one:"}), "k:", constant("1"), nil)
		two := space(b, open(b, b.client(), &cache.Options{Namespace: "two:"}), "k:", constant("2"), nil)
		want(b, "one", "1")(one.GetOrPrime(b.Context(), "a"))
		want(b, "two", "2")(two.GetOrPrime(b.Context(), "a"))
		if !b.redis.Exists("one:k:a") || !b.redis.Exists("two:k:a") {
			b.Errorf("keys are %q, want one:k:a and two:k:a", b.redis.Keys())
		}
	})
}
