package entry_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/command"
	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/proxy"
	"github.com/getorprime/getorprime/internal/redistest"
)

// TestBreaker is about a Redis that refuses connections and comes back.
func TestBreaker(t *testing.T) {
	net, err := proxy.New(redistest.Start(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: net.Addr()})
	t.Cleanup(func() { client.Close(); net.Close() })
	store := entry.NewStore(client, "channel", 100*time.Millisecond)
	var mu sync.Mutex
	var changes []bool
	store.Changed = func(open bool) {
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, open)
	}
	get := func() error { _, err := store.Get(t.Context(), "k"); return err }
	if err := get(); err != nil {
		t.Fatal(err)
	}

	net.Cut()
	for i := range 5 {
		if err := get(); err == nil || errors.Is(err, entry.ErrOpen) {
			t.Errorf("call %d: %v, want Redis's trouble", i, err)
		}
	}
	start := time.Now()
	if err := get(); !errors.Is(err, entry.ErrOpen) {
		t.Errorf("after five failures: %v, want ErrOpen", err)
	}
	if took := time.Since(start); took > 50*time.Millisecond {
		t.Errorf("an open breaker took %v", took)
	}
	if _, err := store.Get(command.Insisting(t.Context(), 100*time.Millisecond), "k"); err == nil || errors.Is(err, entry.ErrOpen) {
		t.Errorf("insisting: %v, want Redis's trouble", err)
	}

	if err := net.Heal(); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, 5*time.Second, func() bool { return get() == nil }, "the breaker closes")
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(changes, []bool{true, false}) {
		t.Errorf("changes %v, want opened, closed", changes)
	}
}

// TestBreakerCountsACommandOnce cuts connections that are used at the moment.
// New ones work, so nothing is broken.
func TestBreakerCountsACommandOnce(t *testing.T) {
	net, err := proxy.New(redistest.Start(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: net.Addr()})
	t.Cleanup(func() { client.Close(); net.Close() })
	store := entry.NewStore(client, "channel", 5*time.Second)
	store.Changed = func(open bool) { t.Errorf("changed to open = %v", open) }
	net.SetDelay(20*time.Millisecond, 0)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 5 {
				if _, err := store.Get(t.Context(), "k"); err != nil {
					t.Errorf("Get: %v", err)
				}
			}
		})
	}
	time.AfterFunc(30*time.Millisecond, func() {
		net.Cut()
		if err := net.Heal(); err != nil {
			t.Errorf("Heal: %v", err)
		}
	})
	wg.Wait()
}
