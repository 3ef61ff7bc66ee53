package entry

import (
	"context"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/getorprime/getorprime/internal/command"
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

// errCallerGone marks a command that ended because its caller's context did,
// which says nothing about Redis.
var errCallerGone = errors.New("caller gone")

// breaker runs commands unless Redis is to be left alone. A command counts once,
// with all its attempts: connections that were cut are no outage if new ones
// work. What counts as a failure is trouble on the way to Redis or a state of
// the server that passes; an answer is a success, an error reply too.
type breaker struct {
	circuit *gobreaker.TwoStepCircuitBreaker[struct{}]
}

func newBreaker(changed func(open bool)) breaker {
	return breaker{gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
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

// run runs a command, or fails with [ErrOpen].
func (b breaker) run(ctx context.Context, command func() error) (err error) {
	done, refused := b.circuit.Allow()
	if refused != nil {
		return ErrOpen
	}
	defer func() {
		if err != nil && callerGone(ctx) {
			done(errCallerGone)
			return
		}
		done(err)
	}()
	return command()
}

// troubled reports whether err says that Redis does not work just now.
func troubled(err error) bool {
	return command.MayMend(err) || errors.Is(err, command.ErrBudget) || errors.Is(err, context.DeadlineExceeded)
}

// callerGone reports whether the caller's own context has ended.
func callerGone(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	at, limited := ctx.Deadline()
	return limited && !time.Now().Before(at)
}
