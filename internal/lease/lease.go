// Package lease keeps leases alive while their holders work: once, for the
// entries of the cache and for locks.
//
// # How a lease is kept
//
//  1. [Keeper.Keep] notes the lease. Nothing is started for it: one goroutine
//     per Keeper sleeps until the first lease is due, a third of its TTL after
//     it was granted, and ends when it wakes to find none. Most loads are over
//     before they are due and cost a map entry.
//  2. A due lease is extended in a goroutine of its own, so that one slow
//     connection delays no other lease. An error is tried again soon; "not
//     yours" is final.
//  3. The holder hears of the loss once, through [Holder].Lost: when the backend
//     says so, or when Grant.Validity passes without a renewal, which is before
//     the server can let the lease lapse.
//  4. [Held.Stop] ends the keeping. A renewal still under way then finds its
//     token gone after the release, which harms nobody.
package lease

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrLost is the cause of a loss: the lease was taken, removed, or could not be
// renewed in time.
var ErrLost = errors.New("lease lost")

// Holder is who holds a lease. The keeper calls each method in a goroutine of its
// own.
type Holder interface {
	// Extend moves the lease's end to TTL from now. It is bounded by ctx.
	Extend(ctx context.Context) (held bool, err error)
	// Lost is called once if the lease is lost while it is kept.
	Lost(cause error)
	// Over is called once when MaxHold has passed.
	Over()
}

// Grant is a lease as it was given.
type Grant struct {
	Holder
	// TTL is how long the lease lasts without a renewal. 0: there is no lease, and
	// only MaxHold is minded.
	TTL time.Duration
	// Since is the instant before the request for the lease was sent.
	Since time.Time
	// MaxHold ends the renewing that long after Since. 0: never.
	MaxHold time.Duration
	// Validity is how long after Since, or after the last successful renewal was
	// sent, the holder may still act. 0: the backend refuses a late holder, so
	// time alone loses nothing.
	Validity time.Duration
}

// Keeper keeps leases. The zero value is ready; it must not be copied.
type Keeper struct {
	mu     sync.Mutex // guards what follows
	held   map[*Held]struct{}
	wake   chan struct{} // non-nil while the goroutine runs
	next   time.Time     // when the goroutine wakes by itself
	closed bool

	wg sync.WaitGroup
}

// Held is a lease that is being kept.
type Held struct {
	Grant
	keeper *Keeper

	// The keeper's mutex guards what follows.
	due      time.Time
	renewed  time.Time // when the last successful renewal was sent
	renewing bool
	lost     bool
	over     bool // MaxHold has passed
}

// Keep renews a lease until it is stopped or lost.
func (k *Keeper) Keep(g Grant) *Held {
	h := new(Held)
	k.KeepIn(h, g)
	return h
}

// KeepIn is Keep in memory of the caller's.
func (k *Keeper) KeepIn(h *Held, g Grant) {
	*h = Held{Grant: g, keeper: k, renewed: g.Since}
	h.due = g.Since.Add(h.interval())
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	if k.held == nil {
		k.held = make(map[*Held]struct{})
	}
	k.held[h] = struct{}{}
	k.scheduleLocked(h.nextLocked())
}

// Stop ends the renewing and reports whether the lease had ended before. It may
// be called more than once.
func (h *Held) Stop() (ended bool) {
	h.keeper.mu.Lock()
	defer h.keeper.mu.Unlock()
	ended = h.endedLocked()
	delete(h.keeper.held, h)
	return ended
}

// Ended reports whether the lease is lost or MaxHold has passed, by the clock of
// this moment: the goroutine that tells the holder may be late.
func (h *Held) Ended() bool {
	h.keeper.mu.Lock()
	defer h.keeper.mu.Unlock()
	return h.endedLocked()
}

// Left returns how much of Validity is left since the last successful renewal was
// sent, by the clock that has gone further. It may be negative, and minds neither
// MaxHold nor what a renewal has found out.
func (h *Held) Left() time.Duration {
	h.keeper.mu.Lock()
	defer h.keeper.mu.Unlock()
	return h.leftLocked(time.Now())
}

// Lose ends the lease: the holder has found out by itself that it is lost.
func (h *Held) Lose() {
	h.keeper.mu.Lock()
	defer h.keeper.mu.Unlock()
	if _, kept := h.keeper.held[h]; kept && !h.lost {
		h.keeper.loseLocked(h)
	}
}

func (h *Held) endedLocked() bool {
	now := time.Now()
	return h.lost || h.over || h.expiredLocked(now) || h.MaxHold > 0 && now.Sub(h.Since) >= h.MaxHold
}

// Len returns how many leases are being kept.
func (k *Keeper) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := 0
	for h := range k.held {
		if h.leasedLocked() {
			n++
		}
	}
	return n
}

// Close stops keeping all leases and waits for renewals under way.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.closed = true
	clear(k.held)
	k.scheduleLocked(time.Time{})
	k.mu.Unlock()
	k.wg.Wait()
}

// scheduleLocked sees to it that the goroutine runs and wakes at t at the latest.
func (k *Keeper) scheduleLocked(t time.Time) {
	if k.wake == nil {
		if k.closed {
			return
		}
		wake := make(chan struct{}, 1)
		k.wake, k.next = wake, t
		k.wg.Go(func() { k.run(wake, t) })
		return
	}
	if t.Before(k.next) {
		k.next = t
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
}

// run renews what is due until nothing is left.
func (k *Keeper) run(wake <-chan struct{}, next time.Time) {
	t := time.NewTimer(time.Until(next))
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-wake:
		}
		next, more := k.renewDue()
		if !more {
			return
		}
		t.Reset(time.Until(next))
	}
}

// renewDue starts all renewals that are due and returns when to look again.
func (k *Keeper) renewDue() (next time.Time, more bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.held) == 0 {
		k.wake = nil
		return time.Time{}, false
	}
	now := time.Now()
	next = now.Add(time.Hour)
	for h := range k.held {
		if h.expiredLocked(now) {
			k.loseLocked(h)
		}
		k.endLocked(h, now)
		if !h.due.After(now) {
			k.renewLocked(h, now)
		}
		if at := h.nextLocked(); at.Before(next) {
			next = at
		}
	}
	k.next = next
	return next, true
}

// endLocked ends the renewing when MaxHold has passed.
func (k *Keeper) endLocked(h *Held, now time.Time) {
	if h.over || h.MaxHold <= 0 || now.Sub(h.Since) < h.MaxHold {
		return
	}
	h.over = true
	k.wg.Go(h.Over)
}

// renewLocked starts a renewal unless one is under way or the holding has
// lasted long enough.
func (k *Keeper) renewLocked(h *Held, now time.Time) {
	h.due = now.Add(h.interval())
	if h.renewing || h.over || !h.leasedLocked() {
		return
	}
	h.renewing = true
	k.wg.Go(func() { h.renew(now) })
}

// renew extends the lease once and notes the outcome.
func (h *Held) renew(sent time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), h.TTL/3)
	held, err := h.Extend(ctx)
	cancel()
	k := h.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	h.renewing = false
	if _, kept := k.held[h]; !kept || h.lost {
		return
	}
	switch {
	case err != nil:
		h.due = time.Now().Add(h.TTL / 20)
		k.scheduleLocked(h.due)
	case !held:
		k.loseLocked(h)
	default:
		h.renewed = sent
	}
}

// loseLocked stops renewing h and tells its holder. MaxHold is still minded.
func (k *Keeper) loseLocked(h *Held) {
	h.lost = true
	if h.MaxHold <= 0 {
		delete(k.held, h)
	}
	k.wg.Go(func() { h.Lost(ErrLost) })
}

// interval is how often the lease is looked after.
func (h *Held) interval() time.Duration {
	if h.TTL == 0 {
		return time.Hour
	}
	return h.TTL / 3
}

// leasedLocked reports whether there is a lease to renew.
func (h *Held) leasedLocked() bool { return h.TTL > 0 && !h.lost }

// expiredLocked reports whether the holder may no longer act.
func (h *Held) expiredLocked(now time.Time) bool {
	return h.Validity > 0 && !h.lost && h.leftLocked(now) <= 0
}

// leftLocked is what is left of Validity. The monotonic clock stands still while
// the machine sleeps, so the wall clock is asked too.
func (h *Held) leftLocked(now time.Time) time.Duration {
	return h.Validity - max(now.Sub(h.renewed), now.Round(0).Sub(h.renewed.Round(0)))
}

// nextLocked is when h needs attention again.
func (h *Held) nextLocked() time.Time {
	next := h.due
	if end := h.renewed.Add(h.Validity); h.Validity > 0 && !h.lost && end.Before(next) {
		next = end
	}
	if end := h.Since.Add(h.MaxHold); h.MaxHold > 0 && !h.over && end.Before(next) {
		next = end
	}
	return next
}
