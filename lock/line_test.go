package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/proxy"
	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// had is when a waiter had a lock, or the error it got.
type had struct {
	at  time.Time
	err error
}

// waitHad acquires a lock in a goroutine, and releases it at once.
func waitHad(ctx context.Context, l *lock.Locker, name string, opts *lock.AcquireOptions) <-chan had {
	done := make(chan had, 1)
	go func() {
		h, err := l.Acquire(ctx, name, opts)
		got := had{time.Now(), err}
		if err == nil {
			got.err = h.Release(ctx)
		}
		done <- got
	}()
	return done
}

// inLine waits until so many processes are noted as waiting for a lock.
func inLine(t *testing.T, l *lock.Locker, name string, n int) {
	t.Helper()
	redistest.Eventually(t, bound, func() bool {
		s, err := l.Status(t.Context(), name)
		return err == nil && s.Waiting == n
	}, "processes are noted as waiting")
}

// TestNamedAndLeft has the only waiter of a process leave at the moment at which
// the lock is reserved for that process. It is passed on to the next process, not
// left to lapse.
func TestNamedAndLeft(t *testing.T) {
	rounds := 60
	if full() {
		rounds = 2_000
	}
	server := redistest.Start(t)
	holder, leaver, next := open(t, server.Client(t), nil), open(t, server.Client(t), nil), open(t, server.Client(t), nil)
	for _, opts := range []*lock.AcquireOptions{{}, {Holders: 2}} {
		var took []time.Duration
		left := 0
		for round := range rounds {
			name := fmt.Sprint(opts.Holders, round)
			h := get(t, holder, name, opts)
			if opts.Holders == 2 {
				get(t, holder, name, opts)
			}
			ctx, cancel := context.WithCancel(t.Context())
			first := waitHad(ctx, leaver, name, opts)
			inLine(t, holder, name, 1)
			second := waitHad(t.Context(), next, name, opts)
			inLine(t, holder, name, 2)
			time.AfterFunc(rand.N(time.Millisecond), cancel)
			began := time.Now()
			release(t, h)
			if got := <-first; errors.Is(got.err, context.Canceled) {
				left++
			}
			got := <-second
			wantErr(t, "the next", got.err, nil)
			took = append(took, got.at.Sub(began))
		}
		slices.Sort(took)
		t.Logf("%d of %d left; the next had the lock after %v (median), %v at most", left, rounds, took[rounds/2], took[rounds-1])
		if worst := took[rounds-1]; worst > poll+slack {
			t.Errorf("the next had the lock after %v, want within a poll", worst)
		}
		if p90 := took[rounds*9/10]; p90 > reservation*9/10 {
			t.Errorf("nine in ten had the lock within %v, want no reservation waited for", p90)
		}
		if left == 0 {
			t.Error("nobody left in time, which proves nothing")
		}
	}
}

// TestImpatient has callers of one process wait for a few milliseconds each, again
// and again, so that its line ends and begins anew all the time. That wedges
// nothing: a patient process, and a patient caller among them, are served, and
// nobody hears of any trouble but that the wait was over.
func TestImpatient(t *testing.T) {
	const turns = 100
	server := redistest.Start(t)
	holder, hasty, patient := open(t, server.Client(t), nil), open(t, server.Client(t), nil), open(t, server.Client(t), nil)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				within, cancel := context.WithCancel(t.Context())
				opts := &lock.AcquireOptions{Fenced: i%2 == 0}
				if limit := rand.N(4*time.Millisecond) + 1; i%4 < 2 {
					opts.Wait = limit
				} else {
					within, cancel = context.WithTimeout(t.Context(), limit)
				}
				if got := <-waitHad(within, hasty, "a", opts); got.err != nil && !errors.Is(got.err, lock.ErrNotAcquired) {
					t.Errorf("a hasty caller: %v", got.err)
				}
				cancel()
			}
		})
	}
	var worst time.Duration
	for i := range turns {
		h := get(t, holder, "a", nil)
		waiters := []<-chan had{waitHad(t.Context(), patient, "a", nil), waitHad(t.Context(), hasty, "a", nil)}
		<-time.After(rand.N(8 * time.Millisecond))
		began := time.Now()
		release(t, h)
		for _, w := range waiters {
			got := <-w
			wantErr(t, fmt.Sprint("a patient caller in turn ", i), got.err, nil)
			worst = max(worst, got.at.Sub(began))
		}
	}
	cancel()
	wg.Wait()
	t.Logf("patient callers waited for %v at most", worst)
	if worst > 2*poll+slack {
		t.Errorf("a patient caller waited for %v after the release", worst)
	}
}

// TestDeadlinesAreOnesOwn has many callers of one process wait, each with a deadline
// of its own, while Redis is slow: deadlines pass within commands. Nobody hears of
// another's.
func TestDeadlinesAreOnesOwn(t *testing.T) {
	server := redistest.Start(t)
	p, client := newProxy(t, server.Addr())
	l := open(t, client, nil)
	release(t, get(t, l, "a", nil))
	h := get(t, open(t, server.Client(t), nil), "a", nil)
	p.SetDelay(0, 20*time.Millisecond)
	var wg sync.WaitGroup
	stays := waitHad(t.Context(), l, "a", nil)
	for i := range 60 {
		wg.Go(func() {
			within := time.Duration(30+5*i) * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			began := time.Now()
			got := <-waitHad(ctx, l, "a", nil)
			wantErr(t, "who has a deadline", got.err, context.DeadlineExceeded)
			wantErr(t, "who has a deadline", got.err, lock.ErrNotAcquired)
			if late := got.at.Sub(began) - within; late > 100*time.Millisecond+slack {
				t.Errorf("returned %v after the deadline", late)
			}
		})
	}
	wg.Wait()
	release(t, h)
	got := <-stays
	wantErr(t, "who has none", got.err, nil)
}

// TestDeadlineInACommand has deadlines pass at about the time at which the reply
// comes. However close it is, the caller hears of its deadline, not of trouble with
// Redis, and what was granted is given back.
func TestDeadlineInACommand(t *testing.T) {
	attempts := 4_000
	if full() {
		attempts = 200_000
	}
	server := redistest.Start(t)
	l := open(t, server.Client(t), &lock.Options{TTL: time.Hour})
	var had, left atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := fmt.Sprint(i)
			for range attempts / 8 {
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(2*time.Millisecond)+1)
				h, err := l.Acquire(ctx, name, &lock.AcquireOptions{Fenced: i%2 == 0})
				cancel()
				switch {
				case err == nil:
					had.Add(1)
					wantErr(t, "Release", h.Release(ctx), nil)
				case errors.Is(err, lock.ErrNotAcquired) && errors.Is(err, context.DeadlineExceeded):
					left.Add(1)
				default:
					t.Errorf("Acquire: %v, want the lock or the deadline", err)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d had, %d left before", had.Load(), left.Load())
	if had.Load() == 0 || left.Load() == 0 {
		t.Error("one of them never came about")
	}
	for i := range 8 {
		gone(t, server.Client(t), fmt.Sprint(i), bound)
	}
}

// TestWaitEndsInACommand has Wait be over while the reply is under way that grants
// the lock. The reply is waited for: a lock whose fate is not known would be
// nobody's until its TTL.
func TestWaitEndsInACommand(t *testing.T) {
	server := redistest.Start(t)
	p, client := newProxy(t, server.Addr())
	l, there := open(t, client, &lock.Options{TTL: time.Hour}), open(t, server.Client(t), nil)
	release(t, get(t, l, "a", &lock.AcquireOptions{Fenced: true}))
	held := get(t, there, "a", nil)
	p.OnCommand(func(cmd [][]byte) proxy.Fault {
		if asks(cmd) && strings.HasPrefix(string(cmd[0]), "eval") && held.Err() == nil {
			release(t, held)
			p.SetDelay(0, 200*time.Millisecond)
		}
		return proxy.Pass()
	})
	h, err := l.Acquire(t.Context(), "a", &lock.AcquireOptions{Wait: 100 * time.Millisecond})
	p.SetDelay(0, 0)
	if err != nil {
		t.Fatalf("Acquire: %v, want the lock that was granted in time", err)
	}
	release(t, h)
	gone(t, server.Client(t), "a", time.Second)
}
