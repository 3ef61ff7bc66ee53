package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redisembed"
	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// bound is how long a test on a real server waits for what should happen soon.
const bound = 20 * time.Second

// open returns a locker on client that is closed when the test ends. Unless opts
// say so, its Redis budget is one that a busy machine does not exhaust.
func open(tb testing.TB, client redis.UniversalClient, opts *lock.Options) *lock.Locker {
	tb.Helper()
	o := lock.Options{RedisBudget: bound}
	if opts != nil {
		o = *opts
		if o.RedisBudget == 0 {
			o.RedisBudget = bound
		}
	}
	l, err := lock.New(client, &o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return l
}

// get acquires a lock that has to be had.
func get(tb testing.TB, l *lock.Locker, name string, opts *lock.AcquireOptions) *lock.Lease {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	tb.Cleanup(cancel)
	late := time.AfterFunc(bound, cancel)
	defer late.Stop()
	h, err := l.Acquire(ctx, name, opts)
	if err != nil {
		tb.Fatalf("acquiring %q: %v", name, err)
	}
	tb.Cleanup(func() { _ = h.Release(context.Background()) })
	return h
}

// release gives a lock back that has to be held.
func release(tb testing.TB, h *lock.Lease) {
	tb.Helper()
	if err := h.Release(context.Background()); err != nil {
		tb.Errorf("releasing %q: %v", h.Name(), err)
	}
}

// wantErr reports an error that is not the one wanted.
func wantErr(tb testing.TB, what string, got, want error) {
	tb.Helper()
	if !errors.Is(got, want) {
		tb.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// onEach runs a test on a real server, on a real cluster, and on the embedded
// server.
func onEach(t *testing.T, test func(t *testing.T, client redis.UniversalClient)) {
	t.Run("server", func(t *testing.T) { test(t, redistest.Start(t).Client(t)) })
	t.Run("cluster", func(t *testing.T) { test(t, redistest.StartCluster(t).Client(t)) })
	t.Run("embedded", func(t *testing.T) {
		embedded, err := redisembed.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(embedded.Close)
		client := redis.NewClient(&redis.Options{Addr: embedded.Addr()})
		t.Cleanup(func() { client.Close() })
		test(t, client)
	})
}
