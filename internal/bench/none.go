package bench

import (
	"cmp"
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// none is plain cache-aside: GET, and on a miss load and SET. Nobody waits for anybody, so every caller of a cold key loads.
type none struct{ site Site }

func newNone(site Site) (Strategy, error) { return &none{site}, nil }

func (s *none) Get(ctx context.Context, id string) ([]byte, error) {
	key := s.site.Namespace + id
	value, err := s.site.Redis.Get(ctx, key).Bytes()
	if !errors.Is(err, redis.Nil) {
		return value, err
	}
	if value, err = s.site.Load(ctx, id); err != nil {
		return nil, err
	}
	return value, s.site.Redis.Set(ctx, key, value, cmp.Or(s.site.Valid(), s.site.TTL)).Err()
}

func (s *none) Invalidate(ctx context.Context, id string) error {
	return s.site.Redis.Del(ctx, s.site.Namespace+id).Err()
}

func (s *none) Close(context.Context) error { return nil }
