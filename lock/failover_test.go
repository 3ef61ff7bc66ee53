package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// TestFailover kills a primary that has just given a lock away, before its replica
// heard of that. The replica, promoted, gives the lock away a second time: for a
// while there are two holders. The first learns that it has lost the lock, and at
// the resource fences tell the two apart, though the counter is lost as well.
func TestFailover(t *testing.T) {
	t.Parallel()
	const ttl = 12 * time.Second // a third of it is longer than a failover takes
	s := redistest.StartSentinel(t)
	here, there := open(t, s.Client(t), &lock.Options{TTL: ttl}), open(t, s.Client(t), &lock.Options{TTL: ttl})
	opts := &lock.AcquireOptions{Fenced: true}
	release(t, get(t, there, "a", opts)) // there is a counter, and all are connected
	s.Sever()
	first := get(t, here, "a", opts)
	s.Primary.Kill()
	s.Replica.Resume()

	second := again(t, there, "a", opts)
	two := first.Err() == nil
	t.Logf("two holders: %v, the first has %v left", two, first.Left())
	if !two {
		t.Error("the first holder had lost the lock before: the failover took too long to prove anything")
	}
	record := &resource{}
	for _, h := range []*lock.Lease{first, second, first, second} {
		fence, err := h.Fence(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got Answer
		if err := record.Write(Access{Fence: fence}, &got); err != nil || got.Refused != (h == first && record.seen > fence) {
			t.Errorf("fence %d: %+v, %v", fence, got, err)
		}
	}
	if v := record.check(); v.falls != 0 || v.refused != 1 || v.writes != 3 {
		t.Errorf("%+v, want the first holder's second write refused and nothing else", v)
	}
	select {
	case <-first.Context().Done():
		wantErr(t, "the first holder", context.Cause(first.Context()), lock.ErrLost)
	case <-time.After(ttl):
		t.Error("the first holder did not learn that it has lost the lock")
	}
	wantErr(t, "its release", first.Release(t.Context()), lock.ErrLost)
	wantErr(t, "the second holder", second.Err(), nil)
	release(t, second)
}

// again acquires a lock as soon as Redis can be reached again.
func again(t *testing.T, l *lock.Locker, name string, opts *lock.AcquireOptions) (h *lock.Lease) {
	t.Helper()
	redistest.Eventually(t, bound, func() bool {
		var err error
		h, err = l.TryAcquire(t.Context(), name, opts)
		return err == nil
	}, "the lock is had")
	return h
}
