package lease_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/getorprime/getorprime/internal/lease"
)

// asleep returns an instant as it looks when the machine has slept for d since: the
// wall clock went on, the monotonic one did not.
func asleep(t *testing.T, at time.Time, d time.Duration) time.Time {
	t.Helper()
	// As package time has it: with a monotonic reading, the seconds of the wall clock
	// are above 30 bits of nanoseconds.
	inside := (*struct {
		wall uint64
		mono int64
		loc  *time.Location
	})(unsafe.Pointer(&at))
	inside.wall -= uint64(d/time.Second) << 30
	if now := time.Now(); now.Sub(at) > time.Second || now.Round(0).Sub(at.Round(0)) < d {
		t.Fatal("instants are made in another way now")
	}
	return at
}

// TestTheMachineSlept has the wall clock go on while the monotonic one stood still.
// The lease has ended from the first moment on, and the holder is told when the
// keeper looks at it next, before anything is renewed. A backend that refuses a late
// holder by itself is asked: time alone loses nothing there.
func TestTheMachineSlept(t *testing.T) {
	for _, validity := range []time.Duration{250 * time.Millisecond, 0} {
		t.Run(validity.String(), func(t *testing.T) {
			var k lease.Keeper // outside of a bubble: there is but one clock in there
			defer k.Close()
			lost, renewed := make(chan error, 1), make(chan bool, 100)
			extend := func(context.Context) (bool, error) { renewed <- true; return true, nil }
			held := k.Keep(lease.Grant{
				Holder: &holder{extend, func(cause error) { lost <- cause }, func() {}},
				TTL:    300 * time.Millisecond, Since: asleep(t, time.Now(), time.Minute), Validity: validity,
			})
			if held.Ended() != (validity > 0) {
				t.Errorf("ended %v, want %v", held.Ended(), validity > 0)
			}
			if left := held.Left(); left > -50*time.Second {
				t.Errorf("%v left, want none by the wall clock", left)
			}
			select {
			case cause := <-lost:
				if validity == 0 || !errors.Is(cause, lease.ErrLost) {
					t.Errorf("lost: %v", cause)
				}
			case <-renewed:
				if validity > 0 {
					t.Error("renewed though it was slept through")
				}
			case <-time.After(10 * time.Second):
				t.Error("nothing came of it")
			}
			if held.Stop() != (validity > 0) {
				t.Error("Stop does not know what became of it")
			}
		})
	}
}

// TestEnded asks by the clock of the moment, in each of the ways a lease can end.
func TestEnded(t *testing.T) {
	fails := func(int) (bool, error) { return false, errRedis }
	tests := []struct {
		name     string
		validity time.Duration
		maxHold  time.Duration
		reply    func(int) (bool, error)
		at       time.Duration // when it ends; 0: never
	}{
		{"renewed", 2 * time.Second, 0, nil, 0},
		{"validity passes", 2500 * time.Millisecond, 0, fails, 2500 * time.Millisecond},
		{"before it is looked after", 500 * time.Millisecond, 0, fails, 500 * time.Millisecond},
		{"not held", 2 * time.Second, 0, func(int) (bool, error) { return false, nil }, time.Second},
		{"MaxHold passes", 2 * time.Second, 1500 * time.Millisecond, nil, 1500 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, k *lease.Keeper, b *backend) {
				b.reply = tt.reply
				g := b.grant(ttl)
				g.Validity, g.MaxHold = tt.validity, tt.maxHold
				held := k.Keep(g)
				for range 100 {
					synctest.Wait()
					passed := time.Since(b.start)
					if got, want := held.Ended(), tt.at > 0 && passed >= tt.at; got != want {
						t.Errorf("after %v: ended %v, want %v", passed, got, want)
					}
					time.Sleep(50 * time.Millisecond)
				}
				if got := held.Stop(); got != (tt.at > 0) {
					t.Errorf("Stop says that it had ended: %v, want %v", got, tt.at > 0)
				}
			})
		})
	}
}

// TestEndedBeforeAnybodyIsTold has the keeper's goroutine not run: a holder that
// asks is told the truth all the same.
func TestEndedBeforeAnybodyIsTold(t *testing.T) {
	var k lease.Keeper
	defer k.Close()
	long := time.Now().Add(-time.Hour)
	held := k.Keep(lease.Grant{Holder: &holder{nil, func(error) {}, func() {}}, TTL: time.Minute, Since: long, Validity: time.Minute})
	if !held.Ended() {
		t.Error("a lease of an hour ago has not ended")
	}
	held.Stop()
}

// TestLeft follows what is left of a lease's validity.
func TestLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, k *lease.Keeper, b *backend) {
		b.reply = func(n int) (bool, error) {
			if n == 2 {
				return false, errRedis
			}
			return true, nil
		}
		g := b.grant(ttl)
		g.Validity = 2900 * time.Millisecond
		held := k.Keep(g)
		for _, want := range []time.Duration{2900, 2400, 2900, 2400, 1900, 2550, 2050} {
			synctest.Wait()
			if got := held.Left(); got != want*time.Millisecond {
				t.Errorf("after %v: %v left, want %v", time.Since(b.start), got, want*time.Millisecond)
			}
			time.Sleep(500 * time.Millisecond)
		}
		held.Stop()
	})
}

// TestLose has the holder find out by itself.
func TestLose(t *testing.T) {
	inBubble(t, func(t *testing.T, k *lease.Keeper, b *backend) {
		held := k.Keep(b.grant(ttl))
		time.Sleep(100 * time.Millisecond)
		held.Lose()
		held.Lose()
		if !held.Ended() || k.Len() != 0 {
			t.Errorf("ended %v, %d kept; want it ended", held.Ended(), k.Len())
		}
		time.Sleep(time.Minute)
		if got := b.losses(); !slices.Equal(got, []time.Duration{100 * time.Millisecond}) || len(b.renewals()) > 0 {
			t.Errorf("lost at %v, renewed at %v; want one loss and no renewal", got, b.renewals())
		}
		if !held.Stop() {
			t.Error("Stop does not know of the loss")
		}
		held.Lose() // nobody is told: the holder has let go
		if got := b.losses(); len(got) != 1 {
			t.Errorf("lost at %v, want once", got)
		}
	})
}

// TestLoseWhileRenewing has the renewal under way come back with good news.
func TestLoseWhileRenewing(t *testing.T) {
	inBubble(t, func(t *testing.T, k *lease.Keeper, b *backend) {
		b.takes = 500 * time.Millisecond
		held := k.Keep(b.grant(ttl))
		time.Sleep(1200 * time.Millisecond)
		held.Lose()
		time.Sleep(time.Minute)
		if !held.Ended() || len(b.losses()) != 1 || len(b.renewals()) != 1 {
			t.Errorf("ended %v, lost at %v, renewed at %v; want it lost for good", held.Ended(), b.losses(), b.renewals())
		}
	})
}

// TestKeepIn keeps a lease in the caller's memory, and another one there when the
// first has ended.
func TestKeepIn(t *testing.T) {
	inBubble(t, func(t *testing.T, k *lease.Keeper, b *backend) {
		var held lease.Held
		for range 2 {
			k.KeepIn(&held, b.grant(ttl))
			time.Sleep(1500 * time.Millisecond)
			if k.Len() != 1 || held.Ended() {
				t.Errorf("%d kept, ended %v; want one kept", k.Len(), held.Ended())
			}
			held.Stop()
		}
		if got, want := b.renewals(), []time.Duration{time.Second, 2500 * time.Millisecond}; !slices.Equal(got, want) {
			t.Errorf("renewed at %v, want %v", got, want)
		}
	})
}

// TestKeepInAllocatesNothing is why KeepIn is there.
func TestKeepInAllocatesNothing(t *testing.T) {
	var k lease.Keeper
	defer k.Close()
	var calls atomic.Int64
	count := func(context.Context) (bool, error) { calls.Add(1); return true, nil }
	g := lease.Grant{Holder: &holder{count, func(error) {}, func() {}}, TTL: time.Hour, Since: time.Now(), Validity: time.Hour}
	keep := k.Keep(g) // the keeper's goroutine runs
	defer keep.Stop()
	var held lease.Held
	if n := testing.AllocsPerRun(100, func() { k.KeepIn(&held, g); held.Stop() }); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
