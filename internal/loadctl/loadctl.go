// Package loadctl carries what a loader says about its result from the loader to the
// cache: a [Control] travels in the load's context, the loader's calls are written
// into it, and the cache reads the [Control.Outcome] when the loader has returned.
package loadctl

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// Control collects the wishes of one load. The zero value is ready; all methods are
// safe for concurrent use, since a loader may start goroutines.
type Control struct {
	// Previous returns the value the load is about to replace, and false if there is
	// none. The cache sets it before the load begins, and decodes only if asked.
	// Nil means none.
	Previous func() (any, bool)

	mu      sync.Mutex // guards what follows
	ttl     time.Duration
	noStore bool
	err     error
	sealed  bool
}

// Key is the key under which the context of a load has its *[Control].
type Key struct{}

// From returns the Control of the load that ctx belongs to, or nil outside a load.
func From(ctx context.Context) *Control {
	c, _ := ctx.Value(Key{}).(*Control)
	return c
}

// SetTTL makes d the time to live of this result; the last call counts. A d of zero
// or less is a misuse.
func (c *Control) SetTTL(d time.Duration) {
	if d <= 0 {
		c.Misuse(fmt.Errorf("SetTTL(ctx, %v): the TTL must be positive", d))
		return
	}
	c.update(func() { c.ttl = d })
}

// NoStore keeps this result out of the cache.
func (c *Control) NoStore() {
	c.update(func() { c.noStore = true })
}

// Misuse records an error in the loader's use of its context. The first one counts.
func (c *Control) Misuse(err error) {
	c.update(func() { c.err = cmp.Or(c.err, err) })
}

// PreviousValue returns the value the load is about to replace, or false if there is
// none or the load has ended.
func (c *Control) PreviousValue() (any, bool) {
	if c.Previous == nil || c.isSealed() {
		return nil, false
	}
	return c.Previous()
}

// Seal ends the load: later calls, from goroutines the loader left behind, are ignored.
func (c *Control) Seal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealed = true
}

// Outcome returns what the loader asked for: a TTL (0 means none asked for), whether
// the result stays out of the cache, and the first misuse. After [Control.Seal] the
// answer no longer changes.
func (c *Control) Outcome() (ttl time.Duration, noStore bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ttl, c.noStore, c.err
}

func (c *Control) update(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.sealed {
		change()
	}
}

func (c *Control) isSealed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sealed
}
