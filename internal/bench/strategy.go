package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Strategy is one way to read through a cache. Its methods are called by many goroutines at once.
//
// To add one: a file with the type and its constructor, and a line in strategies.
type Strategy interface {
	// Get returns the value of id, from the cache or by a load. It returns when ctx ends.
	Get(ctx context.Context, id string) ([]byte, error)
	// Invalidate says that the value of id has changed.
	Invalidate(ctx context.Context, id string) error
	// Close gives back what the constructor took; the client in [Site] stays open.
	Close(ctx context.Context) error
}

// LoadFunc loads the value of id from the data source.
type LoadFunc func(ctx context.Context, id string) ([]byte, error)

// Site is what a strategy is built on.
type Site struct {
	// Redis is the process's client.
	Redis redis.UniversalClient
	// Namespace begins every key that the strategy may touch.
	Namespace string
	// TTL is how long values are kept; Valid, if it is not 0, says how long one that was loaded just now is instead.
	TTL   time.Duration
	Valid func() time.Duration
	// LoadTimeout is how long one load may take.
	LoadTimeout time.Duration
	// Budget is how long a call may spend in Redis before that counts as an outage.
	Budget time.Duration
	// Load loads a value.
	Load LoadFunc
}

// kind is a strategy by name.
type kind struct {
	name  string
	about string
	open  func(Site) (Strategy, error)
	// ours marks the strategy whose broken promises fail the bench.
	ours bool
}

// strategies are all strategies, the plainest first.
var strategies = []kind{
	{name: "none", about: "plain cache-aside: GET, on a miss load and SET", open: newNone},
	{name: "singleflight", about: "cache-aside in x/sync/singleflight: one load per process", open: newSingleflight},
	{name: "classic", about: "the textbook lock: SET NX, a pause of 500 ms for the others, an unchecked DEL", open: newClassic},
	{name: "lock-only", about: "cache-aside under a good distributed lock, but with an unchecked SET", open: newLockOnly},
	{name: "xfetch", about: "probabilistic early refresh without a lease (Vattani et al., 2015)", open: newXFetch},
	{name: "getorprime", about: "this module's cache with its defaults", open: newOurs(nil), ours: true},
	{name: "getorprime-fixed", about: "the same without jitter and early refresh", open: newOurs(fixedTTL), ours: true},
	{name: "getorprime-jitter", about: "the same with 50 % jitter and no early refresh", open: newOurs(muchJitter), ours: true},
	{name: "getorprime+stale", about: "the same with stale-while-revalidate and stale-if-error", open: newOurs(withStale), ours: true},
}

// StrategyNames returns the names of all strategies.
func StrategyNames() []string {
	var names []string
	for _, k := range strategies {
		names = append(names, k.name)
	}
	return names
}

func findKind(name string) (kind, error) {
	for _, k := range strategies {
		if k.name == name {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("no strategy is named %q", name)
}
