package cache_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/codec"
	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/loader"
)

// roundTrip loads v, finds it again here and elsewhere, and writes it.
func roundTrip[V any](v V, c codec.Codec) func(t *testing.T) {
	return func(t *testing.T) {
		inBubble(t, func(b *bubble) {
			var loads int
			load := func(context.Context, string) (V, error) { loads++; return v, nil }
			policy := &cache.Policy{Codec: c}
			_, k := openSpace(b, b.client(), load, policy)
			_, far := openSpace(b, b.client(), load, policy)
			check := func(what string, get func(context.Context, string) (V, error)) {
				if got, err := get(b.Context(), "a"); err != nil || !reflect.DeepEqual(got, v) {
					b.Errorf("%s: got %#v, %v; want %#v", what, got, err, v)
				}
			}
			check("load", k.GetOrPrime)
			check("hit", k.GetOrPrime)
			check("hit elsewhere", far.GetOrPrime)
			if loads != 1 {
				b.Errorf("%d loads, want 1: the value did not count as one", loads)
			}
			if err := k.Set(b.Context(), "a", v); err != nil {
				b.Errorf("Set: %v", err)
			}
			check("written", far.Peek)
		})
	}
}

type nested struct {
	Name  string
	Tags  []string
	Count map[string]int
	Next  *nested
}

// Case 36: zero values are values.
func TestValues(t *testing.T) {
	deep := nested{"a", []string{"x"}, map[string]int{"n": 1}, &nested{Name: "b"}}
	tests := map[string]func(*testing.T){
		"empty text":          roundTrip("", nil),
		"text":                roundTrip("hello\x00\xff", nil),
		"zero":                roundTrip(0, nil),
		"false":               roundTrip(false, nil),
		"empty slice":         roundTrip([]string{}, nil),
		"nil slice":           roundTrip([]string(nil), nil),
		"bytes":               roundTrip([]byte{1, 2}, nil),
		"map":                 roundTrip(map[string]int{"a": 1}, nil),
		"zero struct":         roundTrip(nested{}, nil),
		"struct":              roundTrip(deep, nil),
		"pointer":             roundTrip(&deep, nil),
		"nil pointer":         roundTrip((*nested)(nil), nil),
		"pointer to zero":     roundTrip(new(int), nil),
		"pointer to pointer":  roundTrip(new(&deep), nil),
		"raw bytes":           roundTrip([]byte("raw"), codec.Raw{}),
		"raw text":            roundTrip("raw", codec.Raw{}),
		"empty raw text":      roundTrip("", codec.Raw{}),
		"JSON":                roundTrip(deep, codec.JSON{}),
		"JSON nil pointer":    roundTrip((*nested)(nil), codec.JSON{}),
		"JSON any":            roundTrip[any](map[string]any{"a": []any{"b", true, nil}}, codec.JSON{}),
		"JSON nil any":        roundTrip[any](nil, codec.JSON{}),
		"any":                 roundTrip[any]("text", nil),
		"nil any":             roundTrip[any](nil, nil),
		"compressed":          roundTrip(strings.Repeat("long ", 10_000), codec.Compress(codec.MsgPack{}, 100)),
		"below the threshold": roundTrip("short", codec.Compress(codec.JSON{}, 100)),
		"array":               roundTrip([2]int{1, 2}, nil),
		"error text":          roundTrip(fmt.Sprint(errSource), nil),
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, tests[name])
	}
}

// An interface that the codec cannot decode into is an error, not a hang and not
// a load for ever.
func TestInterfaceTheCodecCannotDecode(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var loads int
		_, k := openSpace(b, b.client(), func(context.Context, string) (fmt.Stringer, error) {
			loads++
			return &page{"1", "hello"}, nil
		}, nil)
		for call := 1; call <= 3; call++ {
			v, err := k.GetOrPrime(b.Context(), "a")
			if v != nil || err == nil || loads > 3*call {
				b.Errorf("call %d: got %v, %v after %d loads; want an error after a few", call, v, err, loads)
			}
		}
	})
}

// Case 31: what a caller does with its value is its own affair.
func TestCallersHaveCopies(t *testing.T) {
	inBubble(t, func(b *bubble) {
		mine := &nested{"a", []string{"x"}, map[string]int{"n": 1}, nil}
		want := &nested{"a", []string{"x"}, map[string]int{"n": 1}, nil}
		_, k := openSpace(b, b.client(), constant(mine), nil)
		var all []*nested
		for range 2 {
			results := make([]*nested, 5)
			crowd(5, func(i int) {
				v, err := k.GetOrPrime(b.Context(), "a")
				if err != nil {
					b.Error(err)
					return
				}
				results[i] = v
			})
			all = append(all, results...)
		}
		for i, v := range all {
			if v == mine || !reflect.DeepEqual(v, want) {
				b.Fatalf("caller %d got %+v, want a copy of %+v", i, v, want)
			}
			v.Name, v.Tags[0], v.Count["n"] = "changed", "changed", 2
		}
		if mine.Tags[0] != "x" {
			b.Error("the loader's own value was changed")
		}
	})
}

func TestCallersOfBytesHaveCopies(t *testing.T) {
	for name, c := range map[string]codec.Codec{"raw": codec.Raw{}, "msgpack": codec.MsgPack{}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				mine := []byte("hello")
				_, k := openSpace(b, b.client(), constant(mine), &cache.Policy{Codec: c})
				for range 3 {
					crowd(3, func(int) {
						v, err := k.GetOrPrime(b.Context(), "a")
						if err != nil || string(v) != "hello" {
							b.Errorf("got %q, %v; want hello", v, err)
							return
						}
						copy(v, "HELLO")
						_ = append(v, '!')
					})
				}
				if string(mine) != "hello" {
					b.Errorf("the loader's own value became %q", mine)
				}
			})
		})
	}
}

type titled struct{ Title string }

type named struct{ Name string }

// bytesOf returns what a keyspace of another kind stores for v.
func bytesOf[V any](b *bubble, v V, p *cache.Policy) string {
	_, k := openSpace(b, b.client(), constant(v), p)
	if err := k.Set(b.Context(), "source", v); err != nil {
		b.Fatal(err)
	}
	s, err := b.redis.Get("k:source")
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// Case 37: bytes that are no entry of this type are one reload and a count.
func TestForeignBytes(t *testing.T) {
	tests := map[string]func(b *bubble) string{
		"text":                       func(*bubble) string { return "hello" },
		"long text":                  func(*bubble) string { return strings.Repeat("x", 500) },
		"one byte":                   func(*bubble) string { return "\xf5" },
		"another type":               func(b *bubble) string { return bytesOf(b, named{"n"}, nil) },
		"the type pointed to":        func(b *bubble) string { return bytesOf(b, &titled{"t"}, nil) },
		"another codec":              func(b *bubble) string { return bytesOf(b, titled{"t"}, &cache.Policy{Codec: codec.JSON{}}) },
		"another format":             func(b *bubble) string { s := []byte(bytesOf(b, titled{"t"}, nil)); s[2]++; return string(s) },
		"header only":                func(b *bubble) string { return bytesOf(b, titled{"t"}, nil)[:70] },
		"cut payload":                func(b *bubble) string { s := bytesOf(b, titled{"t"}, nil); return s[:len(s)-1] },
		"garbage after the header":   func(b *bubble) string { return bytesOf(b, titled{"t"}, nil)[:70] + "\xc1\xc1\xc1" },
		"an unknown state":           func(b *bubble) string { s := []byte(bytesOf(b, titled{"t"}, nil)); s[3] = 99; return string(s) },
		"header cut in the middle":   func(b *bubble) string { return bytesOf(b, titled{"t"}, nil)[:40] },
		"a nil flag on a no-pointer": func(b *bubble) string { return bytesOf[*named](b, nil, nil) },
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				foreign := tests[name](b)
				loads := 0
				c, k := openSpace(b, b.client(), func(context.Context, string) (titled, error) {
					loads++
					return titled{"right"}, nil
				}, nil)
				if err := b.redis.Set("k:a", foreign); err != nil {
					b.Fatal(err)
				}
				if v, err := k.Peek(b.Context(), "a"); !errors.Is(err, cache.ErrMiss) {
					b.Errorf("Peek: got %+v, %v; want ErrMiss", v, err)
				}
				before := c.Stats().Undecodable
				for _, call := range []string{"first", "second"} {
					want(b, call, titled{"right"})(k.GetOrPrime(b.Context(), "a"))
				}
				if n := c.Stats().Undecodable - before; loads != 1 || n != 1 {
					b.Errorf("%d loads, %d undecodable; want 1, 1 (bytes %s)", loads, n, hex.EncodeToString([]byte(foreign[:min(70, len(foreign))])))
				}
				b.ttl("k:a")
			})
		})
	}
}

// Two programs that use one key for different types do each other no harm but
// loads: no error, no loop.
func TestTwoTypesOnOneKey(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var loads source
		_, names := openSpace(b, b.client(), func(ctx context.Context, id string) (named, error) {
			_, _ = loads.load(ctx, id)
			return named{"n"}, nil
		}, nil)
		_, titles := openSpace(b, b.client(), func(ctx context.Context, id string) (titled, error) {
			_, _ = loads.load(ctx, id)
			return titled{"t"}, nil
		}, nil)
		for range 10 {
			want(b, "name", named{"n"})(names.GetOrPrime(b.Context(), "a"))
			want(b, "title", titled{"t"})(titles.GetOrPrime(b.Context(), "a"))
		}
		loads.wantLoads(b, 20)
		crowd(40, func(i int) {
			if i%2 == 0 {
				want(b, "name", named{"n"})(names.GetOrPrime(b.Context(), "a"))
			} else {
				want(b, "title", titled{"t"})(titles.GetOrPrime(b.Context(), "a"))
			}
		})
		if n := loads.loads.Load(); n > 20+40*3 {
			b.Errorf("%d loads by 40 concurrent calls, want at most 3 each", n-20)
		}
	})
}

// oneWay is a codec that cannot decode what it encodes.
type oneWay struct{ codec.MsgPack }

var errOneWay = errors.New("one way only")

// Unmarshal always fails.
func (oneWay) Unmarshal([]byte, any) error { return errOneWay }

func TestCodecThatCannotDecodeWhatItEncodes(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var source source
		_, k := openSpace(b, b.client(), source.load, &cache.Policy{Codec: oneWay{}})
		_, far := openSpace(b, b.client(), source.load, &cache.Policy{Codec: oneWay{}})
		for call := int64(1); call <= 3; call++ {
			v, err := k.GetOrPrime(b.Context(), "a")
			if v != 0 || !errors.Is(err, errOneWay) {
				b.Errorf("call %d: got %v, %v; want the codec's error", call, v, err)
			}
			if n := source.loads.Load(); n > 3*call {
				b.Errorf("%d loads for %d calls, want at most 3 each", n, call)
			}
		}
		source.loads.Store(0)
		crowd(20, func(i int) {
			if _, err := []*cache.Keyspace[int64]{k, far}[i%2].GetOrPrime(b.Context(), "b"); !errors.Is(err, errOneWay) {
				b.Errorf("got %v, want the codec's error", err)
			}
		})
		if n := source.loads.Load(); n > 60 {
			b.Errorf("%d loads for 20 calls, want at most 3 each", n)
		}
	})
}

// Case 39.
func TestOddKeys(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	ids := []string{"a", " ", "two words", "line\nbreak\r\n", "{a}", "}{", "{}", "\x00", "\xff\xfe", "k:", "a|b", "*", "ünïcödé", strings.Repeat("long", 2500)}
	c, k := openSpace(t, client, func(_ context.Context, id string) (string, error) { return "of " + id, nil }, nil)
	for _, id := range ids {
		for _, call := range []string{"load", "hit"} {
			want(t, fmt.Sprintf("%s of %.20q", call, id), "of "+id)(k.GetOrPrime(t.Context(), id))
		}
		want(t, "untyped", "of "+id)(cache.GetOrPrime[string](t.Context(), c, "k:"+id))
		if err := k.Set(t.Context(), id, "set"); err != nil {
			t.Errorf("Set of %.20q: %v", id, err)
		}
		want(t, "written", "set")(k.Peek(t.Context(), id))
		if err := k.Invalidate(t.Context(), id); err != nil {
			t.Errorf("Invalidate of %.20q: %v", id, err)
		}
	}
	if n := client.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys left, want none", n)
	}
}

// Case 39: a large value.
func TestLargeValue(t *testing.T) {
	size := 64 << 20
	if testing.Short() {
		size = 1 << 20
	}
	server := redistest.Start(t)
	large := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	policy := &cache.Policy{Codec: codec.Raw{}}
	_, k := openSpace(t, server.Client(t), constant(large), policy)
	_, far := openSpace(t, server.Client(t), loader.Func[[]byte](nil), policy)
	for what, get := range map[string]func(context.Context, string) ([]byte, error){"load": k.GetOrPrime, "elsewhere": far.Peek} {
		if what == "elsewhere" {
			_, _ = k.GetOrPrime(t.Context(), "a")
		}
		if v, err := get(t.Context(), "a"); err != nil || !bytes.Equal(v, large) {
			t.Errorf("%s: got %d bytes, %v; want the %d loaded", what, len(v), err, size)
		}
	}
}

// flaky is a codec that cannot decode as often as it is told.
type flaky struct {
	codec.MsgPack
	fails *atomic.Int64
}

func (f flaky) Unmarshal(b []byte, v any) error {
	if f.fails.Add(-1) >= 0 {
		return errors.New("cannot decode")
	}
	return f.MsgPack.Unmarshal(b, v)
}

// TestAHitAfterAJoinedLoad has a caller who joins a load whose value it cannot
// decode, and then reads it: that is a hit, and no load that was joined.
func TestAHitAfterAJoinedLoad(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var source source
		var fails atomic.Int64
		_, k := openSpace(b, b.client(), takes(&source, time.Second), &cache.Policy{Codec: flaky{fails: &fails}})
		for round := range 20 {
			fails.Store(2) // for each of two, as a rule
			crowd(2, func(int) {
				r, err := k.Fetch(b.Context(), fmt.Sprint(round))
				if err != nil || r.Source == cache.FromRedis && r.Joined {
					b.Errorf("got %+v, %v; want a value, and no hit that joined a load", r, err)
				}
			})
		}
	})
}

// TestARefreshBesideACallThatCannotDecode is for the race detector: the refresh
// that a stale hit starts goes on beside the call, which notes what is bad.
func TestARefreshBesideACallThatCannotDecode(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var fails atomic.Int64
		_, k := openSpace(b, b.client(), new(source).load, &cache.Policy{
			TTL: time.Second, StaleWhileRevalidate: time.Hour, Jitter: -1, Codec: flaky{fails: &fails},
		})
		for range 20 {
			want(b, "load", int64(0))(k.GetOrPrime(b.Context(), "a"))
			time.Sleep(2 * time.Second)
			fails.Store(1)
			want(b, "stale hit", int64(0))(k.GetOrPrime(b.Context(), "a"))
			synctest.Wait()
		}
	})
}
