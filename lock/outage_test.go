package lock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// never is a task that must not run.
func never(t *testing.T) func(context.Context) error {
	return func(context.Context) error {
		t.Error("the task ran though the lock was not held")
		return nil
	}
}

// TestAbsentAtFirst has a locker be made before there is a Redis. It says so, runs
// nothing, and works as soon as there is one.
func TestAbsentAtFirst(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Kill()
	l := open(t, server.Client(t), &lock.Options{RedisBudget: 300 * time.Millisecond})
	_, err := l.TryAcquire(t.Context(), "a", nil)
	wantErr(t, "TryAcquire", err, lock.ErrUnavailable)
	_, err = l.Acquire(t.Context(), "a", nil)
	wantErr(t, "Acquire", err, lock.ErrUnavailable)
	for _, wait := range []time.Duration{0, -1, time.Second} {
		err = l.Run(t.Context(), "a", never(t), &lock.RunOptions{Wait: wait})
		wantErr(t, "Run", err, lock.ErrUnavailable)
		if errors.Is(err, lock.ErrNotAcquired) {
			t.Errorf("Run: %v, which is not that others hold the lock", err)
		}
	}
	server.Restart()
	redistest.Eventually(t, bound, func() bool {
		return l.Run(t.Context(), "a", func(context.Context) error { return nil }, nil) == nil
	}, "the task runs once Redis is there")
}

// TestRestart has Redis come back empty while a lock is held. The holder learns of
// that at its next renewal, and everybody may go on.
func TestRestart(t *testing.T) {
	for _, holders := range []int{1, 2} {
		server := redistest.Start(t)
		l := open(t, server.Client(t), &lock.Options{TTL: 600 * time.Millisecond})
		opts := &lock.AcquireOptions{Holders: holders}
		h := get(t, l, "a", opts)
		server.Restart()
		ends(t, h)
		wantErr(t, "cause", context.Cause(h.Context()), lock.ErrLost)
		wantErr(t, "Release", h.Release(t.Context()), lock.ErrLost)
		redistest.Eventually(t, bound, func() bool {
			again, err := l.TryAcquire(t.Context(), "a", opts)
			return err == nil && again.Release(t.Context()) == nil
		}, "the lock is had again")
	}
}

// TestAllWaitersHearOfTrouble has Redis fail while many wait in one process. They
// learn of it together: each alone would take its own budget.
func TestAllWaitersHearOfTrouble(t *testing.T) {
	const waiters, budget = 40, 300 * time.Millisecond
	for name, fail := range map[string]func(*redistest.Server){"gone": (*redistest.Server).Kill, "silent": (*redistest.Server).Pause} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			l, there := open(t, server.Client(t), &lock.Options{RedisBudget: budget}), open(t, server.Client(t), &lock.Options{RedisBudget: budget})
			get(t, there, "a", &lock.AcquireOptions{TTL: time.Hour})
			var wg sync.WaitGroup
			for range waiters {
				wg.Go(func() {
					_, err := l.Acquire(t.Context(), "a", nil)
					wantErr(t, "a waiter", err, lock.ErrUnavailable)
				})
			}
			redistest.Eventually(t, bound, func() bool { return l.Stats().Waiting == waiters }, "all wait")
			began := time.Now()
			fail(server)
			wg.Wait()
			if took := time.Since(began); took > poll+2*budget+slack {
				t.Errorf("%d waiters heard of it within %v, want a poll and one budget", waiters, took)
			}
		})
	}
}

// TestMemoryFull has Redis be full. A new lock is refused with the reason; what is
// held is renewed and released, also as its task has succeeded.
func TestMemoryFull(t *testing.T) {
	const ttl = 400 * time.Millisecond
	for name, opts := range kindsOfLock {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			client := server.Client(t)
			l, there := open(t, client, &lock.Options{TTL: ttl}), open(t, client, nil)
			limit := func(bytes string) {
				if err := client.ConfigSet(t.Context(), "maxmemory", bytes).Err(); err != nil {
					t.Fatal(err)
				}
			}
			h := get(t, l, "a", &opts)
			slot := &lock.RunOptions{Slot: "s", Holders: opts.Holders}
			err := l.Run(t.Context(), "job", func(context.Context) error {
				limit("1")
				renewals(t, client, ttl, "lock:{a}", "lock:{job}")
				return errors.Join(h.Err(), h.Release(t.Context()))
			}, slot)
			if err != nil {
				t.Errorf("on a full server: %v", err)
			}
			if n := client.Exists(t.Context(), "lock:{a}", "lock:{job}").Val(); n != 0 {
				t.Errorf("%d locks left after their release", n)
			}
			wantErr(t, "once more", there.Run(t.Context(), "job", never(t), slot), lock.ErrAlreadyRan)

			_, err = there.TryAcquire(t.Context(), "b", nil)
			wantErr(t, "a new lock", err, lock.ErrUnavailable)
			if !strings.Contains(err.Error(), "OOM") {
				t.Errorf("a new lock: %v, want the reason", err)
			}
			limit("0")
			release(t, get(t, there, "a", &opts))
		})
	}
}

// TestTryAcquireSaysWhatRedisSays has many callers try at once while Redis is
// down: that is trouble for all, not a lock that others hold.
func TestTryAcquireSaysWhatRedisSays(t *testing.T) {
	server := redistest.Start(t)
	l := open(t, server.Client(t), &lock.Options{RedisBudget: 300 * time.Millisecond})
	server.Pause()
	defer server.Resume()
	errs := make(chan error)
	for range 50 {
		go func() {
			_, err := l.TryAcquire(t.Context(), "down", nil)
			errs <- err
		}()
	}
	for range 50 {
		if err := <-errs; !errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrNotAcquired) {
			t.Errorf("got %v, want ErrUnavailable alone", err)
		}
	}
}
