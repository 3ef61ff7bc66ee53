package bench

import (
	"context"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/codec"
	"github.com/getorprime/getorprime/loader"
)

// patience is the Redis budget of the bench's caches. One load is promised while Redis answers; with hundreds of processes on a few
// processors the default budget would take a late turn at the processor for a server that is down.
const patience = loadSlack

// ours is this module's own cache.
type ours struct {
	cache    *cache.Cache
	keyspace *cache.Keyspace[[]byte]
}

func newOurs(site Site) (Strategy, error) {
	c, err := cache.New(site.Redis, &cache.Options{Namespace: site.Namespace, RedisBudget: patience})
	if err != nil {
		return nil, err
	}
	policy := &cache.Policy{TTL: site.TTL, LoadTimeout: site.LoadTimeout, Codec: codec.Raw{}}
	keyspace, err := cache.Register(c, "", loader.Func[[]byte](site.Load), policy)
	if err != nil {
		return nil, err
	}
	return &ours{c, keyspace}, nil
}

func (s *ours) Get(ctx context.Context, id string) ([]byte, error) {
	return s.keyspace.GetOrPrime(ctx, id)
}

func (s *ours) Close(ctx context.Context) error { return s.cache.Close(ctx) }
