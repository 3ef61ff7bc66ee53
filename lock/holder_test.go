package lock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// TestToken finds a lease by its token in what the lock's key holds.
func TestToken(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open(t, client, nil)
	tests := []struct {
		name string
		opts lock.AcquireOptions
		read func(key string) string
	}{
		{"plain", lock.AcquireOptions{Info: "I am"}, func(key string) string { return client.Get(t.Context(), key).Val() }},
		{"fenced", lock.AcquireOptions{Fenced: true}, func(key string) string { return client.Get(t.Context(), key).Val() }},
		{"semaphore", lock.AcquireOptions{Holders: 2}, func(key string) string { return firstMember(t, client, key) }},
	}
	seen := map[string]bool{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := get(t, l, tt.name, &tt.opts)
			if got := tt.read("lock:{" + tt.name + "}"); !strings.HasPrefix(got, "h"+h.Token()+" ") {
				t.Errorf("the key holds %q, want h, the token %q, and a space", got, h.Token())
			}
			if len(h.Token()) != 32 || seen[h.Token()] {
				t.Errorf("token %q, want 32 digits of its own", h.Token())
			}
			seen[h.Token()] = true
		})
	}
}

func firstMember(t *testing.T, client *redis.Client, key string) string {
	t.Helper()
	members, err := client.ZRange(t.Context(), key, 0, 0).Result()
	if err != nil || len(members) != 1 {
		t.Fatalf("members %q, %v; want one", members, err)
	}
	return members[0]
}

// TestLeft sees what is left of a lease fall, and rise when it is renewed.
func TestLeft(t *testing.T) {
	const ttl, grace = 3 * time.Second, time.Second
	l := open(t, redistest.Start(t).Client(t), nil)
	h := get(t, l, "left", &lock.AcquireOptions{TTL: ttl, Grace: grace})
	first := h.Left()
	if first > ttl-ttl/100 || first <= grace {
		t.Errorf("%v left of a new lease, want between %v and %v", first, grace, ttl)
	}
	low := first
	redistest.Eventually(t, bound, func() bool {
		left := h.Left()
		low = min(low, left)
		return left > low+ttl/6
	}, "a renewal")
	if low >= first {
		t.Errorf("%v left before the renewal, want less than %v", low, first)
	}
}

// TestTaskHasItsFence asks for the fence when the server is no more.
func TestTaskHasItsFence(t *testing.T) {
	server := redistest.Start(t)
	l := open(t, server.Client(t), &lock.Options{RedisBudget: time.Second})
	for _, fenced := range []bool{true, false} {
		var fence int64
		var err error
		_ = l.Run(t.Context(), "task", func(ctx context.Context) error {
			server.Kill()
			fence, err = lock.LeaseFrom(ctx).Fence(ctx)
			return nil
		}, &lock.RunOptions{Fenced: fenced})
		if fenced && (fence == 0 || err != nil) {
			t.Errorf("fenced: fence %d, %v; want one that needs no server", fence, err)
		}
		if !fenced {
			wantErr(t, "not fenced: Fence", err, lock.ErrUnavailable)
		}
		server.Restart()
	}
}
