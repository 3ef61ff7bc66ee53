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
	// TTL is how long values are kept.
	TTL time.Duration
	// LoadTimeout is how long one load may take.
	LoadTimeout time.Duration
	// Load loads a value.
	Load LoadFunc
}

// kind is a strategy by name.
type kind struct {
	name string
	open func(Site) (Strategy, error)
	// ours marks the strategy whose broken promises fail the bench.
	ours bool
}

// strategies are all strategies, the plainest first.
var strategies = []kind{
	{name: "none", open: newNone},
	{name: "singleflight", open: newSingleflight},
	{name: "classic", open: newClassic},
	{name: "getorprime", open: newOurs, ours: true},
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
