package lock

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/getorprime/getorprime/internal/command"
	"github.com/getorprime/getorprime/internal/lease"
)

// What a lock's value begins with.
const (
	kindHeld     = 'h' // then the token, a space, and what operators are told
	kindReserved = 'r' // then the process that was named as the next
	kindResting  = 'm' // as held, but the task is over: see RunOptions.MinHold
)

// What is kept beside a lock ends so; lua/acquire.lua.
const (
	waitersSuffix = ":w"
	fenceSuffix   = ":f"
	markerSuffix  = ":s:"
)

// Lease is a lock that is held, until it is released or lost. It is renewed by
// itself. Its methods may be called from any goroutine.
type Lease struct {
	locker *Locker
	opts   AcquireOptions // with the defaults filled in
	name   string
	key    string
	keys   [2]any // the lock's and the waiters', as arguments of scripts
	marker string // where it says that the task ran; empty: nowhere

	// How the asking goes.
	value   any           // of the latest delivery, a string
	earlier []any         // of deliveries whose replies were lost
	sent    time.Time     // when the latest one was
	left    time.Duration // until a place may be free, if others hold it
	more    bool          // there are places left
	ran     bool          // the marker says that the task ran

	// For those who find it asking; the locker's mutex guards answered.
	answered chan struct{} // nil: nobody does
	trouble  error         // Redis's; set before answered is closed

	// From then on it is held.
	ctx      context.Context
	cancel   context.CancelCauseFunc
	held     lease.Held
	fence    atomic.Int64 // 0: not known
	released atomic.Bool

	mu  sync.Mutex // guards what follows, and makes a release wait for another
	err error      // of the release
}

// begin begins to keep the lease.
func (h *Lease) begin(ctx context.Context) {
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	h.locker.keeper.KeepIn(&h.held, lease.Grant{
		Holder: (*keeping)(h), TTL: h.opts.TTL, Since: h.sent, MaxHold: h.opts.MaxHold, Validity: validity(h.opts.TTL) - h.opts.Grace,
	})
}

// validity is how long after a request was sent a holder may act on it: 1 % for
// clocks that run at different speeds, and 2 ms, less than the TTL.
func validity(ttl time.Duration) time.Duration {
	return ttl - ttl/100 - 2*time.Millisecond
}

// keeping is how a lease is kept.
type keeping Lease

// Extend moves the lock's end.
func (k *keeping) Extend(ctx context.Context) (held bool, err error) {
	ctx = command.WithBudget(ctx, k.locker.opts.RedisBudget)
	cmd, err := renewScript.Run(ctx, k.locker.sender, k.keys[:1], k.value, k.opts.Holders, (*Lease)(k).lifetime())
	if err != nil {
		return false, err
	}
	n, err := cmd.Int64()
	return n == 1, err
}

// Lost tells the holder.
func (k *keeping) Lost(cause error) { k.cancel(cause) }

// Over tells the holder.
func (k *keeping) Over() {
	k.cancel(fmt.Errorf("%w: held %q for MaxHold %v", ErrLost, k.name, k.opts.MaxHold))
}

// Context returns a context derived from that of Acquire, in which [LeaseFrom]
// finds the lease. It is cancelled when the lease ends: with the cause [ErrLost]
// before the lock can lapse on the server, [AcquireOptions].Grace earlier if that
// was asked for, or with [ErrReleased].
func (h *Lease) Context() context.Context { return context.WithValue(h.ctx, leaseKey{}, h) }

// Name returns the lock's name.
func (h *Lease) Name() string { return h.name }

// Token returns the 128 random bits, in hexadecimal, by which the lock's key names
// this holder. No two leases have the same.
func (h *Lease) Token() string {
	value, _ := h.value.(string)
	return value[1 : 1+tokenLen]
}

// tokenLen is the length of a token in hexadecimal.
const tokenLen = 32

// Left returns how long the lock lasts on the server at least, counted from the
// last successful renewal, less what [Lease.Context] keeps back for clocks. Each
// renewal moves it up again, to at most the TTL. When the context ends because no
// renewal succeeded, [AcquireOptions].Grace is left. It may be negative, and does
// not know of a lock that was removed.
func (h *Lease) Left() time.Duration { return h.held.Left() + h.opts.Grace }

// Err returns nil while the lease holds, and then [ErrLost] or [ErrReleased].
// What is true when Err looks may change before the caller acts on it; only a
// fence excludes that.
func (h *Lease) Err() error {
	switch {
	case h.released.Load():
		return ErrReleased
	case h.held.Ended():
		return ErrLost
	}
	return nil
}

// Fence returns a number that is greater than that of every earlier holder of
// this lock. Send it along with each write, and let the resource refuse numbers
// smaller than the greatest it has seen (Kleppmann, "How to do distributed
// locking", 2016). The first call costs a round trip, unless the lock was
// acquired with [AcquireOptions].Fenced.
//
// It is max(counter + 1, the server's time in microseconds), so that fences rise
// across a failover that lost the counter too, unless the clock of the new
// primary is behind by more than the time since the last grant.
//
// The error is [ErrLost], [ErrReleased] or [ErrUnavailable].
func (h *Lease) Fence(ctx context.Context) (int64, error) {
	if fence := h.fence.Load(); fence != 0 {
		return fence, nil
	}
	if err := h.Err(); err != nil {
		return 0, err
	}
	fence, err := h.askFence(ctx)
	switch {
	case err != nil:
		return 0, unavailable("fencing", h.name, err)
	case fence == 0:
		h.held.Lose()
		return 0, ErrLost
	}
	h.fence.CompareAndSwap(0, fence)
	return h.fence.Load(), nil
}

func (h *Lease) askFence(ctx context.Context) (fence int64, err error) {
	ctx = command.WithBudget(ctx, h.locker.opts.RedisBudget)
	keys := []any{h.key, h.key + fenceSuffix}
	err = command.Retry(ctx, func() error {
		cmd, err := fenceScript.Run(ctx, h.locker.sender, keys, h.value, h.opts.Holders)
		if err != nil {
			return err
		}
		fence, err = cmd.Int64()
		return err
	})
	return fence, err
}

// Release gives the lock back, and names the one who has waited longest as the
// next. It cancels the lease's context, ends the renewing, and goes on when ctx
// is cancelled, within the Redis budget. It may be called more than once, and
// returns the same each time: nil, [ErrLost] if the lease ended before, or
// [ErrUnavailable]; the lock then lapses within its TTL.
func (h *Lease) Release(ctx context.Context) error {
	return h.end(ctx, remains{})
}

// remains is what a release leaves behind.
type remains struct {
	rest   time.Duration // the lock stays locked that much longer, held by nobody
	marker string        // where to note that the task ran; empty: nowhere
	keep   time.Duration // how long that is noted
}

// end gives the lock back, once, and says whether it was still held.
func (h *Lease) end(ctx context.Context, left remains) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.released.Swap(true) {
		return h.err
	}
	lost := h.held.Stop()
	h.cancel(ErrReleased)
	held, err := h.locker.release(command.Apart(ctx, h.locker.opts.RedisBudget), h, h.value, left)
	switch {
	case lost, err == nil && !held:
		h.err = ErrLost
	case err != nil:
		h.err = unavailable("releasing", h.name, err)
	}
	h.locker.forget(h)
	return h.err
}

// release gives a lock back. A release that is sent again finds the lock gone,
// which then says nothing.
func (l *Locker) release(ctx context.Context, h *Lease, value any, left remains) (held bool, err error) {
	deliveries := 0
	err = command.Retry(ctx, func() error {
		deliveries++
		n, err := l.handBack(ctx, h, value, left)
		held = n == 1 || deliveries > 1
		return err
	})
	return held, err
}

func (l *Locker) handBack(ctx context.Context, h *Lease, value any, left remains) (int64, error) {
	keys := h.keys[:]
	if left.marker != "" {
		keys = append(keys, left.marker)
	}
	cmd, err := releaseScript.Run(ctx, l.sender, keys,
		value, l.prefix, l.everyone, h.opts.Holders, left.rest.Milliseconds(), left.keep.Milliseconds())
	if err != nil {
		return 0, err
	}
	return cmd.Int64()
}

// forget takes a lease that has ended out of the books.
func (l *Locker) forget(h *Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, h)
	l.emptyLocked()
}
