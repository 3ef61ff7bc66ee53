package lock_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/lock"
)

// bubble is a synctest bubble with an embedded Redis in it, which lives by the
// bubble's clock.
type bubble struct {
	*testing.T
	redis *miniredis.Miniredis
}

// inBubble runs f in a bubble, with a locker.
func inBubble(t *testing.T, opts *lock.Options, f func(b *bubble, l *lock.Locker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{T: t, redis: miniredis.NewMiniRedis()}
		b.redis.ClockTTL(true)
		t.Cleanup(b.redis.Close)
		f(b, b.locker(opts))
	})
}

// locker returns another process's locker.
func (b *bubble) locker(opts *lock.Options) *lock.Locker {
	b.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:0", PoolSize: 200,
		Dialer: func(context.Context, string, string) (net.Conn, error) { return b.redis.Dial() },
	})
	b.Cleanup(func() { client.Close() })
	return open(b, client, opts)
}

// held has somebody hold a lock who never gives it back, for d.
func (b *bubble) held(name string, d time.Duration) {
	b.Helper()
	key := "lock:{" + name + "}"
	if err := b.redis.Set(key, "h"); err != nil {
		b.Fatal(err)
	}
	b.redis.SetTTL(key, d)
}

// get acquires a lock that has to be had, however long it takes.
func (b *bubble) get(l *lock.Locker, name string, opts *lock.AcquireOptions) *lock.Lease {
	b.Helper()
	h, err := l.Acquire(b.Context(), name, opts)
	if err != nil {
		b.Fatalf("acquiring %q: %v", name, err)
	}
	return h
}

// wantLeft reports what is left of a lock unless it is d, or up to a tenth less.
func (b *bubble) wantLeft(name string, d time.Duration) {
	b.Helper()
	synctest.Wait()
	if got := b.redis.TTL("lock:{" + name + "}"); got > d || got < d-d/10 {
		b.Errorf("the lock has %v left, want %v", got, d)
	}
}

// TestWaitIsNotTTL waits for 40 seconds for a lock with a TTL of 12, and holds it
// for a minute.
func TestWaitIsNotTTL(t *testing.T) {
	const ttl, wait, busy = 12 * time.Second, time.Minute, 40 * time.Second
	inBubble(t, nil, func(b *bubble, l *lock.Locker) {
		began := time.Now()
		b.held("a", busy)
		h := b.get(l, "a", &lock.AcquireOptions{TTL: ttl, Wait: wait})
		if took := time.Since(began); took < busy || took > busy+poll {
			b.Errorf("acquired after %v, want after %v", took, busy)
		}
		b.wantLeft("a", ttl)
		time.Sleep(time.Minute)
		if err := h.Err(); err != nil || h.Context().Err() != nil {
			b.Errorf("held for five TTLs: %v", err)
		}
		release(b, h)
	})
}

// TestWaits ends waiting in each of the ways there are.
func TestWaits(t *testing.T) {
	tests := []struct {
		name  string
		opts  lock.AcquireOptions
		limit time.Duration // the caller's deadline
		after time.Duration
		want  []error
		not   []error
	}{
		{
			"Wait is over",
			lock.AcquireOptions{Wait: 7 * time.Second},
			time.Hour, 7 * time.Second,
			[]error{lock.ErrNotAcquired},
			[]error{context.DeadlineExceeded},
		},
		{"the deadline", lock.AcquireOptions{}, 7 * time.Second, 7 * time.Second, []error{lock.ErrNotAcquired, context.DeadlineExceeded}, nil},
		{"the deadline before Wait", lock.AcquireOptions{Wait: time.Minute, Fenced: true}, time.Second, time.Second, []error{lock.ErrNotAcquired, context.DeadlineExceeded}, nil},
		{"a deadline that has passed", lock.AcquireOptions{}, -1, 0, []error{lock.ErrNotAcquired, context.DeadlineExceeded}, nil},
		{"shorter than a poll", lock.AcquireOptions{Wait: time.Millisecond}, time.Hour, time.Millisecond, []error{lock.ErrNotAcquired}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, nil, func(b *bubble, l *lock.Locker) {
				b.held("a", time.Hour)
				ctx, cancel := context.WithTimeout(b.Context(), tt.limit)
				defer cancel()
				began := time.Now()
				_, err := l.Acquire(ctx, "a", &tt.opts)
				for _, want := range tt.want {
					wantErr(b, "Acquire", err, want)
				}
				for _, not := range append(tt.not, lock.ErrUnavailable) {
					if errors.Is(err, not) {
						b.Errorf("Acquire: %v, which must not be %v", err, not)
					}
				}
				if took := time.Since(began); took != tt.after {
					b.Errorf("waited for %v, want %v", took, tt.after)
				}
				synctest.Wait()
				if b.redis.Exists("lock:{a}:w") {
					b.Error("who waits no longer is still in the queue")
				}
			})
		})
	}
}

// TestPolls has somebody wait for long, who asks every quarter of a second, or ten
// times a second without messages, a quarter more or less.
func TestPolls(t *testing.T) {
	const each, minute = 6, 60 // commands of a question, with those inside the script
	for _, tt := range []struct {
		name        string
		opts        lock.Options
		least, most int
	}{
		{"with messages", lock.Options{}, minute * (each*3 + 3), minute * (each*6 + 3)}, // three PINGs
		{"without", lock.Options{DisablePubSub: true}, minute * each * 7, minute * each * 14},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, &tt.opts, func(b *bubble, l *lock.Locker) {
				release(b, b.get(l, "b", nil))
				b.held("a", time.Hour)
				before := b.redis.CommandCount()
				_, err := l.Acquire(b.Context(), "a", &lock.AcquireOptions{Wait: minute * time.Second})
				wantErr(b, "Acquire", err, lock.ErrNotAcquired)
				if n := b.redis.CommandCount() - before; n > tt.most || n < tt.least {
					b.Errorf("%d commands in a minute of waiting, want from %d to %d", n, tt.least, tt.most)
				}
			})
		})
	}
}

// TestRenewedAtEachThird looks at how much is left of a lock while it is held.
func TestRenewedAtEachThird(t *testing.T) {
	const ttl = 3 * time.Second
	for _, holders := range []int{1, 2} {
		inBubble(t, nil, func(b *bubble, l *lock.Locker) {
			h := b.get(l, "a", &lock.AcquireOptions{TTL: ttl, Holders: holders})
			var left []time.Duration
			for range 8 {
				time.Sleep(ttl / 6)
				synctest.Wait()
				left = append(left, b.redis.TTL("lock:{a}").Round(time.Millisecond))
			}
			full, half := ttl, 5*ttl/6
			if want := []time.Duration{half, full, half, full, half, full, half, full}; !slices.Equal(left, want) {
				b.Errorf("%d places: left at each sixth %v, want %v", holders, left, want)
			}
			release(b, h)
			time.Sleep(time.Minute)
			if b.redis.Exists("lock:{a}") {
				b.Error("there is a lock after its release")
			}
		})
	}
}

// TestMaxHold has a holder take longer than it may.
func TestMaxHold(t *testing.T) {
	const ttl, most = 3 * time.Second, 10 * time.Second
	inBubble(t, nil, func(b *bubble, l *lock.Locker) {
		began := time.Now()
		h := b.get(l, "a", &lock.AcquireOptions{TTL: ttl, MaxHold: most})
		ends(b, h)
		if took := time.Since(began); took != most {
			b.Errorf("the context ended after %v, want %v", took, most)
		}
		wantErr(b, "cause", context.Cause(h.Context()), lock.ErrLost)
		wantErr(b, "Err", h.Err(), lock.ErrLost)
		next := b.get(b.locker(nil), "a", nil)
		if took := time.Since(began); took > most+ttl {
			b.Errorf("the next holder came after %v, want within the TTL", took)
		}
		wantErr(b, "Release", h.Release(b.Context()), lock.ErrLost)
		release(b, next)
	})
}

// TestMaxHoldOfATask has Run end a task that takes longer than it may.
func TestMaxHoldOfATask(t *testing.T) {
	inBubble(t, nil, func(b *bubble, l *lock.Locker) {
		began := time.Now()
		err := l.Run(b.Context(), "a", func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, &lock.RunOptions{MaxHold: 5 * time.Second})
		wantErr(b, "Run", err, lock.ErrLost)
		if took := time.Since(began); took != 5*time.Second {
			b.Errorf("the task ended after %v, want 5s", took)
		}
	})
}

// TestTaskLongerThanTTL runs a task for five TTLs, once.
func TestTaskLongerThanTTL(t *testing.T) {
	const ttl = 2 * time.Second
	inBubble(t, &lock.Options{TTL: ttl}, func(b *bubble, l *lock.Locker) {
		there, runs := b.locker(nil), 0
		done := make(chan error)
		task := func(context.Context) error {
			runs++
			time.Sleep(5 * ttl)
			return nil
		}
		go func() { done <- l.Run(b.Context(), "a", task, nil) }()
		synctest.Wait()
		for range 9 {
			time.Sleep(ttl / 2)
			wantErr(b, "another Run", there.Run(b.Context(), "a", task, nil), lock.ErrNotAcquired)
		}
		wantErr(b, "Run", <-done, nil)
		if runs != 1 {
			b.Errorf("the task ran %d times, want once", runs)
		}
	})
}

// TestGrace asks for time to come to an end when the lock cannot be renewed.
func TestGrace(t *testing.T) {
	const ttl, grace = 10 * time.Second, 2 * time.Second
	inBubble(t, &lock.Options{TTL: ttl}, func(b *bubble, l *lock.Locker) {
		h := b.get(l, "a", &lock.AcquireOptions{Grace: grace})
		b.redis.SetError("out of order")
		began := time.Now()
		ends(b, h)
		if took, want := time.Since(began), ttl-ttl/100-2*time.Millisecond-grace; took != want {
			b.Errorf("the context ended after %v, want %v", took, want)
		}
		if left := h.Left(); left != grace {
			b.Errorf("%v left, want %v", left, grace)
		}
		b.redis.SetError("")
		wantErr(b, "Release", h.Release(b.Context()), lock.ErrLost)
	})
}
