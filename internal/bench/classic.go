package bench

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/bench/monotime"
)

// The textbook's figures: the lock outlives any load one hopes for, and who lost it looks again after a fixed pause.
const (
	classicLockTTL = 10 * time.Second
	classicPause   = 500 * time.Millisecond
)

// classic is the textbook lock: on a miss SET NX a lock key; the winner loads, SETs the value and DELs the lock, the losers sleep and
// start again. Its flaws are kept: the DEL removes whoever's lock is there, nobody looks again after winning, a pause has one length.
type classic struct{ site Site }

func newClassic(site Site) (Strategy, error) { return &classic{site}, nil }

func (s *classic) Get(ctx context.Context, id string) ([]byte, error) {
	for {
		value, err := s.site.Redis.Get(ctx, s.site.Namespace+id).Bytes()
		if !errors.Is(err, redis.Nil) {
			return value, err
		}
		won, err := s.lock(ctx, id)
		if err != nil {
			return nil, err
		}
		if won {
			return s.load(ctx, id)
		}
		if err := monotime.Sleep(ctx, classicPause); err != nil {
			return nil, err
		}
	}
}

func (s *classic) Invalidate(ctx context.Context, id string) error {
	return s.site.Redis.Del(ctx, s.site.Namespace+id).Err()
}

func (s *classic) Close(context.Context) error { return nil }

func (s *classic) lockKey(id string) string { return s.site.Namespace + "lock:" + id }

func (s *classic) lock(ctx context.Context, id string) (won bool, err error) {
	err = s.site.Redis.SetArgs(ctx, s.lockKey(id), "1", redis.SetArgs{Mode: "NX", TTL: classicLockTTL}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

func (s *classic) load(ctx context.Context, id string) ([]byte, error) {
	defer s.site.Redis.Del(ctx, s.lockKey(id))
	value, err := s.site.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	return value, s.site.Redis.Set(ctx, s.site.Namespace+id, value, s.site.TTL).Err()
}
