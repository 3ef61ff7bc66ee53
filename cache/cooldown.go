package cache

import (
	"sync"
	"time"

	"github.com/getorprime/getorprime/internal/entry"
)

// maxCools bounds the failures a process remembers by itself.
const maxCools = 4096

// cools remembers this process's own failed loads while they cool down: for the
// error as the loader returned it, of which Redis keeps only the text, and for
// the cool-down itself where Redis could not be told of it.
type cools struct {
	mu sync.Mutex // guards what follows
	by map[string]cool
}

type cool struct {
	token entry.Token // of the lease under which the load failed; zero: Redis does not know
	err   error
	until time.Time
	// failures in a row, where Redis does not count them
	failures uint8
}

func (c *cools) begin(key string, f cool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = make(map[string]cool)
	}
	if len(c.by) >= maxCools {
		c.sweepLocked()
	}
	c.by[key] = f
}

// sweepLocked removes what is over and, if that is little, something, so that it
// need not be done for each failure.
func (c *cools) sweepLocked() {
	now := time.Now()
	for key, f := range c.by {
		if !now.Before(f.until) {
			delete(c.by, key)
		}
	}
	for key := range c.by {
		if len(c.by) <= maxCools*3/4 {
			return
		}
		delete(c.by, key)
	}
}

// under returns the error of the load that failed under token.
func (c *cools) under(key string, token entry.Token) (error, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.by[key]
	return f.err, ok && f.token == token
}

// alone returns the error of a load whose cool-down Redis does not know of.
func (c *cools) alone(key string) (error, bool) {
	f, ok := c.get(key)
	return f.err, ok && f.token.IsZero() && time.Now().Before(f.until)
}

func (c *cools) get(key string) (cool, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.by[key]
	return f, ok
}

// failures returns how many loads in a row failed that Redis does not know of.
func (c *cools) failures(key string) uint8 {
	f, _ := c.get(key)
	return min(f.failures, 254)
}

func (c *cools) end(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.by, key)
}

func (c *cools) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.by)
}
