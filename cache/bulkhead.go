package cache

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/semaphore"

	"github.com/getorprime/getorprime/internal/lease"
)

// tryEnter takes a place in each of the bulkheads, the keyspace's and the cache's,
// if there is one now.
func (s *space) tryEnter() bool {
	for i, gate := range s.gates {
		if !gate.TryAcquire(1) {
			leave(s.gates[:i])
			return false
		}
	}
	return true
}

// leave gives places back.
func leave(gates []*semaphore.Weighted) {
	for _, g := range gates {
		g.Release(1)
	}
}

// enter takes the places, waiting for them, first come, first served, and keeps
// the lease meanwhile. A refresh that nobody waits for gives up at once.
func (a *attempt) enter() error {
	if a.behind {
		return ErrOverloaded
	}
	g := a.lease()
	g.Holder = waiting{g.Holder}
	defer a.cache.keeper.Keep(g).Stop()
	ctx, cancel := context.WithTimeoutCause(a.flight.Context(), a.policy.LoadTimeout, ErrOverloaded)
	defer cancel()
	for i, gate := range a.gates {
		if gate.Acquire(ctx, 1) != nil {
			leave(a.gates[:i])
			return a.refused(context.Cause(ctx))
		}
	}
	return nil
}

// refused tells why there was no place.
func (a *attempt) refused(cause error) error {
	if !errors.Is(cause, ErrOverloaded) {
		return cause
	}
	a.emit(a.flight.Context(), Overloaded, a.key, a.policy.LoadTimeout, cause)
	return fmt.Errorf("%w: waited %v to load a key of %q", cause, a.policy.LoadTimeout, a.prefix)
}

// waiting is how the lease is kept before the load: the keeping that follows tells
// of its loss.
type waiting struct{ lease.Holder }

// Lost tells nobody.
func (waiting) Lost(error) {}
