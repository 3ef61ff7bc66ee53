package lock_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/proxy"
	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// asks reports whether a command asks for a lock: SET NX, or a script with the
// arguments of acquire.lua.
func asks(cmd [][]byte) bool {
	switch strings.ToLower(string(cmd[0])) {
	case "set":
		return true
	case "evalsha", "eval":
		return len(cmd) > 3 && string(cmd[2]) >= "3" && strings.HasSuffix(string(cmd[5]), ":f")
	}
	return false
}

// theFirst is a hook that has the first command that asks for a lock meet a fault.
func theFirst(f proxy.Fault) func([][]byte) proxy.Fault {
	var met atomic.Bool
	return func(cmd [][]byte) proxy.Fault {
		if !asks(cmd) || !met.CompareAndSwap(false, true) {
			return proxy.Pass()
		}
		return f
	}
}

// kindsOfLock are those that are asked for in different ways.
var kindsOfLock = map[string]lock.AcquireOptions{
	"plain":     {},
	"fenced":    {Fenced: true},
	"semaphore": {Holders: 2},
}

// eachKind runs a test for each of them, on a server behind a proxy and a locker on
// that proxy whose connection is made.
func eachKind(t *testing.T, opts lock.Options, test func(t *testing.T, w *wire, opts lock.AcquireOptions)) {
	for name, o := range kindsOfLock {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &wire{Server: redistest.Start(t)}
			w.direct = open(t, w.Client(t), nil)
			p, client := newProxy(t, w.Addr())
			w.Proxy = p
			w.behind = open(t, client, &opts)
			for _, l := range []*lock.Locker{w.direct, w.behind} { // the scripts are known
				release(t, get(t, l, "first", &o))
			}
			test(t, w, o)
		})
	}
}

// wire is a server, and lockers before and behind a proxy to it.
type wire struct {
	*redistest.Server
	Proxy          *proxy.Proxy
	direct, behind *lock.Locker
}

// TestReplyLost loses the reply to a request that was granted. The next request
// finds that the lock is the caller's own.
func TestReplyLost(t *testing.T) {
	eachKind(t, lock.Options{TTL: time.Minute}, func(t *testing.T, w *wire, o lock.AcquireOptions) {
		w.Proxy.OnCommand(theFirst(proxy.DropReply()))
		h := get(t, w.behind, "a", &o)
		status, err := w.direct.Status(t.Context(), "a")
		if err != nil || len(status.Holders) != 1 {
			t.Errorf("%+v, %v; want one holder", status, err)
		}
		release(t, h)
		gone(t, w.Client(t), "a", time.Second)
	})
}

// TestReplyTooLate answers after the caller's deadline, the Redis budget, or the
// TTL. The lock is not acquired, and what was granted unheard is given back.
func TestReplyTooLate(t *testing.T) {
	tests := []struct {
		name   string
		opts   lock.Options
		within time.Duration
		want   []error
	}{
		{"than the caller's deadline", lock.Options{TTL: time.Minute}, 100 * time.Millisecond, []error{lock.ErrNotAcquired, context.DeadlineExceeded}},
		{"than the budget", lock.Options{TTL: time.Minute, RedisBudget: 100 * time.Millisecond}, bound, []error{lock.ErrUnavailable}},
		{"than the TTL", lock.Options{TTL: 100 * time.Millisecond}, bound, []error{lock.ErrUnavailable}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			eachKind(t, tt.opts, func(t *testing.T, w *wire, o lock.AcquireOptions) {
				w.Proxy.SetDelay(0, 150*time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), tt.within)
				defer cancel()
				began := time.Now()
				h, err := w.behind.Acquire(ctx, "a", &o)
				for _, want := range tt.want {
					wantErr(t, "Acquire", err, want)
				}
				if h != nil {
					t.Error("a lease beside an error")
				}
				if took := time.Since(began); tt.within < bound && took > tt.within+100*time.Millisecond+slack {
					t.Errorf("the caller was let go after %v, want at its deadline of %v", took, tt.within)
				}
				w.Proxy.SetDelay(0, 0)
				gone(t, w.Client(t), "a", time.Second+slack)
			})
		})
	}
}

// TestRequestTooLate delivers all requests when their sender has given up. What was
// granted then is given back, and not left to its TTL.
func TestRequestTooLate(t *testing.T) {
	const late = 100 * time.Millisecond
	eachKind(t, lock.Options{TTL: time.Minute}, func(t *testing.T, w *wire, o lock.AcquireOptions) {
		var asked atomic.Int64
		w.Proxy.OnCommand(func(cmd [][]byte) proxy.Fault {
			if !asks(cmd) {
				return proxy.Pass()
			}
			asked.Add(1)
			return proxy.Late(late)
		})
		_, err := w.behind.Acquire(t.Context(), "a", &o)
		wantErr(t, "Acquire", err, lock.ErrUnavailable)
		n := asked.Load()
		redistest.Eventually(t, bound, func() bool { return w.Proxy.Delivered() >= n }, "all are delivered")
		gone(t, w.Client(t), "a", 4*late+slack)
	})
}

// copied has the first request for a lock meet a fault, and hands out a copy of it.
func (w *wire) copied(f proxy.Fault) <-chan []any {
	first, hook := make(chan []any, 1), theFirst(f)
	w.Proxy.OnCommand(func(cmd [][]byte) proxy.Fault {
		got := hook(cmd)
		if asks(cmd) && len(first) == 0 {
			var args []any
			for _, arg := range cmd {
				args = append(args, string(arg))
			}
			first <- args
		}
		return got
	})
	return first
}

// deliver is the network, which delivers a request again.
func (w *wire) deliver(t *testing.T, request []any) {
	t.Helper()
	if err := w.Client(t).Do(t.Context(), request...).Err(); err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
}

// TestRequestDeliveredAgain has the network deliver the request for a lock a second
// time, or late, when its client had sent another and was granted the lock by that.
// It takes the lock from nobody. If the lock is free, it is nobody's then until a
// TTL has passed.
func TestRequestDeliveredAgain(t *testing.T) {
	const ttl = 400 * time.Millisecond
	for name, f := range map[string]proxy.Fault{"twice": proxy.Pass(), "late": proxy.Late(time.Hour)} {
		t.Run(name, func(t *testing.T) {
			eachKind(t, lock.Options{TTL: ttl}, func(t *testing.T, w *wire, o lock.AcquireOptions) {
				request := w.copied(f)
				h := get(t, w.behind, "a", &o)
				again := <-request
				w.deliver(t, again)
				wantHolds(t, w.Client(t), h)
				release(t, h)

				h = get(t, w.direct, "a", &lock.AcquireOptions{TTL: ttl, Holders: o.Holders, Fenced: true})
				w.deliver(t, again)
				wantHolds(t, w.Client(t), h)
				release(t, h)

				gone(t, w.Client(t), "a", ttl+slack)
				w.deliver(t, again)
				began := time.Now()
				for range max(1, o.Holders) {
					release(t, get(t, w.direct, "a", &lock.AcquireOptions{TTL: ttl, Holders: o.Holders}))
				}
				if took := time.Since(began); took > ttl+poll+slack {
					t.Errorf("the lock was nobody's for %v, want at most the TTL and a poll", took)
				}
			})
		})
	}
}
