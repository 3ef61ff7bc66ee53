package cache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/loader"
)

// counting is an observer that counts events.
type counting struct {
	mu sync.Mutex // guards n
	n  map[cache.Kind]int64
}

// Observe implements cache.Observer.
func (c *counting) Observe(_ context.Context, e cache.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[cache.Kind]int64)
	}
	c.n[e.Kind]++
	if e.Key == "" {
		panic(fmt.Sprintf("event without a key: %+v", e))
	}
}

// byKind returns the counts of s by the kind of event they count.
func byKind(s cache.Stats) map[cache.Kind]int64 {
	return map[cache.Kind]int64{
		cache.Hit: s.Hits, cache.NegativeHit: s.NegativeHits, cache.CoolingHit: s.CoolingHits, cache.Miss: s.Misses, cache.CallFailed: s.Failed,
		cache.LeaseGranted: s.LeasesGranted, cache.LeaseLost: s.LeasesLost,
		cache.Loaded: s.Loaded, cache.NotFound: s.NotFound, cache.LoadFailed: s.LoadsFailed, cache.LoadPanicked: s.LoadsPanicked, cache.LoadCanceled: s.LoadsCanceled,
		cache.Stored: s.Stored, cache.StoreRefused: s.StoresRefused, cache.StoreFailed: s.StoresFailed,
		cache.WokenMessage: s.WokenByMessage, cache.WokenPoll: s.WokenByPoll, cache.WaitTimedOut: s.WaitsTimedOut, cache.Overloaded: s.Overloaded,
		cache.Undecodable: s.Undecodable, cache.ValueSet: s.ValuesSet, cache.Invalidated: s.Invalidated,
	}
}

// moody is a loader that does by turns whatever a loader can do.
type moody struct{ loads atomic.Int64 }

func (m *moody) load(ctx context.Context, _ string) (string, error) {
	m.loads.Add(1)
	time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	switch rand.IntN(10) {
	case 0:
		return "", loader.ErrNotFound
	case 1:
		return "", errSource
	case 2:
		panic("moody")
	case 3:
		loader.NoStore(ctx)
	case 4:
		<-ctx.Done()
		return "", ctx.Err()
	}
	return "v", nil
}

// TestStatsAddUp runs a mixed workload and checks the equations in the comment
// of cache.Stats, and that the observer was told the same.
func TestStatsAddUp(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var m moody
		var caches []*cache.Cache
		var spaces []*cache.Keyspace[string]
		var observers []*counting
		policy := &cache.Policy{TTL: 50 * time.Millisecond, NotFoundTTL: 20 * time.Millisecond, ErrorCooldown: 10 * time.Millisecond, LoadTimeout: 100 * time.Millisecond}
		for range 2 {
			o := &counting{}
			c := open(b, b.client(), &cache.Options{Observer: o, LeaseTTL: 30 * time.Millisecond})
			caches, spaces, observers = append(caches, c), append(spaces, space(b, c, "k:", m.load, policy)), append(observers, o)
		}
		var calls, invalidated [2]atomic.Int64
		crowd(20, func(i int) {
			for range 40 {
				id, n := fmt.Sprint(rand.IntN(10)), i%2
				switch k := spaces[n]; rand.IntN(12) {
				case 0:
					if k.Invalidate(b.Context(), id) == nil {
						invalidated[n].Add(1)
					}
				case 1:
					_, _ = k.Refresh(b.Context(), id)
					calls[n].Add(1)
				case 2:
					ctx, cancel := context.WithTimeout(b.Context(), time.Duration(rand.IntN(20))*time.Millisecond)
					_, _ = k.GetOrPrime(ctx, id)
					cancel()
					calls[n].Add(1)
				case 3:
					_ = b.redis.Set("k:"+id, "foreign")
				default:
					_, _ = k.GetOrPrime(b.Context(), id)
					calls[n].Add(1)
				}
				time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
			}
		})
		time.Sleep(time.Second) // the last loads end
		var ended, toRedis, kept int64
		for n, c := range caches {
			s := c.Stats()
			if got, want := s.Hits+s.NegativeHits+s.CoolingHits+s.Misses+s.Failed, calls[n].Load(); got != want {
				b.Errorf("cache %d: %d calls counted, want %d: %+v", n, got, want, s)
			}
			if got, want := s.Invalidated, invalidated[n].Load(); got != want {
				b.Errorf("cache %d: %d invalidated, want %d", n, got, want)
			}
			if s.FlightsNow != 0 || s.HungNow != 0 || s.LeasesNow != 0 {
				b.Errorf("cache %d: %d flights, %d hung, %d leases under way; want none", n, s.FlightsNow, s.HungNow, s.LeasesNow)
			}
			ended += s.Loaded + s.NotFound + s.LoadsFailed + s.LoadsPanicked + s.LoadsCanceled
			kept += s.Loaded + s.NotFound
			toRedis += s.Stored + s.StoresRefused + s.StoresFailed
			for kind, want := range byKind(s) {
				if got := observers[n].n[kind]; got != want {
					b.Errorf("cache %d: observer was told %v %d times, Stats says %d", n, kind, got, want)
				}
			}
		}
		if want := m.loads.Load(); ended != want {
			b.Errorf("%d loads ended, want %d", ended, want)
		}
		if toRedis > kept || toRedis == 0 {
			b.Errorf("%d results went to Redis of %d, want some and no more", toRedis, kept)
		}
	})
}

// TestStoredAddsUp has no loads that are not to be kept: each result is stored,
// refused, or failed to be stored.
func TestStoredAddsUp(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var source source
		c, k := openSpace(b, b.client(), takes(&source, 10*time.Millisecond), nil)
		crowd(10, func(i int) {
			for range 20 {
				id := fmt.Sprint(rand.IntN(5))
				if i == 0 {
					b.redis.Del("k:" + id)
				}
				_, _ = k.Refresh(b.Context(), id)
			}
		})
		s := c.Stats()
		if got := s.Stored + s.StoresRefused + s.StoresFailed; got != s.Loaded || s.StoresRefused == 0 {
			b.Errorf("%d stored, %d refused, %d failed of %d loaded; want all accounted for, and some refused", s.Stored, s.StoresRefused, s.StoresFailed, s.Loaded)
		}
	})
}

// TestWaitsAddUp wakes the waits for another process by messages, and by polls
// where there are none.
func TestWaitsAddUp(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprint("pub/sub off: ", deaf), func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				var source source
				load := takes(&source, 1500*time.Millisecond)
				_, holder := openSpace(b, b.client(), load, nil)
				c := open(b, b.client(), &cache.Options{DisablePubSub: deaf})
				waiter := space(b, c, "k:", load, nil)
				const waits = 10
				for i := range waits {
					id := fmt.Sprint(i)
					call := calling(func() (int64, error) { return holder.GetOrPrime(b.Context(), id) })
					time.Sleep(time.Millisecond)
					start := time.Now()
					want(b, "waiter", int64(0))(waiter.GetOrPrime(b.Context(), id))
					if took := time.Since(start); took > 1750*time.Millisecond {
						b.Errorf("waited %v for a load of 1.5s", took)
					}
					<-call
				}
				s := c.Stats()
				if s.WokenByMessage+s.WokenByPoll != waits {
					b.Errorf("%d woken by message, %d by poll; want %d in all", s.WokenByMessage, s.WokenByPoll, waits)
				}
				if deaf && s.WokenByMessage != 0 || !deaf && s.WokenByMessage < waits/2 {
					b.Errorf("%d woken by message, %d by poll", s.WokenByMessage, s.WokenByPoll)
				}
			})
		})
	}
}

type panicking struct{}

// Observe implements cache.Observer, badly.
func (panicking) Observe(context.Context, cache.Event) { panic("bad observer") }

func (panicking) StartLoad(context.Context, string, string) (context.Context, func(error)) {
	panic("bad observer")
}

func (panicking) Shared(_, _ context.Context) { panic("bad observer") }

func TestObserverPanics(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var log bytes.Buffer
		c := open(b, b.client(), &cache.Options{Observer: panicking{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		k := space(b, c, "k:", constant("v"), nil)
		for _, call := range []string{"load", "hit"} {
			want(b, call, "v")(k.GetOrPrime(b.Context(), "a"))
		}
		if err := k.Invalidate(b.Context(), "a"); err != nil {
			b.Error(err)
		}
		if s := c.Stats(); s.Hits != 1 || s.Loaded != 1 || s.Stored != 1 {
			b.Errorf("counts are off: %+v", s)
		}
		if !strings.Contains(log.String(), "observer panicked") || !strings.Contains(log.String(), "bad observer") {
			b.Errorf("log says %q, want the panic", log.String())
		}
	})
}

// TestEvents checks what events carry.
func TestEvents(t *testing.T) {
	inBubble(t, func(b *bubble) {
		o := &recording{}
		c := open(b, b.client(), &cache.Options{Observer: o, Namespace: "n:"})
		k := space(b, c, "k:", func(context.Context, string) (string, error) {
			time.Sleep(time.Second)
			return "", errSource
		}, nil)
		_, _ = k.GetOrPrime(b.Context(), "a")
		e := o.one(b, cache.LoadFailed)
		if e.Prefix != "k:" || e.Key != "n:k:a" || e.Duration != time.Second || !errors.Is(e.Err, errSource) {
			b.Errorf("event %+v, want the keyspace, the key, 1s and the error", e)
		}
	})
}

type recording struct {
	mu     sync.Mutex // guards events
	events []cache.Event
}

// Observe implements cache.Observer.
func (r *recording) Observe(_ context.Context, e cache.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// one returns the one event of its kind.
func (r *recording) one(tb testing.TB, k cache.Kind) (found cache.Event) {
	tb.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, e := range r.events {
		if e.Kind == k {
			found = e
			n++
		}
	}
	if n != 1 {
		tb.Errorf("%d events of kind %v, want 1", n, k)
	}
	return found
}

func TestKindNames(t *testing.T) {
	seen := map[string]bool{}
	for k := cache.Hit; k <= cache.Invalidated; k++ {
		name := k.String()
		if name == "" || name == "unknown" || seen[name] || strings.ToLower(name) != name {
			t.Errorf("kind %d is called %q, want a name of its own in snake case", int(k), name)
		}
		seen[name] = true
	}
	for _, k := range []cache.Kind{-1, cache.Invalidated + 1} {
		if got := k.String(); got != "unknown" {
			t.Errorf("kind %d is called %q, want unknown", int(k), got)
		}
	}
}
