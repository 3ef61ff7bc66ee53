package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Status is what operators are told about a lock that is held.
type Status struct {
	Name    string
	Holders []Holder
	Waiting int // how many processes wait for it, as far as noted in Redis
}

// Holder is one of those who hold a lock.
type Holder struct {
	// Info is what the holder says of itself, by default its host and process.
	Info string
	// Left is how long the lock lasts unless it is renewed.
	Left time.Duration
	// State is "held"; "resting" after a task with MinHold; or "reserved" for a
	// process that waited and was named as the next, until it takes it.
	State string
}

// Status returns who holds the lock of that name. If nobody does, it has no
// holders. The error is [ErrUnavailable].
func (l *Locker) Status(ctx context.Context, name string) (Status, error) {
	if err := checkName(name); err != nil {
		return Status{}, err
	}
	s, err := l.status(ctx, l.opts.Namespace+"lock:{"+name+"}")
	if err != nil {
		return Status{}, unavailable("inspecting", name, err)
	}
	return s, nil
}

// List returns the locks that are held and whose names begin with prefix, sorted
// by name. It reads all keys of the database step by step with SCAN. The error
// is [ErrUnavailable].
func (l *Locker) List(ctx context.Context, prefix string) ([]Status, error) {
	var keys []string
	var mu sync.Mutex
	scan := func(ctx context.Context, client *redis.Client) error {
		it := client.Scan(ctx, 0, escape(l.opts.Namespace+"lock:{"+prefix)+"*}", 1000).Iterator()
		for it.Next(ctx) {
			mu.Lock()
			keys = append(keys, it.Val())
			mu.Unlock()
		}
		return it.Err()
	}
	if err := l.eachPrimary(ctx, scan); err != nil {
		return nil, unavailable("listing", prefix, err)
	}
	slices.Sort(keys)
	var all []Status
	for _, k := range slices.Compact(keys) {
		s, err := l.status(ctx, k)
		if err != nil {
			return nil, unavailable("inspecting", k, err)
		}
		if len(s.Holders) > 0 {
			all = append(all, s)
		}
	}
	return all, nil
}

func (l *Locker) eachPrimary(ctx context.Context, f func(context.Context, *redis.Client) error) error {
	switch c := l.client.(type) {
	case *redis.Client:
		return f(ctx, c)
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, f)
	}
	return fmt.Errorf("cannot list the keys of a %T", l.client)
}

// escape keeps SCAN from taking parts of a name for a pattern.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}

// status reads one lock: a string with one place, a sorted set with several.
func (l *Locker) status(ctx context.Context, key string) (Status, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(key, l.opts.Namespace+"lock:{"), "}")
	s := Status{Name: name}
	value, err := l.client.Get(ctx, key).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return s, nil
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		s.Holders, err = l.places(ctx, key)
	case err == nil:
		var left time.Duration
		left, err = l.client.PTTL(ctx, key).Result()
		s.Holders = appendHolder(nil, value, left)
	}
	if err != nil {
		return s, err
	}
	waiting, err := l.client.ZCard(ctx, key+waitersSuffix).Result()
	s.Waiting = int(waiting)
	return s, err
}

// places reads the holders of a semaphore.
func (l *Locker) places(ctx context.Context, key string) ([]Holder, error) {
	now, err := l.client.Time(ctx).Result()
	if err != nil {
		return nil, err
	}
	members, err := l.client.ZRangeWithScores(ctx, key, 0, -1).Result()
	var all []Holder
	for _, m := range members {
		value, _ := m.Member.(string)
		all = appendHolder(all, value, time.UnixMilli(int64(m.Score)).Sub(now))
	}
	// Redis orders those of one millisecond by their tokens, by chance that is.
	slices.SortStableFunc(all, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(a.Left, b.Left), cmp.Compare(a.Info, b.Info))
	})
	return all, err
}

// appendHolder adds what value tells, if it has not lapsed.
func appendHolder(all []Holder, value string, left time.Duration) []Holder {
	if left <= 0 || value == "" {
		return all
	}
	h := Holder{Left: left}
	_, h.Info, _ = strings.Cut(value, " ")
	switch value[0] {
	case kindHeld:
		h.State = "held"
	case kindReserved:
		h.State = "reserved"
	case kindResting:
		h.State = "resting"
	default:
		return all
	}
	return append(all, h)
}
