package entry

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrBudget says that a call has spent its whole Redis budget.
var ErrBudget = errors.New("entry: Redis budget spent")

// budgeted is a context whose deadline is "the budget that is left, from now":
// it bounds the time spent inside Redis commands, not the time between them.
// go-redis asks for the deadline at each read and write of a socket, so no
// timer is needed to enforce it.
type budgeted struct {
	context.Context
	left atomic.Int64 // nanoseconds
}

// WithBudget returns a context under which all commands together may take d.
func WithBudget(ctx context.Context, d time.Duration) context.Context {
	b := &budgeted{Context: ctx}
	b.left.Store(int64(d))
	return b
}

// Deadline is the earlier of the parent's deadline and the end of the budget.
func (b *budgeted) Deadline() (time.Time, bool) {
	end := time.Now().Add(time.Duration(b.left.Load()))
	if d, ok := b.Context.Deadline(); ok && d.Before(end) {
		return d, true
	}
	return end, true
}

func (b *budgeted) spend(since time.Time) { b.left.Add(-int64(time.Since(since))) }

func (b *budgeted) spent() bool { return b.left.Load() <= 0 }

// processor is the one thing needed of a client to run a command.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// deadlined returns a way to run commands on client that obeys the deadline of
// a context, which go-redis does by itself only if ContextTimeoutEnabled is
// set. A plain client is cloned, sharing its connections, and the option set on
// the clone. Other clients (a cluster's) run each command in a goroutine that
// is left behind when the deadline passes.
func deadlined(client redis.UniversalClient, budget time.Duration) processor {
	switch c := client.(type) {
	case *redis.Client:
		clone := c.WithTimeout(budget)
		clone.Options().ContextTimeoutEnabled = true
		return clone
	case *redis.ClusterClient:
		if c.Options().ContextTimeoutEnabled {
			return c
		}
	}
	return abandoning{client}
}

// abandoning runs a command in a goroutine and stops waiting at the deadline.
type abandoning struct{ client processor }

func (a abandoning) Process(ctx context.Context, cmd redis.Cmder) error {
	at, ok := ctx.Deadline()
	if !ok {
		return a.client.Process(ctx, cmd)
	}
	done := make(chan error, 1)
	go func() { done <- a.client.Process(context.WithoutCancel(ctx), cmd) }()
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return context.DeadlineExceeded
	}
}
