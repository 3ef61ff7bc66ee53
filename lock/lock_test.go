package lock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// TestConformance is what locks do on any server.
func TestConformance(t *testing.T) {
	onEach(t, func(t *testing.T, client redis.UniversalClient) {
		here, there := open(t, client, nil), open(t, client, nil)
		for name, test := range map[string]func(*testing.T, *lock.Locker, *lock.Locker, redis.UniversalClient){
			"one holder":           oneHolder,
			"semaphore":            semaphore,
			"handed over":          handedOver,
			"fences rise":          fencesRise,
			"renewed":              renewed,
			"removed":              removed,
			"all keys have a TTL":  allKeysHaveATTL,
			"run once in a slot":   runOnceInASlot,
			"min hold":             minHold,
			"another kind of lock": anotherKind,
			"status":               status,
		} {
			t.Run(name, func(t *testing.T) { test(t, here, there, client) })
		}
	})
}

func oneHolder(t *testing.T, here, there *lock.Locker, _ redis.UniversalClient) {
	for _, opts := range []*lock.AcquireOptions{nil, {Fenced: true}} {
		h := get(t, here, "one", opts)
		for _, l := range []*lock.Locker{here, there} {
			_, err := l.TryAcquire(t.Context(), "one", opts)
			wantErr(t, "second TryAcquire", err, lock.ErrNotAcquired)
		}
		_, err := there.Acquire(t.Context(), "one", &lock.AcquireOptions{Wait: 20 * time.Millisecond})
		wantErr(t, "Acquire with a short wait", err, lock.ErrNotAcquired)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err = there.Acquire(ctx, "one", opts)
		cancel()
		wantErr(t, "Acquire with a deadline", err, lock.ErrNotAcquired)
		wantErr(t, "Acquire with a deadline", err, context.DeadlineExceeded)
		if err := h.Err(); err != nil || h.Context().Err() != nil {
			t.Errorf("while held: %v, %v", err, h.Context().Err())
		}
		release(t, h)
		release(t, h)
		wantErr(t, "Err after Release", h.Err(), lock.ErrReleased)
		wantErr(t, "cause after Release", context.Cause(h.Context()), lock.ErrReleased)
		release(t, get(t, there, "one", opts))
	}
}

func semaphore(t *testing.T, here, there *lock.Locker, _ redis.UniversalClient) {
	opts := &lock.AcquireOptions{Holders: 3}
	a, b, c := get(t, here, "sem", opts), get(t, there, "sem", opts), get(t, here, "sem", opts)
	for _, l := range []*lock.Locker{here, there} {
		_, err := l.TryAcquire(t.Context(), "sem", opts)
		wantErr(t, "a fourth holder", err, lock.ErrNotAcquired)
	}
	got := make(chan *lock.Lease)
	go func() { got <- get(t, there, "sem", opts) }()
	release(t, b)
	d := <-got
	for _, h := range []*lock.Lease{a, c, d} {
		release(t, h)
	}
}

// handedOver has 2 processes with 20 waiters each; nobody may be alone in having
// to poll.
func handedOver(t *testing.T, here, there *lock.Locker, _ redis.UniversalClient) {
	var mu sync.Mutex
	inside, turns := 0, 0
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			l := []*lock.Locker{here, there}[i%2]
			h := get(t, l, "turns", nil)
			mu.Lock()
			if inside++; inside > 1 {
				t.Errorf("%d holders", inside)
			}
			turns++
			mu.Unlock()
			time.Sleep(time.Millisecond)
			mu.Lock()
			inside--
			mu.Unlock()
			release(t, h)
		})
	}
	wg.Wait()
	if turns != 40 {
		t.Errorf("%d turns, want 40", turns)
	}
	if got := here.Stats(); got != (lock.Stats{}) {
		t.Errorf("afterwards %+v", got)
	}
}

func fencesRise(t *testing.T, here, there *lock.Locker, client redis.UniversalClient) {
	var last int64
	for i := range 20 {
		l := []*lock.Locker{here, there}[i%2]
		h := get(t, l, "fenced", &lock.AcquireOptions{Fenced: i%3 == 0, Holders: 1 + i%2})
		fence, err := h.Fence(t.Context())
		again, _ := h.Fence(t.Context())
		if err != nil || fence <= last || again != fence {
			t.Fatalf("fence %d after %d, then %d, %v", fence, last, again, err)
		}
		last = fence
		release(t, h)
	}
	// A counter ahead of the clock, as after a failover to a slower clock.
	ahead := last + int64(time.Hour/time.Microsecond)
	if err := client.Set(t.Context(), "lock:{fenced}:f", ahead, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	h := get(t, here, "fenced", nil)
	if fence, err := h.Fence(t.Context()); fence != ahead+1 || err != nil {
		t.Errorf("fence %d, %v; want %d, one above the counter", fence, err, ahead+1)
	}
	release(t, h)
}

func renewed(t *testing.T, here, there *lock.Locker, _ redis.UniversalClient) {
	kinds := map[string]*lock.AcquireOptions{
		"renewed": {TTL: 300 * time.Millisecond}, "renewed too": {TTL: 300 * time.Millisecond, Holders: 2},
	}
	for name, opts := range kinds {
		for range max(1, opts.Holders) {
			defer release(t, get(t, here, name, opts))
		}
	}
	over := time.Now().Add(time.Second)
	redistest.Eventually(t, bound, func() bool {
		for name, opts := range kinds {
			_, err := there.TryAcquire(t.Context(), name, opts)
			wantErr(t, "TryAcquire beyond the TTL", err, lock.ErrNotAcquired)
		}
		return time.Now().After(over)
	}, "a second has passed")
}

func removed(t *testing.T, here, _ *lock.Locker, client redis.UniversalClient) {
	for _, holders := range []int{1, 2} {
		opts := &lock.AcquireOptions{TTL: 300 * time.Millisecond, Holders: holders}
		h := get(t, here, "removed", opts)
		client.Del(t.Context(), "lock:{removed}")
		ends(t, h)
		wantErr(t, "cause", context.Cause(h.Context()), lock.ErrLost)
		wantErr(t, "Err", h.Err(), lock.ErrLost)
		wantErr(t, "Release", h.Release(t.Context()), lock.ErrLost)

		h = get(t, here, "removed", &lock.AcquireOptions{Holders: holders})
		client.Del(t.Context(), "lock:{removed}")
		_, err := h.Fence(t.Context())
		wantErr(t, "Fence", err, lock.ErrLost)
		wantErr(t, "Release", h.Release(t.Context()), lock.ErrLost)
	}
}

func allKeysHaveATTL(t *testing.T, here, there *lock.Locker, client redis.UniversalClient) {
	held := []*lock.Lease{
		get(t, here, "ttl", &lock.AcquireOptions{Fenced: true}),
		get(t, here, "ttls", &lock.AcquireOptions{Fenced: true, Holders: 2}),
	}
	waiting, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := there.Acquire(waiting, "ttl", nil)
		done <- err
	}()
	keys := []string{"lock:{ttl}", "lock:{ttl}:w", "lock:{ttl}:f", "lock:{ttls}", "lock:{ttls}:f", "lock:{job}", "lock:{job}:s:1"}
	if err := here.Run(t.Context(), "job", func(context.Context) error { return nil }, &lock.RunOptions{Slot: "1", MinHold: time.Minute}); err != nil {
		t.Error(err)
	}
	for _, key := range keys {
		redistest.Eventually(t, bound, func() bool { return client.PTTL(t.Context(), key).Val() > 0 }, key+" has a TTL")
	}
	cancel()
	wantErr(t, "a cancelled wait", <-done, context.Canceled)
	for _, h := range held {
		release(t, h)
	}
	redistest.Eventually(t, bound, func() bool {
		return client.Exists(t.Context(), "lock:{ttl}", "lock:{ttl}:w").Val() == 0
	}, "who waits no longer has left the queue")
}

func runOnceInASlot(t *testing.T, here, there *lock.Locker, _ redis.UniversalClient) {
	boom := errors.New("boom")
	opts := &lock.RunOptions{Slot: "2026-11", SlotTTL: time.Hour}
	runs := 0
	run := func(l *lock.Locker, task error, o *lock.RunOptions) error {
		return l.Run(t.Context(), "report", func(ctx context.Context) error {
			runs++
			if lock.LeaseFrom(ctx).Err() != nil {
				t.Error("the task has no lease")
			}
			return task
		}, o)
	}
	wantErr(t, "a task that fails", run(here, boom, opts), boom)
	wantErr(t, "the next attempt", run(there, nil, opts), nil)
	wantErr(t, "once more", run(here, nil, opts), lock.ErrAlreadyRan)
	wantErr(t, "once more, waiting", run(there, nil, &lock.RunOptions{Slot: "2026-11", Wait: -1}), lock.ErrAlreadyRan)
	wantErr(t, "another slot", run(here, nil, &lock.RunOptions{Slot: "2026-12"}), nil)
	if runs != 3 {
		t.Errorf("%d runs, want 3", runs)
	}
}

func minHold(t *testing.T, here, there *lock.Locker, client redis.UniversalClient) {
	opts := &lock.RunOptions{MinHold: time.Minute}
	nothing := func(context.Context) error { return nil }
	wantErr(t, "first", here.Run(t.Context(), "min", nothing, opts), nil)
	wantErr(t, "second", there.Run(t.Context(), "min", nothing, opts), lock.ErrNotAcquired)
	if got := client.PTTL(t.Context(), "lock:{min}").Val(); got > time.Minute || got < 50*time.Second {
		t.Errorf("locked for %v more, want a little less than a minute", got)
	}
}

func anotherKind(t *testing.T, here, there *lock.Locker, client redis.UniversalClient) {
	h := get(t, here, "kind", nil)
	_, err := there.TryAcquire(t.Context(), "kind", &lock.AcquireOptions{Holders: 2})
	if err == nil || errors.Is(err, lock.ErrUnavailable) || !strings.Contains(err.Error(), "Holders") {
		t.Errorf("with another number of holders: %v", err)
	}
	release(t, h)
	client.RPush(t.Context(), "lock:{list}", "x")
	_, err = there.TryAcquire(t.Context(), "list", &lock.AcquireOptions{Fenced: true})
	if err == nil || !strings.Contains(err.Error(), "lock:{list}") {
		t.Errorf("on a list: %v", err)
	}
}

func status(t *testing.T, here, there *lock.Locker, _ redis.UniversalClient) {
	one := get(t, here, "s-one", &lock.AcquireOptions{Info: "the writer"})
	two := get(t, there, "s-two*", &lock.AcquireOptions{Holders: 2, TTL: time.Hour})
	all, err := here.List(t.Context(), "s-")
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v; want two locks", all, err)
	}
	if got := all[0]; got.Name != "s-one" || len(got.Holders) != 1 || got.Holders[0].Info != "the writer" ||
		got.Holders[0].State != "held" || got.Holders[0].Left > 10*time.Second || got.Holders[0].Left <= 0 {
		t.Errorf("%+v", got)
	}
	if got := all[1]; got.Name != "s-two*" || len(got.Holders) != 1 || !strings.Contains(got.Holders[0].Info, "/") || got.Holders[0].Left < 59*time.Minute {
		t.Errorf("%+v", got)
	}
	if got, _ := here.List(t.Context(), "s-two*"); len(got) != 1 {
		t.Errorf("a name is not a pattern: %+v", got)
	}
	release(t, one)
	release(t, two)
	if got, err := here.Status(t.Context(), "s-one"); err != nil || len(got.Holders) != 0 {
		t.Errorf("after release: %+v, %v", got, err)
	}
}
