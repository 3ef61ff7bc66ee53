package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// full reports whether proofs are to be as long as they are meant to be.
func full() bool { return os.Getenv("PROOF") == "full" }

// TestStormOfCancels acquires and releases ten thousand times, over two processes'
// lockers and a few locks, while callers leave at any moment. Of all that nothing
// is left: no key but fence counters, no goroutine, no connection.
func TestStormOfCancels(t *testing.T) {
	cycles := 10_000
	switch {
	case testing.Short():
		cycles = 2_000
	case full():
		cycles = 200_000
	}
	server := redistest.Start(t)
	direct := server.Client(t)
	redistest.NoLeaks(t)
	var lockers []*lock.Locker
	for range 2 {
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 40})
		t.Cleanup(func() { client.Close() })
		lockers = append(lockers, open(t, client, &lock.Options{TTL: time.Hour}))
	}
	var s storm
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			for s.left(cycles) {
				s.cycle(t, lockers[i%2], rand.IntN(4))
			}
		})
	}
	wg.Wait()
	t.Logf("%d had, %d left before", s.had.Load(), s.gone.Load())
	if s.had.Load() < int64(cycles)/100 || s.gone.Load() < int64(cycles)/100 {
		t.Error("the storm had too few of one of them")
	}
	for _, l := range lockers {
		wantErr(t, "Close", l.Close(t.Context()), nil)
		if got := l.Stats(); got != (lock.Stats{}) {
			t.Errorf("afterwards %+v", got)
		}
	}
	for _, key := range direct.Keys(t.Context(), "*").Val() {
		if !strings.HasSuffix(key, ":f") || direct.PTTL(t.Context(), key).Val() <= 0 {
			t.Errorf("%s is left, for %v", key, direct.PTTL(t.Context(), key).Val())
		}
	}
}

// storm counts cycles.
type storm struct {
	begun, had, gone atomic.Int64
	inside           [4]atomic.Int64
}

func (s *storm) left(cycles int) bool { return s.begun.Add(1) <= int64(cycles) }

// cycle acquires a lock, or gives up, and releases it. The last of the locks has
// three places.
func (s *storm) cycle(t *testing.T, l *lock.Locker, i int) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	defer time.AfterFunc(time.Duration(rand.IntN(4000))*time.Microsecond, cancel).Stop()
	opts := lock.AcquireOptions{Fenced: rand.IntN(4) == 0, Holders: 1}
	if i == 3 {
		opts.Holders = 3
	}
	h, err := l.Acquire(ctx, fmt.Sprint(i), &opts)
	if err != nil {
		s.gone.Add(1)
		if !errors.Is(err, lock.ErrNotAcquired) || !errors.Is(err, context.Canceled) {
			t.Errorf("Acquire: %v", err)
		}
		return
	}
	s.had.Add(1)
	if n := s.inside[i].Add(1); n > int64(opts.Holders) {
		t.Errorf("%d holders of a lock with %d places", n, opts.Holders)
	}
	s.inside[i].Add(-1)
	wantErr(t, "Release", h.Release(ctx), nil)
}

// TestNothingComesBack releases locks while they are being renewed. A renewal that
// is under way does not bring a lock back, nor let a later one live longer.
func TestNothingComesBack(t *testing.T) {
	const ttl = 15 * time.Millisecond // renewed each 5 ms
	rounds := 40
	server := redistest.Start(t)
	l, direct := open(t, server.Client(t), &lock.Options{TTL: ttl}), server.Client(t)
	var renewed atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := fmt.Sprint(i)
			for range rounds {
				h, err := l.Acquire(t.Context(), name, &lock.AcquireOptions{Holders: 1 + i%2})
				if err != nil {
					continue // the machine is too busy for such a TTL
				}
				select {
				case <-h.Context().Done():
				case <-time.After(time.Duration(rand.IntN(4*int(ttl/3)) + int(ttl/6))):
					renewed.Add(1)
				}
				_ = h.Release(t.Context())
				neverRises(t, direct, "lock:{"+name+"}")
			}
		})
	}
	wg.Wait()
	if renewed.Load() < int64(rounds) {
		t.Errorf("%d releases while the lock was held, which prove too little", renewed.Load())
	}
}

// neverRises looks at a key that nobody should touch any more.
func neverRises(t *testing.T, client *redis.Client, key string) {
	last := time.Hour
	for range 10 {
		left := client.PTTL(t.Context(), key).Val()
		if left > last || left > 0 && last <= 0 {
			t.Errorf("%s has %v left after its release, and had %v before", key, left, last)
		}
		last = left
	}
}

// TestManyOnOneLock has 64 goroutines take turns on one lock.
func TestManyOnOneLock(t *testing.T) {
	const callers = 64
	turns := 20
	if full() {
		turns = 5_000
	}
	l := open(t, redistest.Start(t).Client(t), nil)
	var worst, inside atomic.Int64
	began := time.Now()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range turns {
				asked := time.Now()
				h, err := l.Acquire(t.Context(), "a", nil)
				if err != nil {
					t.Errorf("Acquire: %v", err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two holders")
				}
				took := int64(time.Since(asked))
				for old := worst.Load(); took > old && !worst.CompareAndSwap(old, took); old = worst.Load() {
				}
				inside.Add(-1)
				release(t, h)
			}
		})
	}
	wg.Wait()
	ideal := time.Since(began) / time.Duration(turns)
	t.Logf("%v a turn, longest wait %v, ideal %v", ideal/callers, time.Duration(worst.Load()), ideal)
	if time.Duration(worst.Load()) > 3*ideal+slack {
		t.Errorf("somebody waited for %v, where each turn of all takes %v", time.Duration(worst.Load()), ideal)
	}
}

// TestWaitingIsIdle has 64 goroutines wait for a second, and looks at how much
// time of the processor that costs.
func TestWaitingIsIdle(t *testing.T) {
	const callers, lasts = 64, time.Second
	server := redistest.Start(t)
	l := open(t, server.Client(t), nil)
	h := get(t, open(t, server.Client(t), nil), "a", nil)
	ctx, cancel := context.WithTimeout(t.Context(), lasts+bound)
	defer cancel()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() { _, _ = l.Acquire(ctx, "a", nil) })
	}
	redistest.Eventually(t, bound, func() bool { return l.Stats().Waiting == callers }, "all wait")
	before := used(t)
	<-time.After(lasts)
	if cost := used(t) - before; cost > lasts/10 && !racing {
		t.Errorf("%d waiters used %v of the processor in %v", callers, cost, lasts)
	} else {
		t.Logf("%d waiters used %v of the processor in %v", callers, cost, lasts)
	}
	cancel()
	wg.Wait()
	release(t, h)
}

// used returns the processor time that this process has used.
func used(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
