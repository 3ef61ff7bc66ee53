package cache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/loader"
)

// Case 22: "not found" while a value is there.
func TestNotFoundReplacesAValue(t *testing.T) {
	inBubble(t, func(b *bubble) {
		exists := true
		load := func(context.Context, string) (string, error) {
			if exists {
				return "old", nil
			}
			return "", fmt.Errorf("users: %w", loader.ErrNotFound)
		}
		_, k := openSpace(b, b.client(), load, nil)
		want(b, "first", "old")(k.GetOrPrime(b.Context(), "a"))
		exists = false
		for what, call := range map[string]func(context.Context, string) (string, error){
			"refresh": k.Refresh, "get": k.GetOrPrime, "peek": k.Peek,
		} {
			if what != "refresh" {
				_, _ = k.Refresh(b.Context(), "a")
			}
			if v, err := call(b.Context(), "a"); v != "" || !errors.Is(err, loader.ErrNotFound) {
				b.Errorf("%s: got %q, %v; want ErrNotFound", what, v, err)
			}
		}
	})
}

// Case 23: "not found" is kept for its own time, and a record that is created
// shows at once.
func TestNotFoundIsKeptUntilTheRecordIsCreated(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var loads int
		record := ""
		load := func(context.Context, string) (string, error) {
			loads++
			if record == "" {
				return "", loader.ErrNotFound
			}
			return record, nil
		}
		c, k := openSpace(b, b.client(), load, &cache.Policy{NotFoundTTL: 5 * time.Second, Jitter: -1})
		missing := func(what string, wantLoads int) {
			if _, err := k.GetOrPrime(b.Context(), "a"); !errors.Is(err, loader.ErrNotFound) || loads != wantLoads {
				b.Errorf("%s: got %v after %d loads, want ErrNotFound after %d", what, err, loads, wantLoads)
			}
		}
		missing("first", 1)
		time.Sleep(4999 * time.Millisecond)
		missing("within its time", 1)
		time.Sleep(time.Millisecond)
		missing("after its time", 2)

		if err := k.Set(b.Context(), "a", "set"); err != nil {
			b.Fatal(err)
		}
		want(b, "after Set", "set")(k.GetOrPrime(b.Context(), "a"))
		if err := k.Invalidate(b.Context(), "a"); err != nil {
			b.Fatal(err)
		}
		missing("after Invalidate", 3)
		record = "created"
		if err := k.Invalidate(b.Context(), "a"); err != nil {
			b.Fatal(err)
		}
		want(b, "created and invalidated", "created")(k.GetOrPrime(b.Context(), "a"))
		if s := c.Stats(); s.NegativeHits != 1 || s.NotFound != 3 {
			b.Errorf("%d negative hits, %d not found; want 1, 3", s.NegativeHits, s.NotFound)
		}
	})
}

// Case 23: a "not found" that was on its way does not overwrite a value.
func TestNotFoundNeverOverwritesANewerValue(t *testing.T) {
	inBubble(t, func(b *bubble) {
		entered, leave := make(chan struct{}), make(chan struct{})
		_, k := openSpace(b, b.client(), func(context.Context, string) (string, error) {
			close(entered)
			<-leave
			return "", loader.ErrNotFound
		}, nil)
		slow := calling(func() (string, error) { return k.GetOrPrime(b.Context(), "a") })
		<-entered
		if err := k.Set(b.Context(), "a", "written"); err != nil {
			b.Fatal(err)
		}
		close(leave)
		if got := <-slow; !errors.Is(got.err, loader.ErrNotFound) {
			b.Errorf("the old load's caller got %q, %v; want what it loaded", got.value, got.err)
		}
		want(b, "a later caller", "written")(k.GetOrPrime(b.Context(), "a"))
	})
}

func TestNotFoundThatIsNotKept(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var loads atomic.Int64
		_, k := openSpace(b, b.client(), func(context.Context, string) (string, error) {
			loads.Add(1)
			return "", loader.ErrNotFound
		}, &cache.Policy{NotFoundTTL: -1})
		for i := int64(1); i <= 5; i++ {
			if _, err := k.GetOrPrime(b.Context(), "a"); !errors.Is(err, loader.ErrNotFound) || loads.Load() != i {
				b.Errorf("call %d: got %v after %d loads, want ErrNotFound and a load of its own", i, err, loads.Load())
			}
		}
	})
}

// Case 24: "do not store": nobody waits behind anybody, and the next call loads.
func TestNoStore(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var loads atomic.Int64
		load := func(ctx context.Context, _ string) (int64, error) {
			loader.NoStore(ctx)
			time.Sleep(100 * time.Millisecond)
			return loads.Add(1), nil
		}
		_, near := openSpace(b, b.client(), load, nil)
		_, far := openSpace(b, b.client(), load, nil)
		start := time.Now()
		crowd(40, func(i int) {
			k := []*cache.Keyspace[int64]{near, far}[i%2]
			if r, err := k.Fetch(b.Context(), "a"); err != nil || r.Stored || r.TTL != 0 {
				b.Errorf("got %+v, %v; want a value that is not stored", r, err)
			}
		})
		if took := time.Since(start); took > 210*time.Millisecond {
			b.Errorf("40 callers took %v, want two loads' time", took)
		}
		if n := loads.Load(); n > 3 {
			b.Errorf("%d loads for callers of two processes, want at most 3: those who wait share", n)
		}
		before := loads.Load()
		want(b, "the next call", before+1)(near.GetOrPrime(b.Context(), "a"))
		if _, err := near.Peek(b.Context(), "a"); !errors.Is(err, cache.ErrMiss) {
			b.Errorf("Peek: got %v, want ErrMiss", err)
		}
	})
}

func TestNoStoreTakesTheOldValueAway(t *testing.T) {
	inBubble(t, func(b *bubble) {
		keep := true
		_, k := openSpace(b, b.client(), func(ctx context.Context, _ string) (bool, error) {
			if !keep {
				loader.NoStore(ctx)
			}
			return keep, nil
		}, nil)
		want(b, "stored", true)(k.GetOrPrime(b.Context(), "a"))
		keep = false
		want(b, "refreshed", false)(k.Refresh(b.Context(), "a"))
		want(b, "afterwards", false)(k.GetOrPrime(b.Context(), "a"))
	})
}

func TestSetTTL(t *testing.T) {
	tests := []struct {
		name string
		ttl  time.Duration
		want time.Duration // 0: an error
	}{
		{"longer", time.Hour, time.Hour},
		{"shorter", time.Second, time.Second},
		{"below a millisecond", time.Microsecond, time.Millisecond},
		{"zero", 0, 0},
		{"negative", -time.Second, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				_, k := openSpace(b, b.client(), func(ctx context.Context, _ string) (string, error) {
					loader.SetTTL(ctx, tt.ttl)
					return "v", nil
				}, &cache.Policy{Jitter: -1})
				r, err := k.Fetch(b.Context(), "a")
				if tt.want == 0 {
					if err == nil || !strings.Contains(err.Error(), `"k:"`) || !strings.Contains(err.Error(), "must be positive") {
						b.Errorf("got %v, want an error that names the keyspace and says what is wrong", err)
					}
					return
				}
				if err != nil || r.TTL != tt.want || b.ttl("k:a") != tt.want {
					b.Errorf("TTL %v, in Redis %v, %v; want %v", r.TTL, b.ttl("k:a"), err, tt.want)
				}
			})
		})
	}
}

type page struct{ ETag, Body string }

// pages is a loader that fetches a page only if it has changed.
type pages struct {
	current   page
	unchanged int
	previous  []string // what each load got of the value it replaces
}

func (p *pages) load(ctx context.Context, _ string) (*page, error) {
	old, ok := loader.Previous[*page](ctx)
	p.previous = append(p.previous, fmt.Sprint(ok))
	if ok && old.ETag == p.current.ETag {
		p.unchanged++
		return nil, loader.ErrNotModified
	}
	fresh := p.current
	return &fresh, nil
}

func TestNotModifiedKeepsTheValue(t *testing.T) {
	inBubble(t, func(b *bubble) {
		source := pages{current: page{"1", "hello"}}
		c, k := openSpace(b, b.client(), source.load, &cache.Policy{Jitter: -1})
		for range 2 {
			if p, err := k.GetOrPrime(b.Context(), "a"); err != nil || *p != source.current {
				b.Errorf("got %v, %v; want %v", p, err, source.current)
			}
		}
		time.Sleep(59 * time.Second)
		if p, err := k.Refresh(b.Context(), "a"); err != nil || *p != source.current || source.unchanged != 1 {
			b.Errorf("refreshed: got %v, %v with %d unchanged; want %v, 1", p, err, source.unchanged, source.current)
		}
		time.Sleep(59 * time.Second)
		if p, err := k.Peek(b.Context(), "a"); err != nil || *p != source.current {
			b.Errorf("its age counts from the refresh: got %v, %v; want %v", p, err, source.current)
		}
		source.current = page{"2", "goodbye"}
		if p, err := k.Refresh(b.Context(), "a"); err != nil || *p != source.current {
			b.Errorf("changed: got %v, %v; want %v", p, err, source.current)
		}
		if s := c.Stats(); s.Loaded != 3 || s.LoadsFailed != 0 {
			b.Errorf("%d loaded, %d failed; want 3, 0", s.Loaded, s.LoadsFailed)
		}
		if got := strings.Join(source.previous, " "); got != "false true true" {
			b.Errorf("loads had a previous value: %s; want false true true", got)
		}
	})
}

func TestNotModifiedWithoutAValue(t *testing.T) {
	inBubble(t, func(b *bubble) {
		_, k := openSpace(b, b.client(), func(context.Context, string) (string, error) { return "", loader.ErrNotModified }, nil)
		v, err := k.GetOrPrime(b.Context(), "a")
		if v != "" || !errors.Is(err, loader.ErrNotModified) || !strings.Contains(err.Error(), `"k:"`) || !strings.Contains(err.Error(), "no previous value") {
			b.Errorf("got %q, %v; want ErrNotModified that says why", v, err)
		}
	})
}

func TestNotModifiedAfterNil(t *testing.T) {
	inBubble(t, func(b *bubble) {
		first := true
		_, k := openSpace(b, b.client(), func(ctx context.Context, _ string) (*page, error) {
			if first {
				first = false
				return nil, nil
			}
			if old, ok := loader.Previous[*page](ctx); old != nil || !ok {
				b.Errorf("Previous = %v, %v; want a nil pointer", old, ok)
			}
			return nil, loader.ErrNotModified
		}, nil)
		for what, call := range map[string]func(context.Context, string) (*page, error){"load": k.GetOrPrime, "refresh": k.Refresh, "hit": k.Peek} {
			if what == "hit" && first {
				continue
			}
			if p, err := call(b.Context(), "a"); p != nil || err != nil {
				b.Errorf("%s: got %v, %v; want a nil pointer", what, p, err)
			}
		}
	})
}

func TestPreviousOfTheWrongType(t *testing.T) {
	inBubble(t, func(b *bubble) {
		_, k := openSpace(b, b.client(), func(ctx context.Context, _ string) (string, error) {
			_, _ = loader.Previous[int](ctx)
			return "v", nil
		}, nil)
		want(b, "no previous value", "v")(k.GetOrPrime(b.Context(), "a"))
		_, err := k.Refresh(b.Context(), "a")
		if err == nil || !strings.Contains(err.Error(), "Previous[int]") || !strings.Contains(err.Error(), `"k:"`) {
			b.Errorf("got %v, want an error that names Previous[int] and the keyspace", err)
		}
	})
}

func TestALateWishIsIgnored(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var late context.Context
		_, k := openSpace(b, b.client(), func(ctx context.Context, _ string) (string, error) {
			late = ctx
			return "v", nil
		}, &cache.Policy{Jitter: -1})
		want(b, "loaded", "v")(k.GetOrPrime(b.Context(), "a"))
		loader.SetTTL(late, time.Hour)
		loader.NoStore(late)
		if _, ok := loader.Previous[string](late); ok {
			b.Error("Previous after the load had ended returned a value")
		}
		want(b, "hit", "v")(k.Peek(b.Context(), "a"))
	})
}
