package lock

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/command"
)

// Acquire gets the lock of that name, and waits while others hold it: until
// opts.Wait is over or ctx ends. Callers of one process get it in the order in
// which they came, processes in about the order in which they began to wait.
//
// The lease's context is derived from ctx: bound the waiting with opts.Wait rather
// than with a deadline of ctx, which would end the lease as well.
//
// The error is [ErrNotAcquired] if others held it, and ctx.Err() too if ctx ended
// the waiting; [ErrUnavailable] if Redis failed; [ErrClosed]; or it names every
// option that is wrong.
func (l *Locker) Acquire(ctx context.Context, name string, opts *AcquireOptions) (*Lease, error) {
	h, err := l.prepare(name, opts)
	if err != nil {
		return nil, err
	}
	return l.attempt(ctx, h, (*Locker).acquire)
}

// TryAcquire gets the lock of that name if it is free, and else returns
// [ErrNotAcquired] at once. opts.Wait is not used. Other errors are those of
// [Locker.Acquire].
func (l *Locker) TryAcquire(ctx context.Context, name string, opts *AcquireOptions) (*Lease, error) {
	h, err := l.prepare(name, opts)
	if err != nil {
		return nil, err
	}
	return l.attempt(ctx, h, (*Locker).tryAcquire)
}

// attempt makes one attempt to acquire a lock. Close waits for its end.
func (l *Locker) attempt(ctx context.Context, h *Lease, how func(*Locker, context.Context, *Lease) (*Lease, error)) (*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, errors.Join(ErrNotAcquired, err)
	}
	if !l.enter() {
		return nil, ErrClosed
	}
	defer l.exit()
	got, err := how(l, ctx, h)
	if err != nil {
		l.abandon(ctx, h)
	}
	return got, err
}

func (l *Locker) acquire(ctx context.Context, h *Lease) (*Lease, error) {
	if mayAsk, _ := l.approach(h); mayAsk {
		got, err := l.askOnce(ctx, h)
		if !errors.Is(err, errHeld) {
			return got, err
		}
	}
	return l.wait(ctx, h)
}

// tryAcquire asks once. While somebody in this process asks already, that one's
// answer serves: the lock is held then, or Redis is in trouble for both.
func (l *Locker) tryAcquire(ctx context.Context, h *Lease) (*Lease, error) {
	mayAsk, asker := l.approach(h)
	switch {
	case mayAsk:
		return l.askOnce(ctx, h)
	case asker == nil:
		return nil, errHeld
	}
	select {
	case <-asker.answered:
		return nil, cmp.Or(asker.trouble, errHeld)
	case <-ctx.Done():
		return nil, errors.Join(ErrNotAcquired, ctx.Err())
	}
}

// askOnce asks after an approach.
func (l *Locker) askOnce(ctx context.Context, h *Lease) (*Lease, error) {
	got, err := l.ask(ctx, h, -1, -1)
	if err != nil {
		err = h.failed(ctx, err)
	}
	l.stepBack(h, err)
	switch {
	case err != nil:
		return nil, err
	case !got:
		return nil, errHeld
	}
	return l.granted(ctx, h)
}

// errHeld is ErrNotAcquired as a first attempt comes to it.
var errHeld = fmt.Errorf("%w: held by others", ErrNotAcquired)

// approach reports whether the caller may ask for the lock at once: nobody in
// this process waits for it, nor, if it has one place, asks for it just now. Who
// asks is returned otherwise. It is followed by stepBack.
func (l *Locker) approach(h *Lease) (mayAsk bool, asker *Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines[h.key] != nil {
		return false, nil
	}
	if h.opts.Holders > 1 {
		return true, nil
	}
	if asker = l.asking[h.key]; asker == nil {
		l.asking[h.key] = h
		return true, nil
	}
	if asker.answered == nil {
		asker.answered = make(chan struct{})
	}
	return false, asker
}

// stepBack tells those who found h asking what came of it.
func (l *Locker) stepBack(h *Lease, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asking[h.key] != h {
		return
	}
	delete(l.asking, h.key)
	if errors.Is(err, ErrUnavailable) {
		h.trouble = err
	}
	if h.answered != nil {
		close(h.answered)
	}
}

// prepare makes a lease that is yet to be acquired.
func (l *Locker) prepare(name string, opts *AcquireOptions) (*Lease, error) {
	waiters := l.opts.Namespace + "lock:{" + name + "}" + waitersSuffix
	h := &Lease{
		locker: l, opts: opts.withDefaults(&l.opts), name: name,
		key: waiters[:len(waiters)-len(waitersSuffix)],
	}
	h.keys = [...]any{h.key, waiters}
	if err := errors.Join(checkName(name), h.opts.validate()); err != nil {
		return nil, err
	}
	return h, nil
}

// failed says why the lock could not be asked for.
func (h *Lease) failed(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, ErrAlreadyRan):
		return err
	case ended(ctx) != nil:
		return errors.Join(ErrNotAcquired, ended(ctx))
	case command.IsWrongType(err):
		return fmt.Errorf("lock: %q is in use with another number of Holders, or its key %q holds something else: %w", h.name, h.key, err)
	}
	return unavailable("acquiring", h.name, err)
}

// ended is ctx.Err(), and says so from the deadline on: a command that ends there
// may be noticed before the context's own timer.
func ended(ctx context.Context) error {
	at, limited := ctx.Deadline()
	if err := ctx.Err(); err != nil || !limited || time.Now().Before(at) {
		return err
	}
	return context.DeadlineExceeded
}

// ask asks for the lock, in as many deliveries as it takes to learn the answer.
// Each delivery bears a token of its own and is sent once: a copy that came late
// could take the lock after its holder had released it. After a lost reply the
// next delivery names the earlier tokens, so that a lock got without knowing is
// recognised.
//
// age is how long the caller has waited, in milliseconds, if its process is to be
// noted as waiting; next the same for the one who waits behind it; or -1.
func (l *Locker) ask(ctx context.Context, h *Lease, age, next int64) (got bool, err error) {
	left := l.opts.RedisBudget
	if age < 0 && next < 0 && h.plain() {
		start := time.Now()
		got, err = l.claim(command.WithOwnBudget(ctx, left), h)
		if left -= time.Since(start); !command.MayMend(err) || left <= 0 {
			return got, err
		}
	}
	ctx = command.WithBudget(ctx, left)
	err = command.Retry(ctx, func() (err error) {
		got, err = l.request(ctx, h, age, next)
		return err
	})
	if err == nil && h.ran {
		err = ErrAlreadyRan
	}
	return got, err
}

// plain reports whether SET NX will do.
func (h *Lease) plain() bool {
	return h.opts.Holders == 1 && !h.opts.Fenced && h.marker == "" && len(h.earlier) == 0
}

// stamp makes the value of the next delivery: the kind, a token of 128 random
// bits, and what operators are told.
func (h *Lease) stamp() any {
	tok := newToken()
	var room [128]byte
	b := hex.AppendEncode(append(room[:0], kindHeld), tok[:])
	h.value = string(append(append(b, ' '), h.opts.Info...))
	h.sent = time.Now()
	return h.value
}

// lifetime is the TTL as an argument. The usual one is boxed once.
func (h *Lease) lifetime() any {
	if h.opts.TTL == h.locker.opts.TTL {
		return h.locker.lifetime
	}
	return h.opts.TTL.Milliseconds()
}

// claim is the uncontended case: SET NX.
func (l *Locker) claim(ctx context.Context, h *Lease) (got bool, err error) {
	cmd := redis.NewCmd(ctx, "set", h.keys[0], h.stamp(), "px", h.lifetime(), "nx")
	switch err := l.sender.Send(ctx, command.Once{Cmd: cmd}); {
	case err == nil:
		return true, nil
	case errors.Is(err, redis.Nil):
		return false, nil
	default:
		h.earlier = append(h.earlier, h.value)
		return false, err
	}
}

// request is any other case: several places, a fence, a marker, a queue.
func (l *Locker) request(ctx context.Context, h *Lease, age, next int64) (got bool, err error) {
	keys := append(h.keys[:len(h.keys):len(h.keys)], h.key+fenceSuffix)
	if h.marker != "" {
		keys = append(keys, h.marker)
	}
	cmd, err := acquireScript.RunFresh(ctx, l.sender, keys, func() []any {
		args := []any{h.stamp(), h.opts.Holders, h.lifetime(), l.process, age, next, command.Digit(h.opts.Fenced)}
		args = append(args, h.earlier...)
		h.earlier = append(h.earlier, h.value)
		return args
	})
	if err != nil {
		return false, err
	}
	n, err := cmd.Int64Slice()
	if err != nil || len(n) != 3 {
		return false, fmt.Errorf("unexpected reply to acquire.lua: %v: %w", cmd, err)
	}
	h.earlier = h.earlier[:len(h.earlier)-1] // those before may still arrive
	switch n[0] {
	case 1:
		h.more = n[1] > 0
		h.fence.Store(n[2])
		return true, nil
	case 2:
		h.ran = true
	}
	h.left = time.Duration(n[1]) * time.Millisecond
	return false, nil
}

// abandon releases what may have been got in replies that were lost. The caller
// does not wait for that: its time is over, or its budget spent. A request that was
// given up may arrive after its release did, so it is looked for again.
func (l *Locker) abandon(ctx context.Context, h *Lease) {
	if len(h.earlier) == 0 {
		return
	}
	l.leaving.Go(func() {
		lost := h.earlier
		for _, pause := range [...]time.Duration{0, 20 * time.Millisecond, 200 * time.Millisecond} {
			select {
			case <-time.After(pause):
			case <-l.stop.Done():
			}
			var err error
			lost, err = l.reclaim(command.Apart(ctx, l.opts.RedisBudget), h, lost)
			if err != nil || len(lost) == 0 {
				return // what is left lapses by itself
			}
		}
	})
}

// reclaim releases what is found of values in lost replies, and returns the others.
func (l *Locker) reclaim(ctx context.Context, h *Lease, lost []any) (others []any, err error) {
	for i, v := range lost {
		held, err := l.release(ctx, h, v, remains{})
		switch {
		case err != nil:
			return lost[i:], err
		case !held:
			others = append(others, v)
		}
	}
	return others, nil
}

// granted begins a lease, unless the reply came too late.
func (l *Locker) granted(ctx context.Context, h *Lease) (*Lease, error) {
	h.begin(ctx)
	var err error
	switch late := h.held.Ended(); {
	case ctx.Err() != nil:
		err = errors.Join(ErrNotAcquired, ctx.Err())
	case late:
		err = unavailable("acquiring", h.name, fmt.Errorf("the answer took %v, the TTL is %v", time.Since(h.sent), h.opts.TTL))
	case !l.keep(h):
		err = ErrClosed
	default:
		return h, nil
	}
	l.leaving.Go(func() { _ = h.Release(ctx) })
	return nil, err
}

// keep takes a lease into the books, unless the locker was closed.
func (l *Locker) keep(h *Lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.held[h] = struct{}{}
	}
	return !l.closed
}
