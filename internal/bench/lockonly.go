package bench

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/lock"
)

// lockOnly is cache-aside under a distributed lock, a good one: who misses acquires it, looks again, and else loads and SETs. It loads once,
// but nothing ties what is stored to the lock: a load that began before an invalidation stores what it read after it.
type lockOnly struct {
	site   Site
	locker *lock.Locker
}

func newLockOnly(site Site) (Strategy, error) {
	locker, err := lock.New(site.Redis, &lock.Options{Namespace: site.Namespace, TTL: leaseSlack, RedisBudget: site.Budget})
	return &lockOnly{site, locker}, err
}

func (s *lockOnly) Get(ctx context.Context, id string) ([]byte, error) {
	value, err := s.site.Redis.Get(ctx, s.site.Namespace+id).Bytes()
	if !errors.Is(err, redis.Nil) {
		return value, err
	}
	lease, err := s.locker.Acquire(ctx, id, nil)
	if err != nil {
		return nil, err
	}
	defer lease.Release(ctx)
	value, err = s.site.Redis.Get(ctx, s.site.Namespace+id).Bytes()
	if !errors.Is(err, redis.Nil) {
		return value, err
	}
	if value, err = s.site.Load(ctx, id); err != nil {
		return nil, err
	}
	return value, s.site.Redis.Set(ctx, s.site.Namespace+id, value, s.site.TTL).Err()
}

func (s *lockOnly) Invalidate(ctx context.Context, id string) error {
	return s.site.Redis.Del(ctx, s.site.Namespace+id).Err()
}

func (s *lockOnly) Close(ctx context.Context) error { return s.locker.Close(ctx) }
