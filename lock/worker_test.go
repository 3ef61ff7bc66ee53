package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/lock"
)

// worker is one process of a test, seen from inside. Its exported methods are
// called by the test, many at once.
type worker struct {
	id     int
	locker *lock.Locker

	mu   sync.Mutex // guards held
	held map[string]*lock.Lease
}

// Setup is what a worker is to be.
type Setup struct {
	ID     int
	Addr   string
	TTL    time.Duration
	Budget time.Duration // 0: one that a busy machine does not exhaust
}

// Want says which lock a worker is to acquire, and under which name it keeps the
// lease.
type Want struct {
	ID, Lock string
	Opts     lock.AcquireOptions
}

// Got is what came of it.
type Got struct {
	Kind, Error string    // of the error: see kind
	At          time.Time // when it was so
	Fence       int64
}

// Open makes the worker's locker and its first connection.
func (w *worker) Open(s Setup, _ *bool) (err error) {
	if s.Budget == 0 {
		s.Budget = bound
	}
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	if err := client.Ping(context.Background()).Err(); err != nil {
		return err
	}
	w.id, w.held = s.ID, map[string]*lock.Lease{}
	w.locker, err = lock.New(client, &lock.Options{TTL: s.TTL, RedisBudget: s.Budget, Info: "worker"})
	return err
}

// Acquire acquires a lock and keeps the lease.
func (w *worker) Acquire(want Want, got *Got) error {
	h, err := w.locker.Acquire(context.Background(), want.Lock, &want.Opts)
	*got = gotten(err)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.held[want.ID] = h
		if want.Opts.Fenced {
			got.Fence, err = h.Fence(context.Background())
		}
	}
	return ignoring(err, lock.ErrNotAcquired, lock.ErrUnavailable)
}

func (w *worker) lease(id string) (*lock.Lease, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.held[id]
	if h == nil {
		return nil, fmt.Errorf("no lease %q", id)
	}
	return h, nil
}

// Lost waits until a lease's context ends, and returns the cause.
func (w *worker) Lost(id string, got *Got) error {
	h, err := w.lease(id)
	if err != nil {
		return err
	}
	<-h.Context().Done()
	*got = gotten(context.Cause(h.Context()))
	return nil
}

// Err returns what a lease says of itself.
func (w *worker) Err(id string, got *Got) error {
	h, err := w.lease(id)
	if err == nil {
		*got = gotten(h.Err())
	}
	return err
}

// Fence asks for a lease's fence.
func (w *worker) Fence(id string, got *Got) error {
	h, err := w.lease(id)
	if err != nil {
		return err
	}
	fence, err := h.Fence(context.Background())
	*got = gotten(err)
	got.Fence = fence
	return nil
}

// Release releases a lease.
func (w *worker) Release(id string, got *Got) error {
	h, err := w.lease(id)
	if err == nil {
		*got = gotten(h.Release(context.Background()))
	}
	return err
}

// kinds are the errors that a test tells apart, by their names.
var kinds = []struct {
	name string
	err  error
}{
	{"not acquired", lock.ErrNotAcquired},
	{"lost", lock.ErrLost},
	{"released", lock.ErrReleased},
	{"unavailable", lock.ErrUnavailable},
	{"already ran", lock.ErrAlreadyRan},
	{"closed", lock.ErrClosed},
}

// gotten describes an error, or the lack of one, that came up just now.
func gotten(err error) Got {
	got := Got{At: time.Now()}
	if err == nil {
		return got
	}
	got.Kind, got.Error = "other", err.Error()
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			got.Kind = k.name
		}
	}
	return got
}

// ignoring returns err unless it is one of those expected.
func ignoring(err error, expected ...error) error {
	for _, e := range expected {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}
