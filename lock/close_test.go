package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// TestClose closes a locker while locks are held and waited for: waiting ends at
// once, nobody else gets in, and Close returns when the last lock is released.
func TestClose(t *testing.T) {
	inBubble(t, nil, func(b *bubble, l *lock.Locker) {
		h := b.get(l, "a", nil)
		waiting := make(chan error)
		for _, opts := range []*lock.AcquireOptions{nil, {Wait: time.Hour}, {Fenced: true}} {
			go func() {
				_, err := l.Acquire(b.Context(), "a", opts)
				waiting <- err
			}()
		}
		go func() { waiting <- l.Run(b.Context(), "a", never(t), &lock.RunOptions{Wait: -1}) }()
		synctest.Wait()
		if got := l.Stats(); got != (lock.Stats{Held: 1, Waiting: 4}) {
			b.Errorf("%+v, want one held and four waiting", got)
		}
		closed := make(chan error, 2)
		for range 2 {
			go func() { closed <- l.Close(b.Context()) }()
		}
		for range 4 {
			wantErr(b, "a waiter", <-waiting, lock.ErrClosed)
		}
		_, err := l.TryAcquire(b.Context(), "b", nil)
		wantErr(b, "TryAcquire after Close", err, lock.ErrClosed)
		_, err = l.Acquire(b.Context(), "b", nil)
		wantErr(b, "Acquire after Close", err, lock.ErrClosed)
		time.Sleep(time.Hour)
		if len(closed) > 0 || h.Err() != nil {
			b.Errorf("%d Close returned while a lock is held, which says %v", len(closed), h.Err())
		}
		release(b, h)
		wantErr(b, "Close", <-closed, nil)
		wantErr(b, "Close", <-closed, nil)
		wantErr(b, "Close once more", l.Close(b.Context()), nil)
		if keys := b.redis.Keys(); len(keys) > 0 {
			b.Errorf("left in Redis: %q", keys)
		}
	})
}

// TestCloseInVain closes a locker while somebody holds a lock who never lets go.
func TestCloseInVain(t *testing.T) {
	const ttl = 10 * time.Second
	inBubble(t, &lock.Options{TTL: ttl}, func(b *bubble, l *lock.Locker) {
		h := b.get(l, "a", nil)
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		err := l.Close(ctx)
		if took := time.Since(began); took != time.Minute {
			b.Errorf("Close took %v, want what it was given", took)
		}
		wantErr(b, "Close", err, context.DeadlineExceeded)
		if err == nil || !strings.Contains(err.Error(), "1 lease") {
			b.Errorf("Close: %v, want how many are held", err)
		}
		wantErr(b, "the holder's context", context.Cause(h.Context()), lock.ErrClosed)
		time.Sleep(ttl)
		if b.redis.Exists("lock:{a}") {
			b.Error("the lock has not lapsed")
		}
		wantErr(b, "Err", h.Err(), lock.ErrLost)
		wantErr(b, "Release", h.Release(b.Context()), lock.ErrLost)
		wantErr(b, "Close again", l.Close(b.Context()), nil)
	})
}

// TestCloseIsBounded closes a locker while Redis does not answer.
func TestCloseIsBounded(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	l, err := lock.New(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := get(t, l, "a", &lock.AcquireOptions{TTL: time.Hour})
	waiting := make(chan error)
	go func() {
		_, err := l.Acquire(t.Context(), "a", nil)
		waiting <- err
	}()
	redistest.Eventually(t, bound, func() bool { return l.Stats().Waiting == 1 }, "somebody waits")
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	wantErr(t, "Close", l.Close(ctx), context.DeadlineExceeded)
	if took := time.Since(began); took > 200*time.Millisecond+slack {
		t.Errorf("Close took %v, want at most the 100ms it was given", took)
	}
	if err := <-waiting; !errors.Is(err, lock.ErrClosed) && !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("the waiter got %v", err)
	}
	server.Resume()
	release(t, h)
	wantErr(t, "Close again", l.Close(t.Context()), nil)
}

// TestCloseUnderTraffic closes a locker, and then its client, while it is called.
// Each call is answered or refused, and no lock is left that nobody holds.
func TestCloseUnderTraffic(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 20
	}
	server := redistest.Start(t)
	direct := server.Client(t)
	redistest.NoLeaks(t)
	for round := range rounds {
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		l, err := lock.New(client, &lock.Options{RedisBudget: bound, TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				untilClosed(t, l, fmt.Sprint(i%3), &lock.AcquireOptions{Fenced: i%2 == 0, Wait: time.Duration(i%4) * time.Millisecond})
			})
		}
		redistest.Eventually(t, bound, func() bool { return l.Stats().Held > 0 }, "locks are held")
		wantErr(t, "Close", l.Close(t.Context()), nil)
		if got := l.Stats(); got != (lock.Stats{}) {
			t.Errorf("after Close: %+v", got)
		}
		client.Close()
		for i := range 3 {
			if n := direct.Exists(t.Context(), fmt.Sprintf("lock:{%d}", i), fmt.Sprintf("lock:{%d}:w", i)).Val(); n != 0 {
				t.Fatalf("round %d: %d keys of lock %d are left", round, n, i)
			}
		}
		wg.Wait()
	}
}

// untilClosed acquires and releases a lock until the locker is closed.
func untilClosed(t *testing.T, l *lock.Locker, name string, opts *lock.AcquireOptions) {
	for {
		acquire := l.Acquire
		if opts.Wait == 0 {
			acquire = l.TryAcquire
		}
		h, err := acquire(t.Context(), name, opts)
		switch {
		case err == nil:
			if err := h.Release(t.Context()); err != nil {
				t.Errorf("Release: %v", err)
			}
		case errors.Is(err, lock.ErrClosed):
			return
		case !errors.Is(err, lock.ErrNotAcquired):
			t.Errorf("Acquire: %v", err)
		}
	}
}
