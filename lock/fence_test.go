package lock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/rpc"
	"testing"
	"time"

	"github.com/getorprime/getorprime/lock"
)

// Increments says how a worker adds to the resource's record.
type Increments struct {
	Resource string // its address
	Lock     string
	Until    time.Time
	Work     time.Duration // between reading and writing, at most
}

// Increment adds to the record again and again, under a lock. It is a careless
// holder: it never looks whether it still has the lock.
func (w *worker) Increment(o Increments, tried *int) error {
	record, err := rpc.Dial("tcp", o.Resource)
	if err != nil {
		return err
	}
	defer record.Close()
	for time.Now().Before(o.Until) {
		ctx, cancel := context.WithDeadline(context.Background(), o.Until)
		err := w.increment(ctx, record, &o)
		cancel()
		if ignoring(err, lock.ErrNotAcquired, lock.ErrUnavailable, lock.ErrLost) != nil {
			return err
		}
		*tried++
	}
	return nil
}

func (w *worker) increment(ctx context.Context, record *rpc.Client, o *Increments) error {
	h, err := w.locker.Acquire(ctx, o.Lock, &lock.AcquireOptions{Fenced: true})
	if err != nil {
		return err
	}
	fence, err := h.Fence(ctx)
	if err != nil {
		return err
	}
	access, got := Access{Process: w.id, Fence: fence}, Answer{}
	if err := record.Call("Resource.Read", access, &got); err != nil || got.Refused {
		return errors.Join(err, h.Release(ctx))
	}
	<-time.After(rand.N(o.Work))
	access.Value = got.Value + 1
	return errors.Join(record.Call("Resource.Write", access, &got), h.Release(ctx))
}

// fencing has the workers of a fleet add to a record while the test stops now this
// process, now that one, for longer than the TTL: mostly the one that has just
// read.
func fencing(t *testing.T, r *resource, processes int, lasts time.Duration) verdict {
	t.Helper()
	const ttl = 100 * time.Millisecond
	f := newFleet(t, processes, ttl)
	until := time.Now().Add(lasts)
	tried := make([]int, processes)
	calls := f.all("Increment", Increments{Resource: r.serve(t), Lock: "record", Until: until, Work: 20 * time.Millisecond}, func(i int) any { return &tried[i] })
	for time.Now().Before(until) {
		victim := r.lastReader()
		if rand.IntN(3) == 0 {
			victim = rand.IntN(processes)
		}
		f.workers[victim].Pause()
		<-time.After(rand.N(2 * ttl))
		f.workers[victim].Resume()
		<-time.After(rand.N(ttl / 2))
	}
	for i, call := range calls {
		f.workers[i].Await(call)
	}
	v := r.check()
	t.Logf("%d writes by %d processes: %+v", v.writes, processes, v)
	return v
}

// TestG10Fence has several processes add to a record, and stops them for longer
// than the TTL, so that there are often two who think they hold the lock. Fences
// that were accepted never fall, and no write is lost. With PROOF=full there are
// twenty processes.
func TestG10Fence(t *testing.T) {
	t.Parallel()
	processes, lasts := 4, 3*time.Second
	if full() {
		processes, lasts = 20, 10*time.Second
	}
	v := fencing(t, &resource{}, processes, lasts)
	if v.lost != 0 || v.falls != 0 {
		t.Errorf("%d writes lost, %d fences fell, want none", v.lost, v.falls)
	}
	if v.writes < 20 || v.refused == 0 {
		t.Errorf("%d writes, %d refused, which prove too little", v.writes, v.refused)
	}
}

// TestG10WithoutFence is the mutant: the resource looks at no fence. The same
// checker has to find lost writes.
func TestG10WithoutFence(t *testing.T) {
	t.Parallel()
	v := fencing(t, &resource{lax: true}, 4, 2500*time.Millisecond)
	if v.lost == 0 || v.falls == 0 {
		t.Errorf("%d writes lost, %d fences fell: the checker finds nothing", v.lost, v.falls)
	}
}
