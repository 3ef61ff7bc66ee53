package redisembed

import (
	"slices"
	"sync"
	"time"
)

// clockShare bounds what counting down may cost: it is done again when this
// many times its cost has passed.
const clockShare = 20

// clock counts TTLs down by the time that passes on the monotonic clock.
type clock struct {
	countDown func(time.Duration)

	mu    sync.Mutex       // guards the rest
	last  time.Time        // up to here TTLs are counted down
	costs [8]time.Duration // of the last count-downs, a ring
	next  int              // where in costs the next one goes
}

func newClock(countDown func(time.Duration)) *clock {
	return &clock{countDown: countDown, last: time.Now()}
}

// advance brings the TTLs up to now, unless that was done a moment ago.
func (c *clock) advance() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	elapsed := now.Sub(c.last)
	if elapsed < clockShare*c.cost() {
		return
	}
	c.countDown(elapsed)
	c.last = now
	c.costs[c.next] = time.Since(now)
	c.next = (c.next + 1) % len(c.costs)
}

// cost is the least of the last count-downs: the others waited for a lock too.
func (c *clock) cost() time.Duration { return slices.Min(c.costs[:]) }
