// Package wake is waiting, written once for cache entries and locks.
//
// # One wait
//
// A process that finds a key being loaded elsewhere does this:
//
//  1. It registers interest in the key: [Bus.Watch].
//  2. It asks Redis for the key's state. Registering comes first, so an answer
//     stored between the two is either seen by the question or announced to the
//     watch; there is no gap to fall into.
//  3. Told to wait, it sleeps until a message names the key, the next poll of its
//     [Backoff] is due, or its context ends, and asks again. [Until] is this loop.
//  4. It stops the watch.
//
// # Polling is the mechanism, the message a hint
//
// Redis Pub/Sub delivers at most once and only to whoever is connected. Nothing
// here depends on a message: a lost one, a dead subscriber or a crashed loader
// costs one poll. A message only makes the waiter ask sooner, and a message that
// means nothing costs one question. Where Pub/Sub is refused or turned off, every
// wait is served by polls alone, and [Woken] tells which of the two it was.
//
// # One subscription
//
// All watches of a [Bus] share one subscription to one channel. It is opened at
// the first watch, kept by a goroutine the Bus owns, and given up when nobody has
// watched for a while, so an idle process holds no connection.
package wake

import (
	"context"
	"fmt"
	"time"
)

// Woken says what made a waiter ask the question that ended its wait.
type Woken int

// The ways a wait ends.
const (
	// ByNothing means that the first question was already answered.
	ByNothing Woken = iota
	// ByMessage means that a message, or a (re)established subscription, came
	// before the poll was due.
	ByMessage
	// ByPoll means that the poll was due first.
	ByPoll
)

// String returns "nothing", "message" or "poll", fit for a metric's label.
func (w Woken) String() string {
	switch w {
	case ByMessage:
		return "message"
	case ByPoll:
		return "poll"
	default:
		return "nothing"
	}
}

// Until calls try, and again after every message for w and every poll of b, until
// try is done, try fails, or ctx ends. It returns what prompted the last try and,
// in this order of precedence: try's own error, nil when try is done, or an error
// that wraps both ctx.Err() and the context's cause.
//
// try reports in left how long the lease it waits for will still live, zero when
// that is unknown; the next poll is no later than a millisecond after it. Until
// returns at once when ctx ends during a sleep; it cannot interrupt try, which gets
// ctx for that. Until neither starts nor stops w.
func Until(
	ctx context.Context, w *Watch, b *Backoff,
	try func(context.Context) (left time.Duration, done bool, err error),
) (Woken, error) {
	var a alarm
	defer a.stop()
	for woken := ByNothing; ; {
		if ctx.Err() != nil {
			return woken, ended(ctx)
		}
		w.forget()
		left, done, err := try(ctx)
		if err != nil || done {
			return woken, err
		}
		b.Live = w.bus.Live()
		woken = w.sleep(ctx, a.after(b.Next(left)))
	}
}

// Wait sleeps once as [Until] does between two questions: for a message, the poll
// that b says, or the end of ctx, which is the only error. A message that came
// since the watch began or the last sleep is not lost: then it returns at once.
func (w *Watch) Wait(ctx context.Context, b *Backoff, left time.Duration) (Woken, error) {
	var a alarm
	defer a.stop()
	b.Live = w.bus.Live()
	woken := w.sleep(ctx, a.after(b.Next(left)))
	if ctx.Err() != nil {
		return woken, ended(ctx)
	}
	return woken, nil
}

// forget drops a signal that came before the question about to be asked: its answer
// covers whatever the signal was about.
func (w *Watch) forget() {
	select {
	case <-w.c:
	default:
	}
}

// sleep returns when a message, the poll or the end of ctx comes.
func (w *Watch) sleep(ctx context.Context, poll <-chan time.Time) Woken {
	select {
	case <-w.c:
		return ByMessage
	case <-poll:
		return ByPoll
	case <-ctx.Done():
		return ByNothing
	}
}

// ended describes the end of ctx so that errors.Is finds ctx.Err() and the cause.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == err {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// alarm is a timer made at its first use: a wait that is over at the first question
// pays for none.
type alarm struct{ timer *time.Timer }

func (a *alarm) after(d time.Duration) <-chan time.Time {
	if a.timer == nil {
		a.timer = time.NewTimer(d)
	} else {
		a.timer.Reset(d)
	}
	return a.timer.C
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
