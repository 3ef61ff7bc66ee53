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
	stale       bool
	fellBack    bool            // stale because a load failed or was slow
	degraded    bool            // loaded without Redis
	traced      context.Context // of the load, if it ran in this process and is traced
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
	joined  bool          // the answer is of a load that was running
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

// found is what a caller's own read of its key came to.
type found struct {
	entry.Entry
	verdict
	at   time.Time // when it was read
	down error     // Redis could not be asked
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
//
// A stale value that the caller read itself it may always take: the read began
// after the caller did.
func (c *call) answer(ctx context.Context) (*answer, error) {
	for round := 1; ; round++ {
		f, err := c.read(ctx)
		if err != nil {
			c.count(ctx, round, CallFailed)
			return nil, err
		}
		if a, kind := c.atOnce(ctx, &f); a != nil {
			c.count(ctx, round, kind)
			return a, nil
		}
		if err := c.mayBoard(ctx); err != nil {
			c.count(ctx, round, CallFailed)
			return nil, err
		}
		c.count(ctx, round, Miss)
		if a, err := c.await(ctx, &f); a != nil || err != nil {
			return a, err
		}
	}
}

// await waits for the process's flight. It returns nothing when the caller has
// to go round again.
func (c *call) await(ctx context.Context, f *found) (*answer, error) {
	read, down := f.verdict, f.down
	a, joined, err := c.cache.flights.DoWithin(ctx, c.patience(f), c.key, func(fl *flight.Flight[*answer]) (*answer, bool) {
		a := c.prime(fl, read, down)
		return a, a != nil
	})
	switch {
	case errors.Is(err, flight.ErrLate):
		return c.fallBack(ctx, f, err), nil
	case err != nil:
		return nil, grounded(ctx, err)
	case c.failed(a.err) && c.servable(f):
		return c.fallBack(ctx, f, a.err), nil
	case !c.cache.takes(c, a):
		return nil, nil
	}
	if a.traced != nil {
		c.shared(ctx, a.traced)
	}
	c.joined = joined
	return a, nil
}

// shared tells the tracer whose load the caller has the answer of.
func (c *call) shared(ctx, load context.Context) {
	defer c.cache.survive(ctx, "Shared")
	c.cache.tracer.Shared(ctx, load)
}

// patience is how long to wait for a load: without end, unless there is a stale
// value to answer with.
func (c *call) patience(f *found) time.Duration {
	if c.servable(f) {
		return c.policy.SoftTimeout
	}
	return 0
}

// servable reports whether f holds a stale value that may stand in for a load.
func (c *call) servable(f *found) bool {
	now := f.Now + time.Since(f.at).Milliseconds()
	return f.verdict == fallback && now < f.HardUntil
}

// failed reports whether err is a failure that a stale value makes up for.
func (c *call) failed(err error) bool {
	return err != nil && !errors.Is(err, loader.ErrNotFound) && !errors.Is(err, ErrClosed)
}

// fallBack answers with the stale value in f.
func (c *call) fallBack(ctx context.Context, f *found, why error) *answer {
	c.emit(ctx, StaleFallback, c.key, time.Duration(f.Now-f.FreshUntil)*time.Millisecond, why)
	return &answer{Entry: f.Entry, source: FromRedis, stored: true, stale: true, fellBack: true}
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
// That Redis cannot be asked is an error or a finding, as the policy says.
func (c *call) read(ctx context.Context) (found, error) {
	f := found{verdict: missing, at: time.Now()}
	err := c.settle(ctx, c.key)
	if err == nil && !c.refresh {
		f.Entry, err = c.cache.store.Get(ctx, c.key)
	}
	if err != nil {
		f.down = c.trouble(ctx, "reading", err)
		if c.policy.OnOutage == FailFast || !errors.Is(f.down, ErrUnavailable) {
			return f, f.down
		}
		return f, nil
	}
	if !c.refresh {
		f.verdict = c.judgeOwn(ctx, &f.Entry)
	}
	return f, nil
}

// judgeOwn is judge for entries of this keyspace's type: others are a miss.
func (c *call) judgeOwn(ctx context.Context, e *entry.Entry) verdict {
	v := judge(e, &c.policy)
	if v == missing && e.Foreign {
		c.emit(ctx, Undecodable, c.key, 0, nil)
	}
	if v != fresh && v != stale && v != fallback {
		return v
	}
	if e.Schema != c.schema {
		c.spurn(ctx, e, nil)
	}
	if slices.Contains(c.bad, e.Generation) {
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

// atOnce answers from what was read, if that answers, and starts a refresh in
// the background where it is time for one.
func (c *call) atOnce(ctx context.Context, f *found) (*answer, Kind) {
	e := &f.Entry
	switch f.verdict {
	case fresh:
		if !resting(e) && early(e, c.policy.EarlyRefresh, 1-random()) {
			c.cache.behind(c, ctx, e.Generation, RefreshedEarly)
		}
		return &answer{Entry: *e, source: FromRedis, stored: true}, Hit
	case stale:
		if !resting(e) {
			c.cache.behind(c, ctx, e.Generation, Refreshed)
		}
		return &answer{Entry: *e, source: FromRedis, stored: true, stale: true}, StaleHit
	case fallback:
		if resting(e) && e.Lease.IsZero() {
			return &answer{Entry: *e, source: FromRedis, stored: true, stale: true, fellBack: true}, StaleHit
		}
	case gone:
		return &answer{Entry: *e, source: FromRedis, stored: true, err: loader.ErrNotFound}, NegativeHit
	case cooling:
		return &answer{source: FromRedis, err: c.failure(e)}, CoolingHit
	}
	if err, ok := c.cache.cools.alone(c.key); ok {
		return &answer{source: FromRedis, err: err, degraded: f.down != nil}, CoolingHit
	}
	return nil, Miss
}

// refreshBehind replaces the value of generation gen in the background, unless that
// is being done, here or elsewhere: the lease makes it one refresh over all
// processes, and naming the generation makes it one for each value.
func (c *call) refreshBehind(ctx context.Context, gen entry.Token, kind Kind) {
	if c.load == nil || loadingAbove(ctx, c.cache, c.key) {
		return
	}
	own := c.clone() // the caller goes on at once
	if c.cache.flights.Go(ctx, c.key, func(fl *flight.Flight[*answer]) (*answer, bool) {
		return own.primeBehind(fl, gen), true
	}) {
		c.emit(ctx, kind, c.key, 0, nil)
	}
}

// clone is the call as it is now.
func (c *call) clone() call {
	own := *c
	own.bad = slices.Clone(c.bad)
	return own
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
	var broken *flight.BrokenError
	switch {
	case errors.Is(err, flight.ErrClosed):
		return ErrClosed
	case errors.As(err, &broken):
		return &loader.PanicError{Value: broken, Stack: broken.Stack}
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

// left returns how long e stays fresh; negative: how long it has not been.
func left(e *entry.Entry) time.Duration {
	return time.Duration(e.FreshUntil-e.Now) * time.Millisecond
}

// age returns how long ago e was written.
func age(e *entry.Entry) time.Duration {
	return max(0, time.Duration(e.Now-e.WrittenAt)*time.Millisecond)
}
