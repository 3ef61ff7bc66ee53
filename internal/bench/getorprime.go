package bench

import (
	"context"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/codec"
	"github.com/getorprime/getorprime/loader"
)

// ours is this module's own cache.
type ours struct {
	cache    *cache.Cache
	keyspace *cache.Keyspace[[]byte]
}

// newOurs opens a cache whose policy is the default but for what change changes.
func newOurs(change func(*cache.Policy)) func(Site) (Strategy, error) {
	return func(site Site) (Strategy, error) {
		c, err := cache.New(site.Redis, &cache.Options{Namespace: site.Namespace, RedisBudget: site.Budget})
		if err != nil {
			return nil, err
		}
		policy := &cache.Policy{TTL: site.TTL, LoadTimeout: site.LoadTimeout, Codec: codec.Raw{}}
		if change != nil {
			change(policy)
		}
		keyspace, err := cache.Register(c, "", site.loader(), policy)
		if err != nil {
			return nil, err
		}
		return &ours{c, keyspace}, nil
	}
}

// loader loads a value and says how long it is valid, if that is known.
func (s *Site) loader() loader.Func[[]byte] {
	return func(ctx context.Context, id string) ([]byte, error) {
		value, err := s.Load(ctx, id)
		if d := s.Valid(); d > 0 {
			loader.SetTTL(ctx, d)
		}
		return value, err
	}
}

// fixedTTL gives all values the same time to live, and lets them end together.
func fixedTTL(p *cache.Policy) { p.Jitter, p.EarlyRefresh = -1, -1 }

// muchJitter spreads the ends of values that would come together.
func muchJitter(p *cache.Policy) { p.Jitter, p.EarlyRefresh = 0.5, -1 }

// withStale serves values past their TTL while they are refreshed, or cannot be.
func withStale(p *cache.Policy) {
	p.StaleWhileRevalidate, p.StaleIfError = 10*p.TTL, 10*p.TTL
}

func (s *ours) Get(ctx context.Context, id string) ([]byte, error) {
	return s.keyspace.GetOrPrime(ctx, id)
}

func (s *ours) Invalidate(ctx context.Context, id string) error {
	return s.keyspace.Invalidate(ctx, id)
}

func (s *ours) Close(ctx context.Context) error { return s.cache.Close(ctx) }
