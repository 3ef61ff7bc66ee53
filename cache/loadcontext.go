package cache

import (
	"context"
	"time"

	"github.com/getorprime/getorprime/internal/loadctl"
)

// loadContext is the context of a loader: the flight's, with a deadline that the
// keeper of leases enforces, and without a timer of its own.
type loadContext struct {
	context.Context // the flight's
	due             time.Time
	loading         loading
	control         loadctl.Control
}

// Deadline returns the deadline of the load.
func (l *loadContext) Deadline() (time.Time, bool) { return l.due, true }

// Value is the flight's, but for what tells of the load itself.
func (l *loadContext) Value(key any) any {
	switch key {
	case loadingKey{}:
		return &l.loading
	case loadctl.Key{}:
		return &l.control
	}
	return l.Context.Value(key)
}

// loading is a link of the chain of loads a context runs under.
type loading struct {
	cache *Cache
	key   string
	above *loading
}

type loadingKey struct{}

// loadingAbove reports whether ctx belongs to a load of key, or to a load that
// was started by one.
func loadingAbove(ctx context.Context, c *Cache, key string) bool {
	l, _ := ctx.Value(loadingKey{}).(*loading)
	for ; l != nil; l = l.above {
		if l.cache == c && l.key == key {
			return true
		}
	}
	return false
}
