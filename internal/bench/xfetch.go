package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// xfetch refreshes values before they end with a probability that rises towards the end, and nobody to say that somebody else does so
// already (Vattani, Chierichetti, Lowenstein, "Optimal probabilistic cache stampede prevention", 2015), with β = 1. A stored value begins
// with how long its load took and when it ends, each in 8 bytes. Refreshes run in the background, as ours do.
type xfetch struct {
	site Site
	wg   sync.WaitGroup
}

const xfetchHead = 16

func newXFetch(site Site) (Strategy, error) { return &xfetch{site: site}, nil }

func (s *xfetch) Get(ctx context.Context, id string) ([]byte, error) {
	stored, err := s.site.Redis.Get(ctx, s.site.Namespace+id).Bytes()
	switch {
	case errors.Is(err, redis.Nil) || err == nil && len(stored) < xfetchHead:
		return s.load(ctx, id)
	case err != nil:
		return nil, err
	}
	delta := time.Duration(binary.BigEndian.Uint64(stored))
	left := time.Until(time.Unix(0, int64(binary.BigEndian.Uint64(stored[8:]))))
	if -float64(delta)*math.Log(1-rand.Float64()) >= float64(left) {
		s.wg.Go(func() { _, _ = s.load(context.WithoutCancel(ctx), id) })
	}
	return stored[xfetchHead:], nil
}

func (s *xfetch) load(ctx context.Context, id string) ([]byte, error) {
	start := time.Now()
	value, err := s.site.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	b := binary.BigEndian.AppendUint64(nil, uint64(time.Since(start)))
	b = binary.BigEndian.AppendUint64(b, uint64(time.Now().Add(s.site.TTL).UnixNano()))
	return value, s.site.Redis.Set(ctx, s.site.Namespace+id, append(b, value...), s.site.TTL).Err()
}

func (s *xfetch) Invalidate(ctx context.Context, id string) error {
	return s.site.Redis.Del(ctx, s.site.Namespace+id).Err()
}

func (s *xfetch) Close(context.Context) error {
	s.wg.Wait()
	return nil
}
