package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/flight"
	"github.com/getorprime/getorprime/loader"
)

// answer is what a flight or a read came to. It is shared, and never changed.
type answer struct {
	entry.Entry // Value or Negative with its payload; times as the server stamped them, if stored
	source      Source
	stored      bool
	joined      bool
	err         error

	// asOf is the instant as of which the answer was true. Only a caller that
	// started before may take it. began is the instant before the load began.
	asOf, began uint64
}

// call is one caller's request for one key.
type call struct {
	*space
	id, key string
	load    loadFunc
	start   uint64
	refresh bool          // the load has to begin after start
	bad     []entry.Token // generations whose payloads did not decode
}

func (s *space) newCall(ctx context.Context, id string, load loadFunc) (*call, error) {
	if s.cache.closed.Load() {
		return nil, ErrClosed
	}
	key, err := s.key(id)
	if err != nil {
		return nil, err
	}
	return &call{space: s, id: id, key: key, load: load, start: s.cache.tick()}, nil
}

// answer gets the answer for one caller: from Redis if it is there, else from
// the process's flight for the key.
//
// An answer from a flight is taken only if its instant is later than the
// caller's start; else the caller goes round again. The second flight began
// after the first had ended, which was after the caller's start, and so did
// whatever it answers with: once is enough.
//
//  1. A flight loads v1.
//  2. Its FILL is stored; the reply is under way.
//  3. The database becomes v2; somebody invalidates.
//  4. A caller starts, misses, and joins the flight.
//  5. The reply arrives: STORED. The caller must not be given v1.
func (c *call) answer(ctx context.Context) (*answer, error) {
	for round := 1; ; round++ {
		read, v, err := c.read(ctx)
		if err != nil {
			c.count(ctx, round, CallFailed)
			return nil, err
		}
		if a, kind := c.judged(&read, v); a != nil {
			c.count(ctx, round, kind)
			return a, nil
		}
		if err := c.mayBoard(ctx); err != nil {
			c.count(ctx, round, CallFailed)
			return nil, err
		}
		c.count(ctx, round, Miss)
		a, joined, err := c.cache.flights.Do(ctx, c.key, func(f *flight.Flight[*answer]) *answer {
			return c.prime(f, v == absent)
		})
		if err != nil {
			return nil, grounded(ctx, err)
		}
		if c.cache.takes(c, a) {
			got := *a
			got.joined = joined
			return &got, nil
		}
	}
}

// takes reports whether a is young enough for this caller.
func (c *call) takes(a *answer) bool {
	if c.refresh {
		return c.start < a.began
	}
	return c.start < a.asOf
}

// read reads the entry. A refresh has no use for what it finds; nor has a call
// whose key was not invalidated when it should have been, until that is done.
func (c *call) read(ctx context.Context) (entry.Entry, verdict, error) {
	err := c.settle(ctx, c.key)
	if err != nil {
		return entry.Entry{}, missing, c.unavailable(ctx, "invalidating", err)
	}
	if c.refresh {
		return entry.Entry{}, missing, nil
	}
	e, err := c.cache.store.Get(ctx, c.key)
	if err != nil {
		return e, missing, c.trouble(ctx, "reading", err)
	}
	return e, c.judgeOwn(ctx, &e), nil
}

// judgeOwn is judge for entries of this keyspace's type: others are a miss.
func (c *call) judgeOwn(ctx context.Context, e *entry.Entry) verdict {
	v := judge(e)
	switch {
	case v == missing && e.Foreign:
		c.emit(ctx, Undecodable, c.key, 0, nil)
	case v == fresh && e.Schema != c.schema:
		c.spurn(ctx, e, nil)
	}
	if v == fresh && slices.Contains(c.bad, e.Generation) {
		return missing
	}
	return v
}

// spurn notes that the value in e cannot be decoded.
func (c *call) spurn(ctx context.Context, e *entry.Entry, err error) {
	if !slices.Contains(c.bad, e.Generation) {
		c.bad = append(c.bad, e.Generation)
		c.emit(ctx, Undecodable, c.key, 0, err)
	}
}

// judged answers from what was read, if that answers.
func (c *call) judged(e *entry.Entry, v verdict) (*answer, Kind) {
	switch v {
	case fresh:
		return &answer{Entry: *e, source: FromRedis, stored: true}, Hit
	case gone:
		return &answer{Entry: *e, source: FromRedis, stored: true, err: loader.ErrNotFound}, NegativeHit
	case cooling:
		return &answer{source: FromRedis, err: c.failure(e)}, CoolingHit
	}
	if err, ok := c.cache.cools.alone(c.key); ok {
		return &answer{source: FromRedis, err: err}, CoolingHit
	}
	return nil, Miss
}

// count says how the call went, by its first round.
func (c *call) count(ctx context.Context, round int, k Kind) {
	if round == 1 {
		c.emit(ctx, k, c.key, 0, nil)
	}
}

// failure returns the error of the load that e tells of: the loader's own if it
// ran in this process.
func (c *call) failure(e *entry.Entry) error {
	if err, ok := c.cache.cools.under(c.key, e.Generation); ok {
		return err
	}
	f := e.Failure()
	return remote(f.Message, f.Panic)
}

func remote(message string, panicked bool) error {
	return &loader.RemoteError{Message: message, Panic: panicked}
}

// mayBoard refuses calls that must not wait for a load.
func (c *call) mayBoard(ctx context.Context) error {
	switch {
	case c.cache.closed.Load():
		return ErrClosed
	case c.load == nil:
		return noLoader(c.prefix)
	case loadingAbove(ctx, c.cache, c.key):
		return fmt.Errorf("%w: a key of %q", ErrReentrant, c.prefix)
	}
	return ended(ctx)
}

// grounded says why a caller has no answer of its flight.
func grounded(ctx context.Context, err error) error {
	if errors.Is(err, flight.ErrClosed) {
		return ErrClosed
	}
	return ended(ctx)
}

func noLoader(key string) error {
	return fmt.Errorf("%w for %q: register one for its prefix, or use GetOrLoad", ErrNoLoader, key)
}

// trouble explains an error of the store.
func (c *call) trouble(ctx context.Context, doing string, err error) error {
	var wrong *entry.WrongTypeError
	if errors.As(err, &wrong) {
		return &KeyError{Key: c.prefix + c.id, Prefix: c.prefix, Reason: "holds a " + wrong.Type + " in Redis, not a cache entry: delete it or choose another prefix"}
	}
	return c.unavailable(ctx, doing, err)
}

// left returns how long e stays fresh.
func left(e *entry.Entry) time.Duration {
	return max(0, time.Duration(e.FreshUntil-e.Now)*time.Millisecond)
}

// age returns how long ago e was written.
func age(e *entry.Entry) time.Duration {
	return max(0, time.Duration(e.Now-e.WrittenAt)*time.Millisecond)
}

// loading is a link of the chain of loads a context runs under.
type loading struct {
	cache *Cache
	key   string
	above *loading
}

type loadingKey struct{}

// underLoad marks ctx as belonging to the load of key.
func underLoad(ctx context.Context, c *Cache, key string) context.Context {
	above, _ := ctx.Value(loadingKey{}).(*loading)
	return context.WithValue(ctx, loadingKey{}, &loading{c, key, above})
}

// loadingAbove reports whether ctx belongs to a load of key, or to a load that
// was started by one.
func loadingAbove(ctx context.Context, c *Cache, key string) bool {
	l, _ := ctx.Value(loadingKey{}).(*loading)
	for ; l != nil; l = l.above {
		if l.cache == c && l.key == key {
			return true
		}
	}
	return false
}
