// Package command sends Redis commands for the cache and for locks: each at most
// once per delivery, within a deadline, and out of a budget that a call spends on
// Redis as a whole. It knows which errors another attempt may mend, and which
// part of a library a Lua script needs.
//
// # One delivery
//
//  1. [Sender.Send] looks what is left of the budget in ctx and gives the command
//     that much time. The caller's cancellation does not end it: a command that
//     was sent cannot be taken back, and its outcome has to be known.
//  2. The command says NoRetry ([Once]), so go-redis sends it a single time:
//     the second delivery of one that creates a lease could bring a dead lease
//     back, and repeating the others has to fit the budget.
//  3. The time it took is charged to the budget.
//  4. [Retry] repeats what may be repeated.
package command

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Sender sends commands to one Redis. It is safe for concurrent use.
type Sender struct {
	client     processor
	redirected bool // a cluster may send a command on to another server
	budget     time.Duration
	ends       *ends
	reached    atomic.Bool
}

// NewSender returns a sender on client. Commands under a context without a
// budget (see [WithBudget]) get one of their own.
func NewSender(client redis.UniversalClient, budget time.Duration) *Sender {
	_, single := client.(*redis.Client)
	return &Sender{client: deadlined(client, budget), redirected: !single, budget: budget, ends: newEnds()}
}

// Send sends one command, once, and charges its time to the budget in ctx. When
// nothing is left of it the error is [ErrBudget].
func (s *Sender) Send(ctx context.Context, cmd redis.Cmder) error {
	left := s.budget
	b, limited := ctx.Value(budgetKey{}).(*budget)
	if limited {
		left = time.Duration(b.left.Load())
	}
	if left <= 0 {
		return ErrBudget
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	start := time.Now()
	err := s.client.Process(s.ends.bound(ctx, start.Add(left)), cmd)
	if limited {
		b.left.Add(-int64(time.Since(start)))
	}
	if err == nil && !s.reached.Load() {
		s.reached.Store(true)
	}
	return err
}

// Reached reports whether the server has ever answered.
func (s *Sender) Reached() bool { return s.reached.Load() }

// processor is the one thing needed of a client to run a command.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// deadlined returns a way to run commands on client that obeys the deadline of
// a context, which go-redis does by itself only if ContextTimeoutEnabled is
// set. Where it is not, a plain client is cloned, sharing its connections but
// not its hooks, and the option set on the clone; other clients (a cluster's)
// run each command in a goroutine that is left behind when the deadline passes.
func deadlined(client redis.UniversalClient, budget time.Duration) processor {
	switch c := client.(type) {
	case *redis.Client:
		if c.Options().ContextTimeoutEnabled {
			return c
		}
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
	case <-t.C:
		return context.DeadlineExceeded
	}
}
