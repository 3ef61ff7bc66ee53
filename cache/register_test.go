package cache_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/codec"
	"github.com/getorprime/getorprime/loader"
)

func TestRegisterTwice(t *testing.T) {
	c := open(t, rdb, nil)
	space(t, c, "user:", constant("v"), nil)
	_, err := cache.Register(c, "user:", constant(1), &cache.Policy{Version: "2"})
	if err == nil || !strings.Contains(err.Error(), `"user:"`) || !strings.HasPrefix(err.Error(), "cache: ") {
		t.Errorf("got %v, want an error that names the prefix", err)
	}
}

// TestSharedKeys refuses keyspaces that would build the same Redis keys out of
// version and prefix, in either order.
func TestSharedKeys(t *testing.T) {
	type keyspace struct {
		prefix  string
		version string
		old     []string
	}
	tests := []struct {
		name string
		a, b keyspace
		ok   bool
	}{
		{"version spelled out", keyspace{"1|k:", "", nil}, keyspace{"k:", "1", nil}, false},
		{"old version spelled out", keyspace{"1|k:", "", nil}, keyspace{"k:", "2", []string{"1"}}, false},
		{"different prefixes", keyspace{"a:", "1", nil}, keyspace{"b:", "1", nil}, true},
		{"different versions", keyspace{"2|k:", "", nil}, keyspace{"k:", "1", nil}, true},
	}
	for _, tt := range tests {
		for _, order := range [][2]keyspace{{tt.a, tt.b}, {tt.b, tt.a}} {
			t.Run(fmt.Sprint(tt.name, ", first ", order[0].prefix), func(t *testing.T) {
				c := open(t, rdb, nil)
				var errs []error
				for _, k := range order {
					_, err := cache.Register(c, k.prefix, constant("v"), &cache.Policy{Version: k.version, OldVersions: k.old})
					errs = append(errs, err)
				}
				if errs[0] != nil {
					t.Fatal(errs[0])
				}
				if ok := errs[1] == nil; ok != tt.ok {
					t.Errorf("got %v, want an error: %v", errs[1], !tt.ok)
				}
				if errs[1] != nil && !strings.Contains(errs[1].Error(), "choose another") {
					t.Errorf("got %v, want it to say what to do", errs[1])
				}
			})
		}
	}
}

// TestOverlappingPrefixes gives a key to the longest prefix, whichever keyspace
// was registered first.
func TestOverlappingPrefixes(t *testing.T) {
	for _, longFirst := range []bool{true, false} {
		t.Run(fmt.Sprint("longer first: ", longFirst), func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				c := open(b, b.client(), nil)
				var short, long *cache.Keyspace[string]
				if longFirst {
					long = space(b, c, "user:vip:", constant("long"), nil)
				}
				short = space(b, c, "user:", constant("short"), nil)
				if !longFirst {
					long = space(b, c, "user:vip:", constant("long"), nil)
				}
				want(b, "shorter", "short")(short.GetOrPrime(b.Context(), "7"))
				want(b, "longer", "long")(long.GetOrPrime(b.Context(), "7"))
				want(b, "shorter, nearly the longer's", "short")(short.GetOrPrime(b.Context(), "vip"))
				want(b, "untyped", "long")(cache.GetOrPrime[string](b.Context(), c, "user:vip:7"))
				want(b, "untyped", "short")(cache.GetOrPrime[string](b.Context(), c, "user:7"))
				_, get := short.GetOrPrime(b.Context(), "vip:7")
				_, peek := short.Peek(b.Context(), "vip:7")
				for what, err := range map[string]error{
					"get": get, "peek": peek, "set": short.Set(b.Context(), "vip:7", "v"), "invalidate": short.Invalidate(b.Context(), "vip:7"),
				} {
					var ke *cache.KeyError
					if !errors.As(err, &ke) || ke.Key != "user:vip:7" || ke.Prefix != "user:" || !strings.Contains(ke.Reason, `"user:vip:"`) {
						b.Errorf("%s of the other's key: got %v, want a *KeyError that names both", what, err)
					}
				}
			})
		})
	}
}

func TestEmptyID(t *testing.T) {
	inBubble(t, func(b *bubble) {
		c, k := openSpace(b, b.client(), constant("v"), nil)
		_, get := k.GetOrPrime(b.Context(), "")
		_, peek := k.Peek(b.Context(), "")
		_, untyped := cache.GetOrPrime[string](b.Context(), c, "k:")
		for what, err := range map[string]error{
			"get": get, "peek": peek, "untyped": untyped, "set": k.Set(b.Context(), "", "v"),
			"invalidate": k.Invalidate(b.Context(), ""), "untyped invalidate": c.Invalidate(b.Context(), "k:"),
		} {
			var ke *cache.KeyError
			if !errors.As(err, &ke) || !strings.Contains(err.Error(), "empty id") || !strings.Contains(err.Error(), `"k:"`) {
				b.Errorf("%s: got %v, want a *KeyError that says so", what, err)
			}
		}
		if len(b.redis.Keys()) != 0 {
			b.Errorf("keys were written: %q", b.redis.Keys())
		}
	})
}

// TestEmptyPrefix catches every key that no other prefix does.
func TestEmptyPrefix(t *testing.T) {
	inBubble(t, func(b *bubble) {
		c := open(b, b.client(), nil)
		rest := space(b, c, "", constant("rest"), nil)
		space(b, c, "user:", constant("user"), nil)
		want(b, "typed", "rest")(rest.GetOrPrime(b.Context(), "order:7"))
		want(b, "untyped", "rest")(cache.GetOrPrime[string](b.Context(), c, "x"))
		want(b, "the other's", "user")(cache.GetOrPrime[string](b.Context(), c, "user:7"))
		if _, err := cache.GetOrPrime[string](b.Context(), c, ""); err == nil {
			b.Error("an empty key: no error")
		}
	})
}

func TestTypesTheCodecCannotTake(t *testing.T) {
	c := open(t, rdb, nil)
	refused := map[string]error{}
	_, refused["func"] = cache.Register[func()](c, "func:", nil, nil)
	_, refused["chan"] = cache.Register[chan int](c, "chan:", nil, &cache.Policy{Codec: codec.JSON{}})
	_, refused["struct with Raw"] = cache.Register[page](c, "raw:", nil, &cache.Policy{Codec: codec.Raw{}})
	_, refused["codec that replaces"] = cache.Register[page](c, "alone:", nil, &cache.Policy{Codec: alone{}})
	for what, err := range refused {
		if err == nil || !strings.Contains(err.Error(), "Codec") || !strings.Contains(err.Error(), "cannot encode") {
			t.Errorf("%s: got %v, want an error that names the codec and the type", what, err)
		}
	}
	if _, err := cache.Register(c, "func:", constant("v"), nil); err != nil {
		t.Errorf("after a refused Register: %v", err)
	}
}

// alone is a codec that does not append, as its interface asks.
type alone struct{ codec.JSON }

func (a alone) MarshalAppend(_ []byte, v any) ([]byte, error) { return a.JSON.MarshalAppend(nil, v) }

// TestACodecThatDoesNotAppend is found out at the first value of a type that tells
// nothing before.
func TestACodecThatDoesNotAppend(t *testing.T) {
	inBubble(t, func(b *bubble) {
		_, k := openSpace(b, b.client(), constant[any]("v"), &cache.Policy{Codec: alone{}})
		if v, err := k.GetOrPrime(b.Context(), "a"); err == nil || !strings.Contains(err.Error(), "does not append") {
			b.Errorf("got %v, %v; want an error that says so", v, err)
		}
	})
}

func TestUntypedGetOrPrime(t *testing.T) {
	inBubble(t, func(b *bubble) {
		c := open(b, b.client(), nil)
		space(b, c, "page:", constant(&page{"1", "hello"}), nil)
		space(b, c, "text:", constant("v"), nil)
		space[*page](b, c, "nil:", constant[*page](nil), nil)
		space(b, c, "gone:", func(context.Context, string) (page, error) { return page{}, loader.ErrNotFound }, nil)

		want(b, "the type itself", "v")(cache.GetOrPrime[string](b.Context(), c, "text:7"))
		want(b, "any", any("v"))(cache.GetOrPrime[any](b.Context(), c, "text:7"))
		if s, err := cache.GetOrPrime[fmt.Stringer](b.Context(), c, "page:7"); err != nil || s.String() != "hello" {
			b.Errorf("an interface: got %v, %v; want the page", s, err)
		}
		if s, err := cache.GetOrPrime[fmt.Stringer](b.Context(), c, "nil:7"); err != nil || s != (*page)(nil) {
			b.Errorf("a nil pointer: got %v, %v; want the typed nil", s, err)
		}
		if v, err := cache.GetOrPrime[any](b.Context(), c, "gone:7"); v != nil || !errors.Is(err, loader.ErrNotFound) {
			b.Errorf("not found: got %v, %v; want ErrNotFound", v, err)
		}
		var te *cache.TypeError
		if _, err := cache.GetOrPrime[int](b.Context(), c, "text:7"); !errors.As(err, &te) || *te != (cache.TypeError{Prefix: "text:", Have: "string", Want: "int"}) {
			b.Errorf("another type: got %v, want a *TypeError", err)
		}
		if _, err := cache.GetOrPrime[io.Reader](b.Context(), c, "page:7"); !errors.As(err, &te) || te.Want != "io.Reader" {
			b.Errorf("an interface it lacks: got %v, want a *TypeError", err)
		}
		if _, err := cache.GetOrPrime[page](b.Context(), c, "page:7"); !errors.As(err, &te) || te.Have != "*cache_test.page" {
			b.Errorf("the type pointed to: got %v, want a *TypeError", err)
		}
		if _, err := cache.GetOrPrime[any](b.Context(), c, "other:7"); !errors.Is(err, cache.ErrNoLoader) || !strings.Contains(err.Error(), `"other:7"`) || !strings.Contains(err.Error(), "register one") {
			b.Errorf("no keyspace: got %v, want ErrNoLoader that says what to do", err)
		}
	})
}

// String makes a page a fmt.Stringer.
func (p *page) String() string { return p.Body }

// TestRegisterWhileInUse registers keyspaces while others are called.
func TestRegisterWhileInUse(t *testing.T) {
	c := open(t, rdb, &cache.Options{Namespace: "busy:", RedisBudget: bound})
	k := space(t, c, "k:", constant("v"), nil)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 50 {
				prefix := fmt.Sprint("k:", i, "-", j, ":")
				if _, err := cache.Register(c, prefix, constant(prefix), nil); err != nil {
					t.Error(err)
				}
				want(t, "new", prefix)(cache.GetOrPrime[string](t.Context(), c, prefix+"x"))
				want(t, "old", "v")(k.GetOrPrime(t.Context(), "x"))
			}
		})
	}
	wg.Wait()
}
