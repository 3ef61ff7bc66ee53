package wake

import (
	"math/rand/v2"
	"time"
)

// The bounds of the poll schedule.
const (
	// MaxPoll is the longest time between two polls while no messages arrive,
	// before jitter.
	MaxPoll = 100 * time.Millisecond
	// MaxPollLive is the same while the subscription is live.
	MaxPollLive = 250 * time.Millisecond

	minPoll     = time.Millisecond
	unknownPoll = 5 * time.Millisecond // first poll when nothing is expected
	maxFirst    = time.Second
	growth      = 1.6
	spread      = 0.25
	leaseSlack  = time.Millisecond
)

// Backoff is the poll schedule of one wait. The first poll comes at nine tenths of
// the expected load, no later than the lease's end: in most waits it never comes,
// because the message does. Each later one waits 1.6 times longer, up to [MaxPoll] or
// [MaxPollLive].
//
// A quarter of each delay, up or down, is left to chance: polls at fixed distances
// lock into phase with loaders and with one another.
//
// A Backoff serves one goroutine and one wait.
type Backoff struct {
	// Expect is how long the awaited load is expected to take from now; zero or
	// less when that is not known. Default: not known, first poll after 5 ms.
	Expect time.Duration
	// Live says that the subscription is live, so that polls are rarer, and the
	// first one may wait for the expected end of the load, up to a second. [Until]
	// keeps it current.
	Live bool
	// Rand returns a number in [0, 1). Default: math/rand/v2.
	Rand func() float64

	last time.Duration // before jitter; 0 before the first poll
}

// Next returns how long to sleep before the next poll. left is the time the awaited
// lease will still live, zero or less when unknown; the result is at most a
// millisecond longer, so that a dead holder is noticed at once.
func (b *Backoff) Next(left time.Duration) time.Duration {
	if b.last == 0 {
		b.last = b.first(left)
	} else {
		b.last = min(time.Duration(float64(b.last)*growth), b.limit())
	}
	d := time.Duration(float64(b.last) * (1 - spread + 2*spread*b.random()))
	if left > 0 {
		d = min(d, left+leaseSlack)
	}
	return d
}

func (b *Backoff) first(left time.Duration) time.Duration {
	d := unknownPoll
	if b.Expect > 0 {
		d = time.Duration(0.9 * float64(min(b.Expect, time.Hour)))
	}
	if left > 0 {
		d = min(d, left)
	}
	// Without messages a load that ends early would go unnoticed till then.
	if left > 0 && b.Live {
		return max(minPoll, min(d, maxFirst))
	}
	return max(minPoll, min(d, b.limit()))
}

func (b *Backoff) limit() time.Duration {
	if b.Live {
		return MaxPollLive
	}
	return MaxPoll
}

func (b *Backoff) random() float64 {
	if b.Rand != nil {
		return b.Rand()
	}
	return rand.Float64()
}
