package cache

import (
	"context"
	"sync/atomic"
	"time"
)

// Kind is what happened.
type Kind int

// The kinds of event. Each call of a keyspace comes to exactly one of the first
// six by its first read; the others tell what was done for it.
const (
	Hit            Kind = iota // a fresh value was found
	StaleHit                   // a stale value was found that is an answer at once
	NegativeHit                // a fresh "not found" was found by the first read
	CoolingHit                 // the first read found a failed load's cool-down
	Miss                       // the caller had to wait for a load, its own or another's
	CallFailed                 // Redis could not be read, or the key not be used
	LeaseGranted               // this process got the lease of a key
	LeaseLost                  // the lease was lost while the load ran
	Loaded                     // a loader returned a value; Duration is its time
	NotFound                   // a loader returned "not found"; Duration is its time
	LoadFailed                 // a loader returned an error or was given up; Err says which
	LoadPanicked               // a loader panicked or called runtime.Goexit
	LoadCanceled               // nobody waited for the load any more
	Stored                     // a value or "not found" was stored
	StoreRefused               // the lease had been lost: what was loaded was not stored
	StoreFailed                // Redis could not store it; Err says why
	WokenMessage               // a wait for another process ended by a message; Duration is the wait
	WokenPoll                  // a wait for another process ended by a poll; Duration is the wait
	WaitTimedOut               // a wait for another process was given up
	Overloaded                 // a load found no place among the concurrent ones in time
	Refreshed                  // a refresh of a stale value was started in the background
	RefreshedEarly             // the same, of a value that was still fresh
	StaleFallback              // a stale value stood in for a load; Duration is how stale, Err why
	Degraded                   // a load without Redis was started
	BreakerOpened              // Redis failed so often that it is left alone for a moment
	BreakerClosed              // Redis answers again
	Undecodable                // an entry was foreign or could not be decoded, and counts as a miss
	ValueSet                   // a value was written by Set
	Invalidated                // a key was invalidated by this process
	kinds
)

var kindNames = [kinds]string{
	"hit", "stale_hit", "negative_hit", "cooling_hit", "miss", "call_failed", "lease_granted", "lease_lost",
	"loaded", "not_found", "load_failed", "load_panicked", "load_canceled", "stored", "store_refused",
	"store_failed", "woken_message", "woken_poll", "wait_timed_out", "overloaded",
	"refreshed", "refreshed_early", "stale_fallback", "degraded", "breaker_opened", "breaker_closed", "undecodable", "value_set", "invalidated",
}

// String returns the kind's name in snake case, fit for a metric's label.
func (k Kind) String() string {
	if k < 0 || k >= kinds {
		return "unknown"
	}
	return kindNames[k]
}

// Event is one thing that happened to one key.
type Event struct {
	Kind     Kind
	Prefix   string // of the keyspace
	Key      string // as Redis sees it
	Duration time.Duration
	// Overhead is, for the end of a wait, how long after the value was stored it
	// was seen, to a millisecond; −1 if the wait ended without a value.
	Overhead time.Duration
	Err      error
}

// Observer is told of events as they happen, by the goroutine they happen in:
// it must not block, nor use the cache. A panic in it is logged and goes no further.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// LoadTracer is an [Observer] that traces loads as well: a load is detached from
// the callers that wait for it, so a tracer has to be told which load a caller
// shared.
type LoadTracer interface {
	// StartLoad is called before a loader is, with the loader's context, and
	// returns the context to give it. End is called when the load is over, with
	// its error.
	StartLoad(ctx context.Context, prefix, key string) (load context.Context, end func(err error))
	// Shared is called when the caller with context ctx gets the answer of a load
	// of this process: load is what StartLoad returned.
	Shared(ctx, load context.Context)
}

// Stats are counts since the cache was made, and what is under way now.
//
// Calls = Hits + StaleHits + NegativeHits + CoolingHits + Misses + Failed.
// Loads that ended = Loaded + NotFound + LoadsFailed + LoadsPanicked + LoadsCanceled.
// Of the loads whose result was to be kept, Stored + StoresRefused + StoresFailed.
// Waits for another process that were woken = WokenByMessage + WokenByPoll.
type Stats struct {
	Hits, StaleHits, NegativeHits, CoolingHits, Misses, Failed int64

	LeasesGranted, LeasesLost int64

	Loaded, NotFound, LoadsFailed, LoadsPanicked, LoadsCanceled int64

	Stored, StoresRefused, StoresFailed int64

	WokenByMessage, WokenByPoll, WaitsTimedOut, Overloaded int64

	// Background refreshes that were started, before and after the expiry.
	RefreshedEarly, Refreshed int64
	// StaleFallbacks are stale values that stood in for a load.
	StaleFallbacks int64
	// Degraded are loads without Redis; BreakerOpened how often it was left alone.
	Degraded, BreakerOpened int64

	Undecodable, ValuesSet, Invalidated int64

	// FlightsNow is how many keys are being loaded or waited for.
	FlightsNow int
	// HungNow is how many loaders were given up and have not returned yet.
	HungNow int
	// LeasesNow is how many leases this process holds.
	LeasesNow int
}

// counters holds one count per kind of event.
type counters struct {
	by   [kinds]atomic.Int64
	hung atomic.Int64
}

// Stats returns the current counts. They are read one by one, so sums may be
// off by what happens meanwhile.
func (c *Cache) Stats() Stats {
	n := func(k Kind) int64 { return c.counts.by[k].Load() }
	return Stats{
		Hits: n(Hit), StaleHits: n(StaleHit), NegativeHits: n(NegativeHit), CoolingHits: n(CoolingHit), Misses: n(Miss), Failed: n(CallFailed),
		LeasesGranted: n(LeaseGranted), LeasesLost: n(LeaseLost),
		Loaded: n(Loaded), NotFound: n(NotFound), LoadsFailed: n(LoadFailed), LoadsPanicked: n(LoadPanicked), LoadsCanceled: n(LoadCanceled),
		Stored: n(Stored), StoresRefused: n(StoreRefused), StoresFailed: n(StoreFailed),
		WokenByMessage: n(WokenMessage), WokenByPoll: n(WokenPoll), WaitsTimedOut: n(WaitTimedOut), Overloaded: n(Overloaded),
		RefreshedEarly: n(RefreshedEarly), Refreshed: n(Refreshed), StaleFallbacks: n(StaleFallback),
		Degraded: n(Degraded), BreakerOpened: n(BreakerOpened),
		Undecodable: n(Undecodable), ValuesSet: n(ValueSet), Invalidated: n(Invalidated),
		FlightsNow: c.flights.Len(), HungNow: max(0, int(c.counts.hung.Load())), LeasesNow: c.keeper.Len(),
	}
}

// emit counts an event and tells the observer.
func (s *space) emit(ctx context.Context, k Kind, key string, d time.Duration, err error) {
	s.send(ctx, Event{Kind: k, Key: key, Duration: d, Err: err})
}

func (s *space) send(ctx context.Context, e Event) {
	e.Prefix = s.prefix
	s.cache.notify(ctx, e)
}

// notify counts an event and tells the observer.
func (c *Cache) notify(ctx context.Context, e Event) {
	c.counts.by[e.Kind].Add(1)
	if c.opts.Observer != nil {
		c.tell(ctx, e)
	}
}

func (c *Cache) tell(ctx context.Context, e Event) {
	defer c.survive(ctx, "Observe")
	c.opts.Observer.Observe(ctx, e)
}

// survive is deferred: it logs a panic of the observer, in the method named.
func (c *Cache) survive(ctx context.Context, method string) {
	if p := recover(); p != nil {
		c.opts.Logger.ErrorContext(ctx, "getorprime: observer panicked", "method", method, "panic", p)
	}
}
