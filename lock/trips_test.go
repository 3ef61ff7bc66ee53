package lock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// words returns, of each line of MONITOR, the command in lower case, with a dot
// before those that scripts call.
func words(lines []string) (all []string) {
	for _, line := range lines {
		_, rest, _ := strings.Cut(line, `"`)
		name, _, _ := strings.Cut(rest, `"`)
		name = strings.ToLower(name)
		if redistest.FromScript(line) {
			name = "." + name
		}
		all = append(all, name)
	}
	return all
}

// TestRoundTrips counts what a lock costs that nobody else wants: as reads of the
// server's sockets, and as the commands the server saw, those inside scripts
// included.
func TestRoundTrips(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	// A subscription's heartbeat would be counted too.
	l := open(t, client, &lock.Options{DisablePubSub: true})
	cycle := func(opts *lock.AcquireOptions, each ...func(*lock.Lease)) func() {
		return func() {
			h := get(t, l, "a", opts)
			for _, do := range each {
				do(h)
			}
			release(t, h)
		}
	}
	fence := func(h *lock.Lease) {
		if _, err := h.Fence(t.Context()); err != nil {
			t.Error(err)
		}
	}
	run := func(want error, opts lock.RunOptions) func() {
		return func() {
			err := l.Run(t.Context(), "job", func(context.Context) error { return nil }, &opts)
			if !errors.Is(err, want) || (want == nil) != (err == nil) {
				t.Errorf("Run: %v, want %v", err, want)
			}
		}
	}
	released := []string{"evalsha", ".get", ".zpopmin", ".del"}
	tests := []struct {
		name     string
		do       func()
		reads    int64
		commands []string
	}{
		{"plain", cycle(nil), 2, append([]string{"set"}, released...)},
		{"fenced", cycle(&lock.AcquireOptions{Fenced: true}, fence), 2, append([]string{
			"evalsha", ".time", ".get", ".zrem", ".set", ".time", ".get", ".set",
		}, released...)},
		{"fenced late", cycle(nil, fence, fence), 3, append([]string{
			"set", "evalsha", ".get", ".time", ".get", ".set",
		}, released...)},
		{"semaphore", cycle(&lock.AcquireOptions{Holders: 3}), 2, []string{
			"evalsha", ".time", ".zremrangebyscore", ".zrem", ".zcard", ".zrem", ".time", ".zadd", ".pttl", ".pexpire",
			"evalsha", ".zscore", ".time", ".zpopmin", ".zrem",
		}},
		{"run", run(nil, lock.RunOptions{}), 2, append([]string{"set"}, released...)},
		{"run in a slot", run(nil, lock.RunOptions{Slot: "s"}), 2, append(append([]string{
			"evalsha", ".exists", ".time", ".get", ".zrem", ".set",
		}, released...), ".set")},
		{"ran in that slot", run(lock.ErrAlreadyRan, lock.RunOptions{Slot: "s"}), 1, []string{"evalsha", ".exists"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			again := func() { client.Del(t.Context(), "lock:{job}:s:s") }
			if tt.name == "ran in that slot" {
				again = func() {}
				client.Set(t.Context(), "lock:{job}:s:s", "1", bound)
			}
			tt.do() // connects, and makes the scripts known
			again()
			if got := redistest.SocketReads(t, client, tt.do); got != tt.reads {
				t.Errorf("%d round trips, want %d", got, tt.reads)
			}
			again()
			if got := words(redistest.Monitor(t, server.Addr(), tt.do)); !slices.Equal(got, tt.commands) {
				t.Errorf("the server saw\n%q, want\n%q", got, tt.commands)
			}
		})
	}
}

// TestAllocations counts those of a lock that nobody else wants.
func TestAllocations(t *testing.T) {
	const most = 25
	server := redistest.Start(t)
	l := open(t, server.Client(t), nil)
	ctx := context.Background()
	allocs := testing.AllocsPerRun(300, func() {
		h, err := l.Acquire(ctx, "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Release(ctx); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("%v allocations", allocs)
	if allocs > most && !racing {
		t.Errorf("%v allocations for a lock and its release, want at most %d", allocs, most)
	}
}

// TestTurnsAreTwoRoundTrips has the callers of two processes take turns on a lock.
// Who is next waits to be told rather than to ask in vain.
func TestTurnsAreTwoRoundTrips(t *testing.T) {
	const callers, turns = 16, 10
	server := redistest.Start(t)
	lockers := []*lock.Locker{open(t, server.Client(t), nil), open(t, server.Client(t), nil)}
	lines := redistest.Monitor(t, server.Addr(), func() {
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for range turns {
					h, err := lockers[i%2].Acquire(t.Context(), "a", nil)
					if err != nil {
						t.Errorf("Acquire: %v", err)
						return
					}
					<-time.After(time.Millisecond)
					release(t, h)
				}
			})
		}
		wg.Wait()
	})
	n := 0
	for _, word := range words(lines) {
		if word == "evalsha" || word == "set" {
			n++
		}
	}
	const all = callers * turns
	t.Logf("%.2f round trips a turn", float64(n)/all)
	if n < 2*all || n > 2*all+all/4 {
		t.Errorf("%d round trips for %d turns, want two each and few more", n, all)
	}
}
