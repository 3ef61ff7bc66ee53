package cache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/getorprime/getorprime/internal/command"
)

// target is an entry that is to be invalidated.
type target struct {
	space *space
	key   string
}

// targets are the entries of id in the current and all old versions.
func (s *space) targets(id string) []target {
	var all []target
	for _, key := range s.versions(id) {
		all = append(all, target{s, key})
	}
	return all
}

// invalidateParallel bounds the round trips under way for one Invalidate.
const invalidateParallel = 16

func (c *Cache) invalidate(ctx context.Context, all []target) error {
	ctx = command.Insisting(context.WithoutCancel(ctx), c.opts.RedisBudget)
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	slots := make(chan struct{}, invalidateParallel)
	for i, t := range all {
		slots <- struct{}{}
		wg.Go(func() {
			errs[i] = t.space.drop(ctx, t.key)
			<-slots
		})
	}
	wg.Wait()
	failed := &InvalidateError{Err: ErrUnavailable}
	for i, err := range errs {
		if err != nil {
			failed.Keys = append(failed.Keys, all[i].key)
			failed.Err = errors.Join(ErrUnavailable, err)
		}
	}
	if len(failed.Keys) > 0 {
		return failed
	}
	return nil
}

// drop invalidates one key.
func (s *space) drop(ctx context.Context, key string) error {
	c := s.cache
	began := c.tick()
	if err := c.store.Invalidate(ctx, key); err != nil {
		c.doubts.add(key, c.tick())
		return err
	}
	c.doubts.remove(key, began)
	s.invalidated(ctx, key)
	return nil
}

// markStale is drop for values that may still be answered while they are replaced.
func (s *space) markStale(ctx context.Context, key string) error {
	ctx = command.Insisting(context.WithoutCancel(ctx), s.cache.opts.RedisBudget)
	if _, err := s.cache.store.MarkStale(ctx, key); err != nil {
		return &InvalidateError{Keys: []string{key}, Err: errors.Join(ErrUnavailable, err)}
	}
	s.invalidated(ctx, key)
	return nil
}

// invalidated follows the reply to an invalidation. Flights under way are left to
// those aboard: whoever comes now starts a load of its own, and needs not wait
// for an old one.
func (s *space) invalidated(ctx context.Context, key string) {
	s.cache.cools.end(key)
	s.cache.flights.Detach(key)
	s.emit(ctx, Invalidated, key, 0, nil)
}

// settle repeats the invalidation of a key that failed before.
func (s *space) settle(ctx context.Context, key string) error {
	if !s.cache.doubts.has(key) {
		return nil
	}
	return s.drop(ctx, key)
}

// doubts are the keys whose invalidation failed. The zero value is ready.
type doubts struct {
	n atomic.Int64 // len(since)

	mu    sync.Mutex        // guards since
	since map[string]uint64 // the instant of the latest failure
}

func (d *doubts) add(key string, at uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since == nil {
		d.since = make(map[string]uint64)
	}
	d.since[key] = at
	d.n.Store(int64(len(d.since)))
}

// remove takes a key out, unless it came in after the instant at which the
// command began that settled it: that may have run before the failed one came.
func (d *doubts) remove(key string, began uint64) {
	if d.n.Load() == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, in := d.since[key]; in && at < began {
		delete(d.since, key)
		d.n.Store(int64(len(d.since)))
	}
}

func (d *doubts) has(key string) bool {
	if d.n.Load() == 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, in := d.since[key]
	return in
}
