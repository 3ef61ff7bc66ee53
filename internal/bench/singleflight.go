package bench

import (
	"context"

	"golang.org/x/sync/singleflight"
)

// flights is cache-aside inside golang.org/x/sync/singleflight: callers of one process share one load, processes do not.
// As in most uses of that package, the load runs under the first caller's context.
type flights struct {
	aside Strategy
	group singleflight.Group
}

func newSingleflight(site Site) (Strategy, error) {
	aside, err := newNone(site)
	return &flights{aside: aside}, err
}

func (s *flights) Get(ctx context.Context, id string) ([]byte, error) {
	value, err, _ := s.group.Do(id, func() (any, error) { return s.aside.Get(ctx, id) })
	if err != nil {
		return nil, err
	}
	return value.([]byte), nil
}

func (s *flights) Invalidate(ctx context.Context, id string) error {
	return s.aside.Invalidate(ctx, id)
}

func (s *flights) Close(ctx context.Context) error { return s.aside.Close(ctx) }
