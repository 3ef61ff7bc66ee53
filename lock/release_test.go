package lock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/command"
	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// TestReleaseAfterCancel releases with a context that has ended, as a deferred
// release in a handler does whose client left.
func TestReleaseAfterCancel(t *testing.T) {
	server := redistest.Start(t)
	l, direct := open(t, server.Client(t), &lock.Options{TTL: time.Hour}), server.Client(t)
	for name, opts := range kindsOfLock {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			h, err := l.Acquire(ctx, "a", &opts)
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			if got := h.Release(ctx); got != nil {
				t.Errorf("Release: %v", got)
			}
			gone(t, direct, "a", 50*time.Millisecond+slack)
		})
	}
}

// TestRunLetsGo has tasks end in all the ways there are. The lock is free at once.
func TestRunLetsGo(t *testing.T) {
	boom := errors.New("boom")
	server := redistest.Start(t)
	l, direct := open(t, server.Client(t), &lock.Options{TTL: time.Hour}), server.Client(t)
	opts := &lock.RunOptions{MinHold: time.Hour, Slot: "s"}
	for name, task := range map[string]func(context.Context) error{
		"fails":       func(context.Context) error { return boom },
		"panics":      func(context.Context) error { panic(boom) },
		"is nil":      nil,
		"ends itself": func(context.Context) error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan any)
			go func() {
				defer close(ended)
				defer func() {
					if p := recover(); p != nil {
						ended <- p
					}
				}()
				ended <- l.Run(t.Context(), "a", task, opts)
			}()
			if err, _ := (<-ended).(error); (name == "fails" || name == "panics") && !errors.Is(err, boom) {
				t.Errorf("Run ended with %v, want %v", err, boom)
			}
			gone(t, direct, "a", 50*time.Millisecond+slack)
			if direct.Exists(t.Context(), "lock:{a}:s:s").Val() != 0 {
				t.Error("a task that did not succeed has its slot marked")
			}
		})
	}
}

// TestSharedOptions has many goroutines use the same options.
func TestSharedOptions(t *testing.T) {
	server := redistest.Start(t)
	l := open(t, server.Client(t), nil)
	acquire, run := &lock.AcquireOptions{Wait: bound}, &lock.RunOptions{Wait: -1}
	var runs atomic.Int64
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			name := fmt.Sprint(i % 20)
			h, err := l.Acquire(t.Context(), name, acquire)
			if err != nil {
				t.Errorf("Acquire: %v", err)
				return
			}
			release(t, h)
			err = l.Run(t.Context(), name, func(context.Context) error { runs.Add(1); return nil }, run)
			wantErr(t, "Run", err, nil)
		})
	}
	wg.Wait()
	if runs.Load() != 100 {
		t.Errorf("%d runs, want 100", runs.Load())
	}
}

// TestAnothersBudget uses locks within a loader of the cache, whose context has the
// budget of the call that loads. It is not the lock's: neither is a lock refused
// when it is spent, nor is it spent by locks.
func TestAnothersBudget(t *testing.T) {
	l := open(t, redistest.Start(t).Client(t), nil)
	for name, opts := range kindsOfLock {
		ctx := command.WithBudget(t.Context(), -1)
		h, err := l.Acquire(ctx, name, &opts)
		if err != nil {
			t.Errorf("%s: Acquire: %v", name, err)
			continue
		}
		if _, err := h.Fence(ctx); err != nil {
			t.Errorf("%s: Fence: %v", name, err)
		}
		wantErr(t, "Release", h.Release(ctx), nil)
	}
}
