package cacheotel

import (
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/getorprime/getorprime/cache"
)

// The names of attributes.
const (
	outcomeKey = attribute.Key("outcome")
	eventKey   = attribute.Key("event")
	prefixKey  = attribute.Key("prefix")
)

// The boundaries of histograms, in seconds. The SDK's own are meant for
// milliseconds.
var (
	loadSeconds  = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	wakeSeconds  = []float64{.001, .002, .003, .005, .0075, .01, .025, .05, .1, .25, .5, 1}
	staleSeconds = []float64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600}
)

// instruments are what events are reported with.
type instruments struct {
	calls, events                                      metric.Int64Counter
	loadDuration, waitDuration, wakeOverhead, staleAge metric.Float64Histogram
}

func newInstruments(meter metric.Meter) (*instruments, error) {
	var errs []error
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	seconds := func(name, description string, bounds []float64) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
			metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	i := &instruments{
		calls:        counter("getorprime.calls", "{call}", "Calls by what their first read came to."),
		events:       counter("getorprime.events", "{event}", "What was done for calls, by kind."),
		loadDuration: seconds("getorprime.load.duration", "How long loaders took.", loadSeconds),
		waitDuration: seconds("getorprime.wait.duration", "How long a process waited for another's load.", loadSeconds),
		wakeOverhead: seconds("getorprime.wake.overhead", "How long after a value was stored a waiting process saw it.", wakeSeconds),
		staleAge:     seconds("getorprime.stale.age", "How stale a value was that stood in for a load.", staleSeconds),
	}
	return i, errors.Join(errs...)
}

type seriesKey struct {
	kind   cache.Kind
	prefix string
}

// series are the instruments for one kind of event of one keyspace, with their
// attributes. They are made once, because a cache hit is to stay cheap.
type series struct {
	count              metric.Int64Counter
	duration, overhead metric.Float64Histogram // nil: none
	counted            []metric.AddOption
	measured           []metric.RecordOption
}

func (i *instruments) newSeries(k cache.Kind, prefix string) *series {
	s := &series{count: i.events}
	named, measured := eventKey, []attribute.KeyValue{outcomeKey.String(k.String())}
	switch k {
	case cache.Hit, cache.StaleHit, cache.NegativeHit, cache.CoolingHit, cache.Miss, cache.CallFailed:
		s.count, named = i.calls, outcomeKey
	case cache.Loaded, cache.NotFound, cache.LoadFailed, cache.LoadPanicked, cache.LoadCanceled:
		s.duration = i.loadDuration
	case cache.WokenMessage, cache.WokenPoll:
		s.duration, s.overhead = i.waitDuration, i.wakeOverhead
	case cache.WaitTimedOut:
		s.duration = i.waitDuration
	case cache.StaleFallback:
		s.duration, measured = i.staleAge, nil
	}
	s.counted = append(s.counted, with(prefix, named.String(k.String())))
	s.measured = append(s.measured, with(prefix, measured...))
	return s
}

// with returns attributes and the prefix, if there is one, as an option.
func with(prefix string, attrs ...attribute.KeyValue) metric.MeasurementOption {
	if prefix != "" {
		attrs = append(attrs, prefixKey.String(prefix))
	}
	return metric.WithAttributeSet(attribute.NewSet(attrs...))
}
