package cache

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/semaphore"

	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/flight"
	"github.com/getorprime/getorprime/internal/lease"
	"github.com/getorprime/getorprime/internal/wake"
	"github.com/getorprime/getorprime/loader"
)

// Cache is a read-through cache on one Redis. Its keyspaces share one wake-up
// subscription, one observer and one bound on concurrent loads. It is safe for
// concurrent use.
type Cache struct {
	opts    Options
	store   *entry.Store
	bus     *wake.Bus
	keeper  lease.Keeper
	flights flight.Group[*answer]
	gate    *semaphore.Weighted // nil: no bound
	spaces  loader.Registry[registered]
	tracer  LoadTracer // nil: none
	counts  counters
	cools   cools
	clock   atomic.Uint64                                   // counts instants; see tick
	takes   func(*call, *answer) bool                       // the rule of asOf; only proofs weaken it
	behind  func(*call, context.Context, entry.Token, Kind) // starts a refresh in the background

	mu     sync.Mutex // held by Register
	doubts doubts
	closed atomic.Bool
}

// New returns a cache on client, which stays the caller's to close. It does not
// talk to Redis, and so works when Redis is not there yet. All problems in opts
// are reported at once.
//
// It refuses clients on which an invalidated value could be served: a
// [redis.Ring], a client with client-side caching, and one that reads from
// replicas unless Options.AllowReplicaReads accepts that. On a
// [redis.ClusterClient] without ContextTimeoutEnabled each command takes a
// goroutine, because go-redis then ignores deadlines. A [redis.Client] without
// it is cloned, with its connections but without its hooks.
func New(client redis.UniversalClient, opts *Options) (*Cache, error) {
	o := opts.withDefaults()
	if err := errors.Join(checkClient(client, o.AllowReplicaReads), o.validate()); err != nil {
		return nil, err
	}
	channel := o.Namespace + "getorprime.wake"
	c := &Cache{
		opts:   o,
		store:  entry.NewStore(client, channel, o.RedisBudget),
		takes:  (*call).takes,
		behind: (*call).refreshBehind,
	}
	c.tracer, _ = o.Observer.(LoadTracer)
	c.store.Changed = c.breakerChanged
	c.bus = wake.NewBus(client, channel, &wake.BusOptions{DisablePubSub: o.DisablePubSub, OnMessage: c.heard})
	if o.MaxConcurrentLoads > 0 {
		c.gate = semaphore.NewWeighted(int64(o.MaxConcurrentLoads))
	}
	return c, nil
}

// Close refuses further calls with [ErrClosed], but for invalidations, and waits
// for loads under way.
// When ctx ends first it cancels them, and returns ctx's error once their
// leases are released; a loader that ignores its context is left behind. It may
// be called more than once.
func (c *Cache) Close(ctx context.Context) error {
	c.closed.Store(true)
	landed := c.flights.Close()
	var err error
	select {
	case <-landed:
	case <-ctx.Done():
		err = ctx.Err()
		c.flights.CancelAll(ErrClosed)
		<-landed
	}
	c.keeper.Close()
	c.cools.clear()
	return cmp.Or(err, c.closeBus(ctx))
}

// closeBus ends the subscription. A handshake with a server that does not answer
// cannot be interrupted; it is left to its own timeout when ctx ends.
func (c *Cache) closeBus(ctx context.Context) error {
	closed := make(chan struct{})
	go func() {
		c.bus.Close()
		close(closed)
	}()
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tick returns the next instant of this cache's logical clock (Lamport, "Time,
// clocks, and the ordering of events in a distributed system", 1978). Instants
// of one process are ordered as they were taken, whatever its clocks do.
func (c *Cache) tick() uint64 { return c.clock.Add(1) }

// breakerChanged reports that Redis is left alone, or answers again.
func (c *Cache) breakerChanged(open bool) {
	kind := BreakerClosed
	if open {
		kind = BreakerOpened
	}
	c.notify(context.Background(), Event{Kind: kind})
}

// random returns a number in [0, 1).
func random() float64 { return rand.Float64() }

// heard takes in a message from another process: an invalidation ends a
// cool-down that only this process knows of.
func (c *Cache) heard(m wake.Message) {
	if m.Kind == wake.Invalidated || m.Kind == wake.Stored {
		c.cools.end(m.Topic)
	}
}

// Invalidate deletes the entries of keys, each given with its prefix, in the
// versions their keyspaces name. No call that starts after it returned without
// an error gets a value whose load began before. Call it after the database has
// committed.
//
// It goes on when ctx is cancelled, since the commit has happened, within its
// own Redis budget. Keys that could not be deleted are in the
// [*InvalidateError]. A key without a keyspace is [ErrNoLoader].
func (c *Cache) Invalidate(ctx context.Context, keys ...string) error {
	var all []target
	for _, key := range keys {
		r, id, err := c.lookup(key)
		if err != nil {
			return err
		}
		all = append(all, r.core().targets(id)...)
	}
	return c.invalidate(ctx, all)
}

// lookup finds the keyspace of a key by the longest registered prefix.
func (c *Cache) lookup(key string) (r registered, id string, err error) {
	prefix, r, ok := c.spaces.Lookup(key)
	if !ok {
		return nil, "", noLoader(key)
	}
	if id = key[len(prefix):]; id == "" {
		return nil, "", r.core().emptyID()
	}
	return r, id, nil
}
