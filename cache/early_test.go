package cache_test

import (
	"context"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/getorprime/getorprime/cache"
)

// TestEarlyRefreshClosedForm reads a key at a steady rate over many expiries. A
// refresh that every hit may start by itself is started e^(1/β) times per expiry
// on average: the first draw that succeeds, and those that succeed while it
// loads. With the lease it is one.
func TestEarlyRefreshClosedForm(t *testing.T) {
	expiries := 800
	cases := []struct{ beta, rate float64 }{{1, 200}, {2, 100}, {0.5, 1000}}
	if testing.Short() {
		expiries, cases = 300, cases[:2] // a small β needs many reads to be exact
	}
	for _, c := range cases {
		t.Run("β "+strconv.FormatFloat(c.beta, 'g', -1, 64), func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				e := newExpiries(b, c.beta, c.rate)
				e.cache.RefreshAlone()
				if got, want := e.refreshes(expiries), math.Exp(1/c.beta); math.Abs(got/want-1) > 0.15 {
					b.Errorf("without the lease: %.2f refreshes per expiry, want %.2f", got, want)
				}
			})
			inBubble(t, func(b *bubble) {
				e := newExpiries(b, c.beta, c.rate)
				if got := e.refreshes(expiries / 10); got != 1 {
					b.Errorf("with the lease: %.2f refreshes per expiry, want 1", got)
				}
				// The first draw comes in the last δ of a value's life with probability
				// e^(−rβδ·e^(−1/β)), 0.1 % at most here. The value then expires while it
				// is refreshed, and callers wait, but for the load that is running.
				if s := e.cache.Stats(); s.Misses > 5 {
					b.Errorf("%d callers waited, want the first and hardly another", s.Misses)
				}
			})
		})
	}
}

const early = 100 * time.Millisecond // δ: how long a load takes

// expiries reads one key around each of its expiries.
type expiries struct {
	*bubble
	source
	cache *cache.Cache
	keys  *cache.Keyspace[int64]
	every time.Duration // between two reads
	watch time.Duration // how long before the expiry the reading begins
}

func newExpiries(b *bubble, beta, rate float64) *expiries {
	e := &expiries{bubble: b, every: time.Duration(float64(time.Second) / rate)}
	e.watch = time.Duration(10 * beta * float64(early))
	load := func(ctx context.Context, id string) (int64, error) {
		time.Sleep(early)
		return e.loads.Add(1), nil
	}
	e.cache, e.keys = openSpace(b, b.client(), load, &cache.Policy{TTL: 4 * e.watch, Jitter: -1, EarlyRefresh: beta})
	return e
}

// refreshes returns how many refreshes each of n expiries had on average.
func (e *expiries) refreshes(n int) float64 {
	e.read()
	before := e.loads.Load()
	for range n {
		e.expire()
	}
	return float64(e.loads.Load()-before) / float64(n)
}

// expire reads from a while before the expiry until a new value is there, and
// waits for refreshes that are still under way.
func (e *expiries) expire() {
	old := e.read()
	time.Sleep(max(0, old.TTL-e.watch))
	for e.read().Value == old.Value {
		time.Sleep(e.every)
	}
	time.Sleep(2 * early)
}

func (e *expiries) read() cache.Result[int64] {
	r, err := e.keys.Fetch(e.Context(), "a")
	if err != nil {
		e.Fatal(err)
	}
	return r
}

// TestNobodyWaitsUnderSteadyLoad has four processes read a key 200 times a second
// over many expiries: after the first load nobody ever waits for one, loads are
// few, and no value outlives its TTL.
func TestNobodyWaitsUnderSteadyLoad(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var s source
		var keys []*cache.Keyspace[int64]
		for range 4 {
			_, k := openSpace(b, b.client(), func(context.Context, string) (int64, error) {
				time.Sleep(early)
				s.loads.Add(1)
				return time.Now().UnixMilli(), nil
			}, &cache.Policy{TTL: time.Second, Jitter: -1})
			keys = append(keys, k)
		}
		const lasts = 30 * time.Second
		start := time.Now()
		for i := 0; time.Since(start) < lasts; i++ {
			asked := time.Now()
			r, err := keys[i%4].Fetch(b.Context(), "a")
			if err != nil {
				b.Fatal(err)
			}
			if d := time.Since(asked); d > 0 && i > 0 {
				b.Errorf("call %d waited %v", i, d)
			}
			if r.Age > 1100*time.Millisecond {
				b.Errorf("call %d got a value of %v", i, r.Age)
			}
			time.Sleep(5 * time.Millisecond)
		}
		if n := s.loads.Load(); n < 30 || n > 60 {
			b.Errorf("%d loads in %v of a TTL of 1 s, want from 30 to 60", n, lasts)
		}
	})
}

// Case 35: a load that takes as long as the value lives does not repeat for ever.
func TestEarlyRefreshOfSlowLoads(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var s source
		_, k := openSpace(b, b.client(), func(context.Context, string) (int64, error) {
			time.Sleep(time.Second)
			return s.loads.Add(1), nil
		}, &cache.Policy{TTL: time.Second, Jitter: -1, EarlyRefresh: 2})
		start := time.Now()
		for time.Since(start) < 60*time.Second {
			if _, err := k.GetOrPrime(b.Context(), "a"); err != nil {
				b.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		// Half a TTL of rest and a second of loading at the least.
		if n := s.loads.Load(); n > 41 {
			b.Errorf("%d loads in a minute, want at most 41", n)
		}
	})
}
