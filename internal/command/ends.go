package command

import (
	"context"
	"sync"
	"time"
)

// bounded is a context for one command. Reads and writes of a socket go by
// Deadline; waiting for a connection and making one, by Done.
type bounded struct {
	context.Context // ends at the deadline, or a little later
	caller          context.Context
	at              time.Time
}

// Deadline is the exact end.
func (b *bounded) Deadline() (time.Time, bool) { return b.at, true }

// Value is the caller's.
func (b *bounded) Value(key any) any { return b.caller.Value(key) }

// endStep is how much later than its deadline a context of ends may end.
const endStep = 50 * time.Millisecond

// ends makes contexts that end at a deadline. All that end within endStep share
// one timer: to start and stop one for each command costs a sixth of the
// command's own CPU time.
type ends struct {
	base time.Time

	mu   sync.Mutex                // guards live
	live map[int64]context.Context // by the end, in steps from base
}

func newEnds() *ends { return &ends{base: time.Now(), live: map[int64]context.Context{}} }

// bound returns a context for one command that ends at the given instant, or
// when the caller's deadline passes. The caller's cancellation does not end it:
// a command cannot be taken back.
func (e *ends) bound(caller context.Context, at time.Time) context.Context {
	if d, ok := caller.Deadline(); ok && d.Before(at) {
		at = d
	}
	return &bounded{e.after(at), caller, at}
}

func (e *ends) after(at time.Time) context.Context {
	n := int64(at.Sub(e.base)/endStep) + 1
	e.mu.Lock()
	defer e.mu.Unlock()
	ctx, ok := e.live[n]
	if !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(context.Background(), e.base.Add(time.Duration(n)*endStep))
		context.AfterFunc(ctx, func() {
			cancel()
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.live, n)
		})
		e.live[n] = ctx
	}
	return ctx
}
