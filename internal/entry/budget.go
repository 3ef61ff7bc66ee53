package entry

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrBudget says that a call has spent its whole Redis budget.
var ErrBudget = errors.New("entry: Redis budget spent")

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

// Insisting returns a context like that of [WithBudget] under which commands are
// sent even if the circuit breaker is open.
func Insisting(ctx context.Context, d time.Duration) context.Context {
	b := &budget{Context: ctx, insist: true}
	b.left.Store(int64(d))
	return b
}

// detached returns a context that does not end with ctx and has what is left of
// its budget, but at most d.
func detached(ctx context.Context, d time.Duration) context.Context {
	if b, ok := ctx.Value(budgetKey{}).(*budget); ok {
		d = min(d, time.Duration(b.left.Load()))
	}
	return WithBudget(context.WithoutCancel(ctx), d)
}

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

// send runs one command, once, and charges its time to the budget in ctx.
func (s *Store) send(ctx context.Context, cmd redis.Cmder) error {
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
