package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/proxy"
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

// ends waits for the end of a lease's context.
func ends(tb testing.TB, h *lock.Lease) {
	tb.Helper()
	select {
	case <-h.Context().Done():
	case <-time.After(bound):
		tb.Fatalf("the holder of %q was not told of the end", h.Name())
	}
}

// wantErr reports an error that is not the one wanted.
func wantErr(tb testing.TB, what string, got, want error) {
	tb.Helper()
	if !errors.Is(got, want) {
		tb.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// newProxy puts a faulty network before the server at addr.
func newProxy(tb testing.TB, addr string) (*proxy.Proxy, *redis.Client) {
	tb.Helper()
	p, err := proxy.New(addr)
	if err != nil {
		tb.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: p.Addr()})
	tb.Cleanup(func() { client.Close(); p.Close() })
	return p, client
}

// gone waits until a lock's key is gone.
func gone(tb testing.TB, client redis.UniversalClient, name string, within time.Duration) {
	tb.Helper()
	redistest.Eventually(tb, within, func() bool {
		n, err := client.Exists(tb.Context(), "lock:{"+name+"}").Result()
		return err == nil && n == 0
	}, fmt.Sprintf("%q is free", name))
}

// wantHolds fails unless Redis has the lock be h's.
func wantHolds(tb testing.TB, client *redis.Client, h *lock.Lease) {
	tb.Helper()
	key := "lock:{" + h.Name() + "}"
	holders := client.ZRange(tb.Context(), key, 0, -1).Val() // of a semaphore; none of a lock with one place
	if len(holders) == 0 {
		holders = []string{client.Get(tb.Context(), key).Val()}
	}
	if !slices.ContainsFunc(holders, func(v string) bool { return strings.Contains(v, h.Token()) }) {
		tb.Errorf("%q is held by %q, want the token %s among them", h.Name(), holders, h.Token())
	}
}

// onEach runs a test on a real server, on a real cluster, and on the embedded
// server.
func onEach(t *testing.T, test func(t *testing.T, client redis.UniversalClient)) {
	t.Run("server", func(t *testing.T) { t.Parallel(); test(t, redistest.Start(t).Client(t)) })
	t.Run("cluster", func(t *testing.T) { t.Parallel(); test(t, redistest.StartCluster(t).Client(t)) })
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
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

// renewals waits until keys have lived for two more of their TTLs, which they do
// only if they are renewed.
func renewals(tb testing.TB, client redis.UniversalClient, ttl time.Duration, keys ...string) {
	tb.Helper()
	until := time.Now().Add(2 * ttl)
	redistest.Eventually(tb, bound, func() bool {
		for _, key := range keys {
			if left := client.PTTL(tb.Context(), key).Val(); left <= 0 {
				tb.Fatalf("%s was not renewed: %v left", key, left)
			}
		}
		return time.Now().After(until)
	}, "two TTLs have passed")
}
