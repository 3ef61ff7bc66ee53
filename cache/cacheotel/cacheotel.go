// Package cacheotel reports what a cache does to OpenTelemetry: metrics for
// every event, a span for every load, and a link to it from the span of each
// caller that shared it.
//
//	observer, err := cacheotel.New(nil) // nil: the global providers
//	c, err := cache.New(rdb, &cache.Options{Observer: observer})
//	stop := observer.Watch(c) // flights, leases and hung loaders as well
//	defer stop()
//
// It is a module of its own, so that who does without OpenTelemetry does not
// have to download it.
//
// # Metrics
//
//	getorprime.calls           {call}    outcome, prefix   calls by what their first read came to
//	getorprime.events          {event}   event, prefix     everything else that happened
//	getorprime.load.duration   s         outcome, prefix   how long loaders took
//	getorprime.wait.duration   s         outcome, prefix   how long a process waited for another's load
//	getorprime.wake.overhead   s         outcome, prefix   how much of it after the value had been stored
//	getorprime.stale.age       s         prefix            how stale a value was that stood in for a load
//	getorprime.flights         {flight}                    keys that are being loaded or waited for
//	getorprime.leases          {lease}                     leases that are held
//	getorprime.hung            {load}                      loaders that were given up and have not returned
//
// Outcome and event are the names of [cache.Kind]: "hit", "miss", "loaded", …
// Each event is counted once, as a call or as an event. Prefix is the key prefix
// of the keyspace, and the only label that says which data is meant: keys would
// be labels without end. Events that belong to no keyspace have no prefix.
//
// The hit rate is getorprime.calls with outcome hit over all of
// getorprime.calls; loads per second, the count of getorprime.load.duration.
//
// # Traces
//
// A load serves many callers and outlives the one that started it, so it has a
// span of its own, "getorprime load", with the attribute prefix. Its parent is
// the span of the caller that started it; it ends when the value has been stored
// and is an error if the load failed, but not if it was cancelled because nobody
// waited any more (attribute canceled). The spans of all other callers that got
// its answer link to it. What the loader itself starts are its children.
//
// Keys are in no attribute. A span's error is the loader's own, with the text it
// was given there.
package cacheotel

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/getorprime/getorprime/cache"
)

// scope is the name of this instrumentation.
const scope = "github.com/getorprime/getorprime/cache/cacheotel"

// Options says where to report to.
type Options struct {
	// MeterProvider makes the instruments. Default: the global one.
	MeterProvider metric.MeterProvider
	// TracerProvider makes the spans. Default: the global one.
	TracerProvider trace.TracerProvider
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.MeterProvider == nil {
		d.MeterProvider = otel.GetMeterProvider()
	}
	if d.TracerProvider == nil {
		d.TracerProvider = otel.GetTracerProvider()
	}
	return d
}

// Observer is a [cache.Observer] and a [cache.LoadTracer]. One may serve several
// caches; their numbers add up. It is safe for concurrent use.
type Observer struct {
	tracer      trace.Tracer
	instruments *instruments
	series      sync.Map // seriesKey -> *series
	watched     watched
}

var (
	_ cache.Observer   = (*Observer)(nil)
	_ cache.LoadTracer = (*Observer)(nil)
)

// New returns an observer for cache.Options.Observer. It fails if the meter
// provider refuses an instrument. Nil options stand for the global providers,
// which may be set later.
func New(opts *Options) (*Observer, error) {
	options := opts.withDefaults()
	meter := options.MeterProvider.Meter(scope)
	o := &Observer{tracer: options.TracerProvider.Tracer(scope)}
	var err error
	o.instruments, err = newInstruments(meter)
	if err = errors.Join(err, o.watched.register(meter)); err != nil {
		return nil, fmt.Errorf("cacheotel: %w", err)
	}
	return o, nil
}

// Observe counts an event and records its durations. The cache calls it.
func (o *Observer) Observe(ctx context.Context, e cache.Event) {
	s := o.seriesOf(e.Kind, e.Prefix)
	s.count.Add(ctx, 1, s.counted...)
	if s.duration != nil {
		s.duration.Record(ctx, e.Duration.Seconds(), s.measured...)
	}
	if s.overhead != nil && e.Overhead >= 0 {
		s.overhead.Record(ctx, e.Overhead.Seconds(), s.measured...)
	}
}

// seriesOf returns where events of a kind and prefix go. There are as many as
// kinds of event times keyspaces.
func (o *Observer) seriesOf(k cache.Kind, prefix string) *series {
	key := seriesKey{k, prefix}
	if s, ok := o.series.Load(key); ok {
		return s.(*series)
	}
	s, _ := o.series.LoadOrStore(key, o.instruments.newSeries(k, prefix))
	return s.(*series)
}
