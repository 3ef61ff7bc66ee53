package cacheotel_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/cache/cacheotel"
)

// bound is how long a test waits for what should happen soon.
const bound = 20 * time.Second

// secret is a part of every key, which must appear in nothing that is reported.
const secret = "alice@example.com"

// telemetry is an observer, and what it has reported.
type telemetry struct {
	testing.TB
	observer *cacheotel.Observer
	reader   *metric.ManualReader
	spans    *tracetest.SpanRecorder
	tracer   trace.Tracer // for the test's own spans
}

func newTelemetry(tb testing.TB) *telemetry {
	tb.Helper()
	t := &telemetry{TB: tb, reader: metric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	meters := metric.NewMeterProvider(metric.WithReader(t.reader))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(t.spans))
	t.tracer = tracers.Tracer("test")
	var err error
	if t.observer, err = cacheotel.New(&cacheotel.Options{MeterProvider: meters, TracerProvider: tracers}); err != nil {
		tb.Fatal(err)
	}
	return t
}

// options are those of a cache that reports to t.
func (t *telemetry) options() *cache.Options { return &cache.Options{Observer: t.observer} }

// collect returns what has been measured, by the instrument's name.
func (t *telemetry) collect() map[string]metricdata.Metrics {
	t.Helper()
	var got metricdata.ResourceMetrics
	if err := t.reader.Collect(context.Background(), &got); err != nil {
		t.Fatal(err)
	}
	all := map[string]metricdata.Metrics{}
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			all[m.Name] = m
		}
	}
	return all
}

// sums returns the points of a counter by their attributes, as in
// "outcome=hit,prefix=k:".
func (t *telemetry) sums(name string) map[string]int64 {
	t.Helper()
	points := map[string]int64{}
	if sum, ok := t.collect()[name].Data.(metricdata.Sum[int64]); ok {
		for _, p := range sum.DataPoints {
			points[text(p.Attributes)] = p.Value
		}
	}
	return points
}

// histogram returns the points of a histogram by their attributes.
func (t *telemetry) histogram(name string) map[string]metricdata.HistogramDataPoint[float64] {
	t.Helper()
	points := map[string]metricdata.HistogramDataPoint[float64]{}
	if h, ok := t.collect()[name].Data.(metricdata.Histogram[float64]); ok {
		for _, p := range h.DataPoints {
			points[text(p.Attributes)] = p
		}
	}
	return points
}

func text(s attribute.Set) string { return s.Encoded(attribute.DefaultEncoder()) }

// ended returns the spans of a name that have ended.
func (t *telemetry) ended(name string) []sdktrace.ReadOnlySpan {
	var found []sdktrace.ReadOnlySpan
	for _, s := range t.spans.Ended() {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	return found
}

// theLoad returns the only span of a load.
func (t *telemetry) theLoad() sdktrace.ReadOnlySpan {
	t.Helper()
	loads := t.ended("getorprime load")
	if len(loads) != 1 {
		t.Fatalf("%d spans of loads have ended, want 1", len(loads))
	}
	return loads[0]
}

// wantNoKey checks that the key is in nothing that was reported.
func (t *telemetry) wantNoKey() {
	t.Helper()
	var all []string
	for name := range t.collect() {
		for attrs := range t.sums(name) {
			all = append(all, name+" "+attrs)
		}
		for attrs := range t.histogram(name) {
			all = append(all, name+" "+attrs)
		}
	}
	for _, s := range t.spans.Ended() {
		set := attribute.NewSet(s.Attributes()...)
		all = append(all, s.Name()+" "+text(set))
		for _, l := range s.Links() {
			set := attribute.NewSet(l.Attributes...)
			all = append(all, "link "+text(set))
		}
	}
	for _, s := range all {
		if strings.Contains(s, secret) {
			t.Errorf("reported with the key: %s", s)
		}
	}
	if len(all) == 0 {
		t.Error("nothing was reported")
	}
}

// eventually waits until cond is true.
func eventually(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	deadline := time.Now().Add(bound)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			tb.Fatalf("not within %v: %s", bound, what)
		}
		<-tick.C
	}
}
