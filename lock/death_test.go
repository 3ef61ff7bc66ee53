package lock_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/getorprime/getorprime/lock"
)

// reservation is how long a lock stays reserved for who was named as the next.
const reservation = 100 * time.Millisecond

// poll is the longest time between two questions of a process that waits and
// hears messages.
const poll = 320 * time.Millisecond

// TestHolderKilled kills the process that holds a lock. Who waits has it when the
// TTL is over, and no later than a message from Redis takes.
func TestHolderKilled(t *testing.T) {
	const ttl = 700 * time.Millisecond
	f := newFleet(t, 2, ttl)
	holder, waiter := f.workers[0], f.workers[1]
	holder.acquire(f, "a", lock.AcquireOptions{})
	a := waiter.ask(f, "a", lock.AcquireOptions{})
	before := f.client.PTTL(t.Context(), "lock:{a}").Val()
	holder.Kill()
	killed := time.Now()
	left := f.client.PTTL(t.Context(), "lock:{a}").Val()
	got := a.await()
	f.wantKind("the next holder", got, "")
	switch took := got.At.Sub(killed); {
	case took > ttl+slack:
		t.Errorf("the lock was had %v after its holder was killed, want within the TTL of %v", took, ttl)
	case took < left-50*time.Millisecond:
		t.Errorf("the lock was had after %v, though it had %v left", took, left)
	}
	if before <= 0 || before > ttl {
		t.Errorf("the lock had %v left while it was held, want at most the TTL", before)
	}
}

// TestHolderStopped stops the process that holds a lock for longer than the TTL,
// while another one acquires it.
func TestHolderStopped(t *testing.T) {
	const ttl = 400 * time.Millisecond
	for _, holders := range []int{1, 2} {
		t.Run(places(holders), func(t *testing.T) {
			f := newFleet(t, 1, ttl)
			stopped, opts := f.workers[0], lock.AcquireOptions{Fenced: true, Holders: holders}
			old := stopped.acquire(f, "a", opts)
			lost := stopped.begin(f, "Lost", "a")
			stopped.Pause()
			var next []*lock.Lease
			for range holders {
				next = append(next, get(t, f.here(ttl), "a", &opts))
			}
			stopped.Resume()
			resumed := time.Now()

			f.wantKind("the lease that was stopped", stopped.tell("Err", "a"), "lost")
			got := lost.await()
			f.wantKind("its context", got, "lost")
			if late := got.At.Sub(resumed); late > 200*time.Millisecond+slack {
				t.Errorf("its context ended %v after it went on", late)
			}
			f.wantKind("its release", stopped.tell("Release", "a"), "lost")
			for _, h := range next {
				wantHolds(t, f.client, h)
				if fence, err := h.Fence(t.Context()); err != nil || fence <= old.Fence {
					t.Errorf("a later holder has fence %d, %v; want more than %d", fence, err, old.Fence)
				}
				release(t, h)
			}
		})
	}
}

// handOver releases a lock and returns how long it took the next one to have it.
func (f *fleet) handOver(h *lock.Lease, next *asked) time.Duration {
	f.Helper()
	began := time.Now()
	release(f, h)
	got := next.await()
	f.wantKind("the next holder", got, "")
	return got.At.Sub(began)
}

// handOvers hands over n locks for which the last of the workers waits, and the
// others have waited longer. Between the waiting and the handing over it calls f.
// It returns how long each took, sorted.
func (f *fleet) handOvers(n int, then func(), workers ...*member) (took []time.Duration) {
	f.Helper()
	here, last := f.here(time.Minute), make([]*asked, n)
	held := make([]*lock.Lease, n)
	for i := range n {
		name := fmt.Sprint(f.Name(), len(workers), " ", i)
		held[i] = get(f, here, name, nil)
		for _, w := range workers {
			last[i] = w.ask(f, name, lock.AcquireOptions{})
		}
	}
	then()
	for i, h := range held {
		took = append(took, f.handOver(h, last[i]))
	}
	slices.Sort(took)
	return took
}

// TestWaiterKilled kills a process that had waited longest for many locks. Redis
// knows of its end, and passes the locks on to the next: that takes no longer
// than if the dead one had never been.
func TestWaiterKilled(t *testing.T) {
	const n = 15
	f := newFleet(t, 2, 0)
	dead, waiter := f.workers[0], f.workers[1]
	without := f.handOvers(n, func() {}, waiter)
	with := f.handOvers(n, dead.Kill, dead, waiter)
	t.Logf("handed over in %v (median) without and in %v with a dead process in line", without[n/2], with[n/2])
	if with[n/2] > 2*without[n/2]+5*time.Millisecond {
		t.Errorf("with a dead process in line: %v\nwithout: %v", with, without)
	}
}

// TestWaiterStopped stops a process that had waited longest. Redis cannot know of
// that: the lock is reserved for it in vain, which costs the next one a poll; but
// once, and the hand-over after that is as quick as any.
func TestWaiterStopped(t *testing.T) {
	const n = 5
	f := newFleet(t, 2, 0)
	stopped, waiter := f.workers[0], f.workers[1]
	first := f.handOvers(n, stopped.Pause, stopped, waiter)
	t.Logf("handed over in %v with a stopped process in line", first)
	if worst := first[n-1]; worst > poll+slack {
		t.Errorf("the lock was had %v after its release, want within a poll of %v", worst, poll)
	}

	var second []time.Duration
	here := f.here(0)
	for i := range n {
		name := fmt.Sprint(f.Name(), 2, " ", i)
		got := make(chan time.Time)
		go func() {
			h := get(t, here, name, nil)
			got <- time.Now()
			release(t, h)
		}()
		f.noted(name)
		began := time.Now()
		f.wantKind("release", waiter.tell("Release", name), "")
		second = append(second, (<-got).Sub(began))
	}
	slices.Sort(second)
	t.Logf("and then in %v", second)
	if median := second[n/2]; median > reservation*9/10 {
		t.Errorf("handed over in %v when the stopped process was no longer in line, want no reservation waited for", second)
	}
}
