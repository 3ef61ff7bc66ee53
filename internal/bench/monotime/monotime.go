// Package monotime reads a clock that every process of one machine shares and that nobody steps: CLOCK_MONOTONIC.
//
// The bench times calls made by many processes against one start instant, and ends of loads in one process against returns of callers in
// another. The monotonic reading inside a [time.Time] cannot cross a process boundary; an [Instant] can, as a number.
package monotime

import (
	"context"
	"time"
)

// Instant is a point on the machine's monotonic clock, in nanoseconds since an arbitrary origin (on Linux: boot).
// It means the same in every process of one machine, and nothing on another.
type Instant int64

// Sub returns how long u lies before t.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }

// Add returns the instant d after t.
func (t Instant) Add(d time.Duration) Instant { return t + Instant(d) }

// SleepUntil returns at t, or at once when t has passed, or with ctx's cause when ctx ends first.
func SleepUntil(ctx context.Context, t Instant) error { return Sleep(ctx, t.Sub(Now())) }

// Sleep returns after d, or with ctx's cause when ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
