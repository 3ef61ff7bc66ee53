package cache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/loader"
)

var errSource = errors.New("source is down")

// Case 16: panics in all their forms, with waiters here and in another process.
func TestPanicsAreErrors(t *testing.T) {
	var nilPanic *runtime.PanicNilError
	tests := []struct {
		name   string
		end    func()
		is     func(*loader.PanicError) bool
		remote string
	}{
		{"text", func() { panic("boom") }, func(p *loader.PanicError) bool { return p.Value == "boom" && len(p.Stack) > 0 }, "boom"},
		{"error", func() { panic(errSource) }, func(p *loader.PanicError) bool { return errors.Is(p, errSource) }, errSource.Error()},
		{"nil", func() { panic(nil) }, func(p *loader.PanicError) bool { return errors.As(p, &nilPanic) }, "panic called with nil"},
		{"Goexit", runtime.Goexit, func(p *loader.PanicError) bool { return errors.Is(p, loader.ErrGoexit) }, "Goexit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				var loads atomic.Int64
				load := func(context.Context, string) (string, error) {
					time.Sleep(50 * time.Millisecond)
					if loads.Add(1) == 1 {
						tt.end()
					}
					return "tame", nil
				}
				c, k := openSpace(b, b.client(), load, nil)
				_, far := openSpace(b, b.client(), load, nil)
				ours := calling(func() (string, error) { return k.GetOrPrime(b.Context(), "a") })
				time.Sleep(time.Millisecond)
				joined := calling(func() (string, error) { return k.GetOrPrime(b.Context(), "a") })
				theirs := calling(func() (string, error) { return far.GetOrPrime(b.Context(), "a") })
				for _, call := range []<-chan got[string]{ours, joined} {
					var p *loader.PanicError
					if got := <-call; got.value != "" || !errors.As(got.err, &p) || !tt.is(p) {
						b.Errorf("in this process: got %q, %v; want a fitting *loader.PanicError", got.value, got.err)
					}
				}
				var r *loader.RemoteError
				if got := <-theirs; got.value != "" || !errors.As(got.err, &r) || !r.Panic || !strings.Contains(r.Message, tt.remote) {
					b.Errorf("in another process: got %q, %v; want a *loader.RemoteError with %q", got.value, got.err, tt.remote)
				}
				if s := c.Stats(); s.LoadsPanicked != 1 || s.LeasesNow != 0 || s.HungNow != 0 {
					b.Errorf("%d loads panicked, %d leases, %d hung; want 1, 0, 0", s.LoadsPanicked, s.LeasesNow, s.HungNow)
				}
				time.Sleep(250 * time.Millisecond) // the cool-down
				want(b, "the next call", "tame")(far.GetOrPrime(b.Context(), "a"))
			})
		})
	}
}

// Case 18: a loader that asks for the key it loads, directly or by way of
// another key.
func TestReentrance(t *testing.T) {
	inBubble(t, func(b *bubble) {
		c := open(b, b.client(), nil)
		next := map[string]string{"self": "self", "a": "b", "b": "c", "c": "a"}
		var k *cache.Keyspace[string]
		k = space(b, c, "k:", func(ctx context.Context, id string) (string, error) {
			return k.GetOrPrime(ctx, next[id])
		}, nil)
		for _, id := range []string{"self", "a"} {
			start := time.Now()
			_, err := k.GetOrPrime(b.Context(), id)
			if !errors.Is(err, cache.ErrReentrant) || !strings.Contains(err.Error(), `"k:"`) || time.Since(start) > time.Second {
				b.Errorf("%s: got %v after %v, want ErrReentrant that names the keyspace, at once", id, err, time.Since(start))
			}
		}
	})
}

// Case 18: two loads that wait for each other, each started by a caller of its
// own, are bounded by their time.
func TestLoadsThatWaitForEachOther(t *testing.T) {
	inBubble(t, func(b *bubble) {
		c := open(b, b.client(), nil)
		other := map[string]string{"a": "b", "b": "a"}
		var k *cache.Keyspace[string]
		k = space(b, c, "k:", func(ctx context.Context, id string) (string, error) {
			time.Sleep(10 * time.Millisecond)
			return k.GetOrPrime(ctx, other[id])
		}, &cache.Policy{LoadTimeout: 2 * time.Second})
		start := time.Now()
		crowd(2, func(i int) {
			if v, err := k.GetOrPrime(b.Context(), []string{"a", "b"}[i]); err == nil {
				b.Errorf("got %q, want an error", v)
			}
		})
		if took := time.Since(start); took > 2100*time.Millisecond {
			b.Errorf("took %v, want no longer than the load timeout of 2s", took)
		}
		if s := c.Stats(); s.FlightsNow != 0 {
			b.Errorf("%d flights left, want none", s.FlightsNow)
		}
	})
}

// Case 19: a loader that hangs and ignores its context.
func TestHungLoadIsGivenUp(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var loads atomic.Int64
		awake := make(chan struct{})
		load := func(context.Context, string) (string, error) {
			if loads.Add(1) == 1 {
				<-awake
			}
			return "v", nil
		}
		policy := &cache.Policy{LoadTimeout: 3 * time.Second}
		c, k := openSpace(b, b.client(), load, policy)
		_, far := openSpace(b, b.client(), load, policy)
		start := time.Now()
		theirs := calling(func() (string, error) {
			time.Sleep(time.Second)
			return far.GetOrPrime(b.Context(), "a")
		})
		_, err := k.GetOrPrime(b.Context(), "a")
		if !errors.Is(err, cache.ErrLoadTimeout) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			b.Errorf("got %v after %v, want ErrLoadTimeout after 3s", err, time.Since(start))
		}
		var r *loader.RemoteError
		if got := <-theirs; !errors.As(got.err, &r) || !strings.Contains(got.err.Error(), "timed out") {
			b.Errorf("in another process: got %v, want a *loader.RemoteError that says so", got.err)
		}
		if s := c.Stats(); s.HungNow != 1 || s.LoadsFailed != 1 {
			b.Errorf("%d hung, %d failed; want 1, 1", s.HungNow, s.LoadsFailed)
		}
		time.Sleep(252 * time.Millisecond) // clocks are known to a millisecond
		want(b, "the next call, while the first load hangs", "v")(far.GetOrPrime(b.Context(), "a"))
		close(awake)
		synctest.Wait()
		if s := c.Stats(); s.HungNow != 0 {
			b.Errorf("%d hung after it came back, want 0", s.HungNow)
		}
		want(b, "after it came back", "v")(k.GetOrPrime(b.Context(), "a"))
	})
}

// attempts notes when each load of a failing loader began.
type attempts struct {
	mu sync.Mutex // guards at
	at []time.Time
}

func (a *attempts) load(context.Context, string) (string, error) {
	a.mu.Lock()
	a.at = append(a.at, time.Now())
	n := len(a.at)
	a.mu.Unlock()
	time.Sleep(50 * time.Millisecond)
	return "", fmt.Errorf("attempt %d: %w", n, errSource)
}

// gaps returns the times from one attempt's end to the next one's beginning.
func (a *attempts) gaps() (d []time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := 1; i < len(a.at); i++ {
		d = append(d, a.at[i].Sub(a.at[i-1])-50*time.Millisecond)
	}
	return d
}

// Case 20: two processes with ten callers each hammer a key whose loads fail.
func TestFailuresAreSharedAndCoolDown(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var tries attempts
		policy := &cache.Policy{ErrorCooldown: 200 * time.Millisecond, ErrorCooldownMax: time.Second}
		_, near := openSpace(b, b.client(), tries.load, policy)
		_, far := openSpace(b, b.client(), tries.load, policy)
		end := time.Now().Add(8 * time.Second)
		crowd(20, func(i int) {
			k := []*cache.Keyspace[string]{near, far}[i%2]
			for time.Now().Before(end) {
				start := time.Now()
				_, err := k.GetOrPrime(b.Context(), "a")
				if err == nil || !strings.Contains(err.Error(), errSource.Error()) {
					b.Errorf("got %v, want the cause's text", err)
				}
				if took := time.Since(start); took > 150*time.Millisecond {
					b.Errorf("a call took %v, want at most one load and 100ms", took)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
		gaps := tries.gaps()
		if len(gaps) < 6 {
			b.Fatalf("%d attempts in 8s, want at least 7: the key stays wedged", len(gaps)+1)
		}
		for i, want := range []time.Duration{200, 400, 800, 1000, 1000, 1000} {
			want *= time.Millisecond
			if gaps[i] < want || gaps[i] > want+50*time.Millisecond {
				b.Errorf("attempt %d began %v after the one before had failed, want %v and a little", i+2, gaps[i], want)
			}
		}
	})
}

func TestAFailureKeepsItsIdentityInItsOwnProcess(t *testing.T) {
	inBubble(t, func(b *bubble) {
		load := func(context.Context, string) (string, error) { return "", errSource }
		_, near := openSpace(b, b.client(), load, nil)
		_, far := openSpace(b, b.client(), load, nil)
		for _, call := range []string{"load", "cool-down"} {
			if _, err := near.GetOrPrime(b.Context(), "a"); err != errSource {
				b.Errorf("%s: got %v, want the loader's own error", call, err)
			}
		}
		var r *loader.RemoteError
		if _, err := far.GetOrPrime(b.Context(), "a"); !errors.As(err, &r) || r.Message != errSource.Error() || r.Panic {
			b.Errorf("in another process: got %v, want a *loader.RemoteError with the text", err)
		}
	})
}

func TestASuccessEndsTheDoubling(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var fails atomic.Bool
		fails.Store(true)
		load := func(context.Context, string) (string, error) {
			if fails.Load() {
				return "", errSource
			}
			return "v", nil
		}
		_, k := openSpace(b, b.client(), load, &cache.Policy{ErrorCooldown: 100 * time.Millisecond, TTL: time.Second, Jitter: -1})
		for _, cooldown := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond} {
			_, _ = k.GetOrPrime(b.Context(), "a")
			time.Sleep(cooldown)
		}
		fails.Store(false)
		want(b, "after two failures", "v")(k.GetOrPrime(b.Context(), "a"))
		time.Sleep(time.Second)
		fails.Store(true)
		_, _ = k.GetOrPrime(b.Context(), "a")
		time.Sleep(100 * time.Millisecond)
		fails.Store(false)
		want(b, "after a first failure", "v")(k.GetOrPrime(b.Context(), "a"))
	})
}

func TestInvalidateEndsTheCoolDown(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var fails atomic.Bool
		fails.Store(true)
		load := func(context.Context, string) (string, error) {
			if fails.Load() {
				return "", errSource
			}
			return "v", nil
		}
		_, near := openSpace(b, b.client(), load, nil)
		_, far := openSpace(b, b.client(), load, nil)
		for _, k := range []*cache.Keyspace[string]{near, far} {
			fails.Store(true)
			if _, err := near.GetOrPrime(b.Context(), "a"); err == nil {
				b.Fatal("no error from a failing loader")
			}
			fails.Store(false)
			if err := k.Invalidate(b.Context(), "a"); err != nil {
				b.Fatal(err)
			}
			want(b, "right after Invalidate", "v")(near.GetOrPrime(b.Context(), "a"))
			if err := k.Invalidate(b.Context(), "a"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
