package command

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// ErrBudget says that a call has spent its whole Redis budget.
var ErrBudget = errors.New("command: Redis budget spent")

// A budget is a context that knows how much is left, in nanoseconds, of the time
// that commands may take.
type budget struct {
	context.Context
	left   atomic.Int64
	insist bool // do not mind the circuit breaker
}

type budgetKey struct{}

// Value is the parent's, and the budget itself.
func (b *budget) Value(key any) any {
	if key == (budgetKey{}) {
		return b
	}
	return b.Context.Value(key)
}

// WithBudget returns a context under which all commands together may take d:
// the time spent inside Redis commands counts, not the time between them.
func WithBudget(ctx context.Context, d time.Duration) context.Context {
	b := &budget{Context: ctx}
	b.left.Store(int64(d))
	return b
}

// WithOwnBudget is [WithBudget] if ctx has the budget of another call; else it is
// ctx, and the first command has all of the sender's budget.
func WithOwnBudget(ctx context.Context, d time.Duration) context.Context {
	if _, others := ctx.Value(budgetKey{}).(*budget); !others {
		return ctx
	}
	return WithBudget(ctx, d)
}

// Insisting returns a context like that of [WithBudget] under which commands are
// sent even if the circuit breaker is open.
func Insisting(ctx context.Context, d time.Duration) context.Context {
	b := &budget{Context: ctx, insist: true}
	b.left.Store(int64(d))
	return b
}

// Detached returns a context that does not end with ctx and has what is left of
// its budget, but at most d.
func Detached(ctx context.Context, d time.Duration) context.Context {
	if b, ok := ctx.Value(budgetKey{}).(*budget); ok {
		d = min(d, time.Duration(b.left.Load()))
	}
	return Apart(ctx, d)
}

// Apart is [Detached] with a budget of its own, whatever is left of one in ctx:
// that is another call's.
func Apart(ctx context.Context, d time.Duration) context.Context {
	b := &detached{budget{Context: ctx}}
	b.left.Store(int64(d))
	return b
}

// detached is a budget that does not end with its parent.
type detached struct{ budget }

func (*detached) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*detached) Done() <-chan struct{}       { return nil }
func (*detached) Err() error                  { return nil }

// Insists reports whether ctx is of [Insisting].
func Insists(ctx context.Context) bool {
	b, ok := ctx.Value(budgetKey{}).(*budget)
	return ok && b.insist
}
