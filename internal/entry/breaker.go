package entry

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

const (
	// breakAfter is how many commands in a row have to fail before Redis is left
	// alone.
	breakAfter = 5
	// probeAfter is how long it is then left alone before one command is let
	// through to see whether it is back.
	probeAfter = 250 * time.Millisecond
)

// ErrOpen says that Redis failed so often that it is left alone for a moment.
var ErrOpen = errors.New("circuit breaker open: Redis failed several times in a row")

// guarded runs commands unless the circuit breaker is open. What counts as a
// failure is trouble on the way to Redis or a state of the server that passes;
// an answer is a success, an error reply too.
type guarded struct {
	client  processor
	breaker *gobreaker.CircuitBreaker[struct{}]
}

func newGuarded(client processor, changed func(open bool)) guarded {
	return guarded{client, gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name:         "redis",
		Timeout:      probeAfter,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakAfter },
		IsSuccessful: func(err error) bool { return !troubled(err) },
		IsExcluded:   func(err error) bool { return errors.Is(err, errCallerGone) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch {
			case to == gobreaker.StateOpen && from == gobreaker.StateClosed:
				changed(true)
			case to == gobreaker.StateClosed:
				changed(false)
			}
		},
	})}
}

// errCallerGone marks a command that ended because its caller's context did,
// which says nothing about Redis.
var errCallerGone = errors.New("caller gone")

// Process runs cmd, or fails with [ErrOpen].
func (g guarded) Process(ctx context.Context, cmd redis.Cmder) error {
	var got error
	_, err := g.breaker.Execute(func() (struct{}, error) {
		got = g.client.Process(ctx, cmd)
		if got != nil && callerGone(ctx) {
			return struct{}{}, errCallerGone
		}
		return struct{}{}, got
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return ErrOpen
	}
	return got
}

// troubled reports whether err says that Redis does not work just now.
func troubled(err error) bool {
	return mayMend(err) || errors.Is(err, context.DeadlineExceeded)
}

// callerGone reports whether the caller's own context has ended.
func callerGone(ctx context.Context) bool {
	b, ok := ctx.(*bounded)
	if !ok {
		return ctx.Err() != nil
	}
	if b.caller.Err() != nil {
		return true
	}
	at, limited := b.caller.Deadline()
	return limited && !time.Now().Before(at)
}
