package lease_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/internal/lease"
)

// backend is what extends a lease in these tests, and notes when.
type backend struct {
	start time.Time
	reply func(n int) (bool, error) // the nth extension, from 1; nil: held
	takes time.Duration             // how long an extension is under way

	mu   sync.Mutex // guards what follows
	at   []time.Duration
	lost []time.Duration
}

func newBackend() *backend { return &backend{start: time.Now()} }

func (b *backend) grant(ttl time.Duration) lease.Grant {
	return lease.Grant{TTL: ttl, Since: time.Now(), Holder: &holder{extend: b.extend, lost: b.lose, over: func() {}}}
}

// holder is a holder made of functions.
type holder struct {
	extend func(context.Context) (bool, error)
	lost   func(error)
	over   func()
}

func (h *holder) Extend(ctx context.Context) (bool, error) { return h.extend(ctx) }
func (h *holder) Lost(cause error)                         { h.lost(cause) }
func (h *holder) Over()                                    { h.over() }

func (b *backend) extend(ctx context.Context) (bool, error) {
	b.mu.Lock()
	b.at = append(b.at, time.Since(b.start))
	n := len(b.at)
	b.mu.Unlock()
	select {
	case <-time.After(b.takes):
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if b.reply == nil {
		return true, nil
	}
	return b.reply(n)
}

func (b *backend) lose(cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if errors.Is(cause, lease.ErrLost) {
		b.lost = append(b.lost, time.Since(b.start))
	}
}

// renewals and losses return when each happened, since the backend was made.
func (b *backend) renewals() []time.Duration {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.at)
}

func (b *backend) losses() []time.Duration {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.lost)
}

// inBubble runs f with a keeper that is closed at its end.
func inBubble(t *testing.T, f func(t *testing.T, k *lease.Keeper, b *backend)) {
	synctest.Test(t, func(t *testing.T) {
		k := new(lease.Keeper)
		t.Cleanup(k.Close)
		f(t, k, newBackend())
	})
}

const ttl = 3 * time.Second

var errRedis = errors.New("connection refused")

func TestRenewsAtEachThird(t *testing.T) {
	inBubble(t, func(t *testing.T, k *lease.Keeper, b *backend) {
		held := k.Keep(b.grant(ttl))
		time.Sleep(3500 * time.Millisecond)
		held.Stop()
		held.Stop()
		if got := k.Len(); got != 0 {
			t.Errorf("%d leases kept after Stop, want 0", got)
		}
		time.Sleep(time.Minute)
		want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}
		if got := b.renewals(); !slices.Equal(got, want) {
			t.Errorf("renewed at %v, want %v and never after Stop", got, want)
		}
		if got := b.losses(); got != nil {
			t.Errorf("lost at %v, want never", got)
		}
	})
}

func TestShortLeaseCostsNoRenewal(t *testing.T) {
	inBubble(t, func(t *testing.T, k *lease.Keeper, b *backend) {
		for range 100 {
			held := k.Keep(b.grant(ttl))
			time.Sleep(time.Millisecond)
			held.Stop()
		}
		time.Sleep(time.Minute)
		if got := b.renewals(); len(got) != 0 {
			t.Errorf("renewed at %v, want never", got)
		}
	})
}

func TestLeasesAreRenewedEachInItsTime(t *testing.T) {
	inBubble(t, func(t *testing.T, k *lease.Keeper, slow *backend) {
		defer k.Keep(slow.grant(time.Hour)).Stop() // due in 20 minutes
		time.Sleep(time.Second)
		quick := newBackend()
		defer k.Keep(quick.grant(300 * time.Millisecond)).Stop()
		time.Sleep(350 * time.Millisecond)
		want := []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond}
		if got := quick.renewals(); !slices.Equal(got, want) {
			t.Errorf("short lease renewed at %v, want %v", got, want)
		}
		if got := slow.renewals(); len(got) != 0 {
			t.Errorf("long lease renewed at %v, want not yet", got)
		}
		if got := k.Len(); got != 2 {
			t.Errorf("%d leases kept, want 2", got)
		}
	})
}

func TestNotHeldIsFinal(t *testing.T) {
	inBubble(t, func(t *testing.T, k *lease.Keeper, b *backend) {
		b.reply = func(n int) (bool, error) { return n < 2, nil }
		k.Keep(b.grant(ttl))
		time.Sleep(time.Minute)
		if got, want := b.losses(), []time.Duration{2 * time.Second}; !slices.Equal(got, want) {
			t.Errorf("lost at %v, want once, at %v", got, want)
		}
		if got := len(b.renewals()); got != 2 {
			t.Errorf("%d renewals, want 2: none after the loss", got)
		}
		if got := k.Len(); got != 0 {
			t.Errorf("%d leases kept, want 0", got)
		}
	})
}

func TestAnErrorIsTriedAgainSoon(t *testing.T) {
	inBubble(t, func(t *testing.T, k *lease.Keeper, b *backend) {
		b.reply = func(n int) (bool, error) {
			if n == 1 {
				return false, errRedis
			}
			return true, nil
		}
		defer k.Keep(b.grant(ttl)).Stop()
		time.Sleep(1300 * time.Millisecond)
		want := []time.Duration{time.Second, 1150 * time.Millisecond}
		if got := b.renewals(); !slices.Equal(got, want) {
			t.Errorf("renewed at %v, want %v: again after a twentieth of the TTL", got, want)
		}
		if got := b.losses(); got != nil {
			t.Errorf("lost at %v, want not: an error is no loss", got)
		}
	})
}

func TestValidity(t *testing.T) {
	fails := func(int) (bool, error) { return false, errRedis }
	tests := []struct {
		name     string
		validity time.Duration
		takes    time.Duration
		reply    func(int) (bool, error)
		want     []time.Duration // losses
	}{
		{"renewals fail", 2900 * time.Millisecond, 0, fails, []time.Duration{2900 * time.Millisecond}},
		{"renewals hang", 2900 * time.Millisecond, time.Hour, nil, []time.Duration{2900 * time.Millisecond}},
		{"the first works, the rest fail", 2900 * time.Millisecond, 0, func(n int) (bool, error) {
			if n == 1 {
				return true, nil
			}
			return false, errRedis
		}, []time.Duration{3900 * time.Millisecond}},
		{"slow renewals count from when they were sent", 2900 * time.Millisecond, 900 * time.Millisecond, func(n int) (bool, error) {
			return true, nil
		}, nil},
		{"no validity: errors alone lose nothing", 0, 0, fails, nil},
		{"shorter than a third", 500 * time.Millisecond, 0, nil, []time.Duration{500 * time.Millisecond}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, k *lease.Keeper, b *backend) {
				b.reply, b.takes = tt.reply, tt.takes
				g := b.grant(ttl)
				g.Validity = tt.validity
				held := k.Keep(g)
				time.Sleep(10 * time.Second)
				if got := b.losses(); !slices.Equal(got, tt.want) {
					t.Errorf("lost at %v, want %v", got, tt.want)
				}
				held.Stop()
			})
		})
	}
}

func TestASlowRenewalDelaysNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, k *lease.Keeper, stuck *backend) {
		stuck.takes = time.Hour
		well := newBackend()
		defer k.Keep(stuck.grant(ttl)).Stop()
		defer k.Keep(well.grant(ttl)).Stop()
		time.Sleep(3500 * time.Millisecond)
		want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}
		if got := well.renewals(); !slices.Equal(got, want) {
			t.Errorf("renewed at %v beside a stuck lease, want %v", got, want)
		}
	})
}

func TestARenewalIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, k *lease.Keeper, b *backend) {
		var bound time.Duration
		g := b.grant(ttl)
		g.Holder.(*holder).extend = func(ctx context.Context) (bool, error) {
			at, _ := ctx.Deadline()
			bound = time.Until(at)
			return true, nil
		}
		defer k.Keep(g).Stop()
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if bound != time.Second {
			t.Errorf("a renewal may take %v, want a third of the TTL", bound)
		}
	})
}

func TestStopDuringARenewal(t *testing.T) {
	inBubble(t, func(t *testing.T, k *lease.Keeper, b *backend) {
		b.takes = 500 * time.Millisecond
		b.reply = func(int) (bool, error) { return false, nil }
		held := k.Keep(b.grant(ttl))
		time.Sleep(1200 * time.Millisecond)
		held.Stop()
		time.Sleep(time.Minute)
		if got := b.losses(); got != nil {
			t.Errorf("lost at %v, want not: the holder had let go", got)
		}
	})
}

func TestCloseWaitsForRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k lease.Keeper
		b := newBackend()
		b.takes = 500 * time.Millisecond
		k.Keep(b.grant(ttl))
		time.Sleep(1200 * time.Millisecond)
		k.Close()
		k.Close()
		if got := time.Since(b.start); got != 1500*time.Millisecond {
			t.Errorf("Close returned after %v, want when the renewal had ended", got)
		}
		k.Keep(b.grant(ttl)).Stop()
		time.Sleep(time.Minute)
		if got := b.renewals(); len(got) != 1 || k.Len() != 0 {
			t.Errorf("renewed at %v, %d kept; want nothing after Close", got, k.Len())
		}
		// The bubble ends only if the keeper's goroutine has.
	})
}

// TestKeeperSleepsWhenIdle keeps leases again after an idle time: the keeper's
// goroutine has ended meanwhile, and another one must start.
func TestKeeperSleepsWhenIdle(t *testing.T) {
	inBubble(t, func(t *testing.T, k *lease.Keeper, b *backend) {
		k.Keep(b.grant(ttl)).Stop()
		time.Sleep(time.Hour)
		again := newBackend()
		held := k.Keep(again.grant(ttl))
		time.Sleep(1500 * time.Millisecond)
		held.Stop()
		if got := again.renewals(); len(got) != 1 {
			t.Errorf("renewed at %v, want once", got)
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	var k lease.Keeper
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				held := k.Keep(lease.Grant{
					TTL: time.Microsecond, Since: time.Now(), Validity: time.Millisecond,
					Holder: &holder{func(context.Context) (bool, error) { return true, nil }, func(error) {}, func() {}},
				})
				held.Stop()
			}
		})
	}
	wg.Wait()
	k.Close()
	if got := k.Len(); got != 0 {
		t.Errorf("%d leases kept, want 0", got)
	}
}
