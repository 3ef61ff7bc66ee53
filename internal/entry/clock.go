package entry

import (
	"sync"
	"time"
)

const (
	// resync is how often a clock is compared again, in step with a read.
	resync = 30 * time.Second
	// drift is how far two clocks may part per second: 200 ppm, twice what NTP
	// assumes of a bad crystal (RFC 5905, section 10).
	drift = 200 * time.Microsecond
)

// Clock knows how far one primary's clock is ahead of this process's monotonic
// clock. Each reply that carries the server's time bounds the offset from both
// sides: the server looked at its clock after the command was sent and before
// the reply arrived (Cristian, "Probabilistic clock synchronization", 1989).
// Bounds are intersected, widened by [drift] as they age, and replaced when
// they contradict each other, as after a failover or a stepped clock.
//
// It decides freshness, never safety.
type Clock struct {
	base time.Time

	mu     sync.Mutex // guards what follows
	lo, hi time.Duration
	at     time.Time // when the bounds were last confirmed; zero: unknown
	since  time.Time // replies to commands sent earlier are not believed
}

func newClock() *Clock { return &Clock{base: time.Now()} }

// Observe takes in that the server's clock read t, to a precision of step, at
// some instant between sent and now. A reply to a command that was sent before
// the clock was last forgotten may come from the old primary, and is ignored.
func (c *Clock) Observe(t time.Time, step time.Duration, sent time.Time) {
	now := time.Now()
	server := time.Duration(t.UnixNano())
	lo, hi := server-now.Sub(c.base), server+step-sent.Sub(c.base)
	c.mu.Lock()
	defer c.mu.Unlock()
	if sent.Before(c.since) {
		return
	}
	if !c.at.IsZero() {
		slack := time.Duration(now.Sub(c.at).Seconds() * float64(drift))
		if l, h := max(lo, c.lo-slack), min(hi, c.hi+slack); l <= h {
			lo, hi = l, h
		}
	}
	c.lo, c.hi, c.at = lo, hi, now
}

// Now returns the server's time in milliseconds since the Unix epoch, and
// whether it is known at all.
func (c *Clock) Now() (ms int64, known bool) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return 0, false
	}
	return (now.Sub(c.base) + (c.lo+c.hi)/2).Milliseconds(), true
}

// Due reports whether the clock is unknown or was not confirmed for a while.
func (c *Clock) Due() bool {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at.IsZero() || now.Sub(c.at) > resync
}

// Forget makes the clock unknown: the primary may have changed.
func (c *Clock) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.since = time.Time{}, time.Now()
}
