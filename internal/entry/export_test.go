package entry

import (
	"context"
	"time"
)

// What only tests may reach.
var (
	NewClock = newClock
	Clip     = clip
)

// Scripts are the texts of all scripts by the name of their file.
var Scripts = map[string]string{
	"acquire": acquireScript.Src, "extend": extendScript.Src, "fail": failScript.Src, "fill": fillScript.Src,
	"invalidate": invalidateScript.Src, "markstale": markStaleScript.Src, "release": releaseScript.Src,
	"seize": seizeScript.Src, "timedget": timedGetScript.Src,
}

// AcquireSHA is the name under which the server knows ACQUIRE.
var AcquireSHA = acquireScript.SHA

// Encode returns the wire form of a failure.
func (f Failure) Encode() []byte { return f.encode() }

// Shift makes the clock as one of a process whose own clock is d ahead.
func (c *Clock) Shift(d time.Duration) { c.base = c.base.Add(-d) }

// ClockOf returns the clock of the primary that holds key.
func (s *Store) ClockOf(ctx context.Context, key string) *Clock { return s.clockOf(ctx, key) }
