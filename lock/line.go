package lock

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/getorprime/getorprime/internal/command"
	"github.com/getorprime/getorprime/internal/wake"
)

// line is the queue of those in this process who wait for one lock. Only its head
// talks to Redis; the others sleep until they are the head.
//
// How a lock goes from hand to hand:
//
//  1. The head of a line asks for the lock. It is held: the script notes the
//     process as waiting since its head has waited.
//  2. The holder releases. The script takes the process that has waited longest
//     out of the queue, reserves the lock for it for 100 ms, and publishes to it.
//     If nobody listens there (it was killed), the next one is taken.
//  3. The head of the named process asks, and gets the lock: nobody else can have
//     taken it meanwhile. The same script notes the process as waiting again, for
//     the one who is the head now.
//  4. A process that was named and does not come costs the 100 ms. Its place is
//     gone; it notes itself again, as having waited all along, when it asks.
//  5. Whoever polls takes a lock that is neither held nor reserved. So a lost
//     message costs one poll, and nothing here can wedge the lock.
//  6. A process whose last waiter leaves takes itself out of the queue, and passes
//     the lock on if it was named just then.
type line struct {
	lock    *Lease    // as the first of them wants it
	waiters list.List // of *waiter
	watch   *wake.Watch
	noted   bool // the process may be noted as waiting
}

// waiter is one caller in a line.
type waiter struct {
	since time.Time
	turn  chan error // closed when it is the head; gets an error that is everybody's
	noted bool       // the process was noted for it when the one before got the lock
	place *list.Element
}

// wait gets the lock when it is the caller's turn.
func (l *Locker) wait(ctx context.Context, h *Lease) (*Lease, error) {
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.stop, func() { cancel(ErrClosed) })()
	if h.opts.Wait > 0 {
		// Not a deadline, which would end a command whose outcome is then unknown.
		defer time.AfterFunc(h.opts.Wait, func() { cancel(errHeld) }).Stop()
	}
	ln, w := l.join(h)
	select {
	case err := <-w.turn:
		if err != nil {
			return nil, err
		}
	case <-limited.Done():
		l.leave(ln, w)
		return nil, h.gaveUp(ctx, limited)
	}
	next, err := l.head(limited, ln, w, h)
	switch {
	case err == nil:
		l.advance(ln, w, next, h.more)
		return l.granted(ctx, h)
	case ended(limited) != nil:
		l.leave(ln, w)
		return nil, h.gaveUp(ctx, limited)
	}
	if err = h.failed(ctx, err); errors.Is(err, ErrUnavailable) {
		l.disband(ln, w, err)
	} else {
		l.leave(ln, w)
	}
	return nil, err
}

// gaveUp says what ended the waiting.
func (h *Lease) gaveUp(ctx, limited context.Context) error {
	switch {
	case ended(ctx) != nil:
		return errors.Join(fmt.Errorf("%w: waited for %q", ErrNotAcquired, h.name), ended(ctx))
	case errors.Is(context.Cause(limited), ErrClosed):
		return ErrClosed
	}
	return fmt.Errorf("%w: others held %q for %v", ErrNotAcquired, h.name, h.opts.Wait)
}

// head asks until it has the lock. It returns the waiter for whom the process was
// noted along with that, if any.
func (l *Locker) head(ctx context.Context, ln *line, w *waiter, h *Lease) (next *waiter, err error) {
	backoff := &wake.Backoff{}
	live := l.relax(backoff)
	if w.noted {
		if _, err := ln.watch.Wait(ctx, backoff, 0); err != nil {
			return nil, err
		}
	}
	_, err = wake.Until(ctx, ln.watch, backoff, func(ctx context.Context) (time.Duration, bool, error) {
		live = live || l.relax(backoff)
		next = l.behind(ln, w)
		got, err := l.ask(ctx, h, w.age(), next.age())
		return h.left, got, err
	})
	return next, err
}

// relax makes polls rare if messages arrive, and reports whether they do.
func (l *Locker) relax(b *wake.Backoff) bool {
	if !l.bus.Live() {
		return false
	}
	*b = wake.Backoff{Expect: wake.MaxPollLive}
	return true
}

// age is how long w has waited, in milliseconds; -1 if there is no w.
func (w *waiter) age() int64 {
	if w == nil {
		return -1
	}
	return time.Since(w.since).Milliseconds()
}

// behind returns the one behind the head, or nil, as the head is about to ask.
func (l *Locker) behind(ln *line, w *waiter) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.noted = true
	if next := w.place.Next(); next != nil {
		return next.Value.(*waiter)
	}
	return nil
}

// join puts a caller at the end of the line for its lock.
func (l *Locker) join(h *Lease) (*line, *waiter) {
	w := &waiter{since: time.Now(), turn: make(chan error, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.lines[h.key]
	if ln == nil {
		ln = &line{lock: h, watch: l.bus.Watch(h.key)}
		l.lines[h.key] = ln
	}
	w.place = ln.waiters.PushBack(w)
	if ln.waiters.Len() == 1 {
		close(w.turn)
	}
	return ln, w
}

// advance takes the head, who has the lock, out of the line. The process is noted
// for next; if there are more places, whoever is the head now asks at once.
func (l *Locker) advance(ln *line, w, next *waiter, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.noted = next != nil
	if next != nil {
		next.noted = !more
	}
	l.removeLocked(ln, w)
}

// leave takes a caller who waits no longer out of the line.
func (l *Locker) leave(ln *line, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeLocked(ln, w)
}

// disband gives everybody in the line the error that its head got of Redis.
func (l *Locker) disband(ln *line, w *waiter, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := w.place.Next(); e != nil; e = w.place.Next() {
		ln.waiters.Remove(e)
		e.Value.(*waiter).turn <- err
	}
	l.removeLocked(ln, w)
}

// removeLocked takes w out of the line. If it was the head, the next one is; if it
// was the last one, the line is gone.
func (l *Locker) removeLocked(ln *line, w *waiter) {
	head := ln.waiters.Front() == w.place
	ln.waiters.Remove(w.place)
	next := ln.waiters.Front()
	switch {
	case next == nil && l.lines[ln.lock.key] == ln:
		delete(l.lines, ln.lock.key)
		ln.watch.Stop()
		if ln.noted {
			l.leaving.Go(func() { l.withdraw(ln) })
		}
	case next != nil && head:
		close(next.Value.(*waiter).turn)
	}
}

// withdraw takes this process out of the queue in Redis and passes on what was
// reserved for it. If that fails, the reservation and the place lapse.
func (l *Locker) withdraw(ln *line) {
	if l.inherited(ln) {
		return
	}
	ctx := command.WithBudget(context.Background(), l.opts.RedisBudget)
	_ = command.Retry(ctx, func() error {
		_, err := leaveScript.Run(ctx, l.sender, ln.lock.keys[:], l.process, l.prefix, l.everyone, ln.lock.opts.Holders)
		return err
	})
}

// inherited reports whether somebody in this process waits for the lock again,
// and may then have what is noted and reserved.
func (l *Locker) inherited(ln *line) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	heir := l.lines[ln.lock.key]
	if heir != nil {
		heir.noted = true
	}
	return heir != nil
}
