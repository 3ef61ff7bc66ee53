package cacheotel

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel/metric"

	"github.com/getorprime/getorprime/cache"
)

// watched are caches whose present state is reported.
type watched struct {
	flights, leases, hung metric.Int64ObservableUpDownCounter

	mu     sync.Mutex // guards caches
	caches map[*cache.Cache]struct{}
}

// Watch reports what is under way in c, whenever metrics are collected: flights,
// leases and hung loaders, those of all watched caches together. Stop ends it,
// and lets go of c; it may be called more than once.
func (o *Observer) Watch(c *cache.Cache) (stop func()) {
	w := &o.watched
	w.mu.Lock()
	defer w.mu.Unlock()
	w.caches[c] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.caches, c)
	}
}

func (w *watched) register(meter metric.Meter) error {
	w.caches = make(map[*cache.Cache]struct{})
	var errs []error
	level := func(name, unit, description string) metric.Int64ObservableUpDownCounter {
		l, err := meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return l
	}
	w.flights = level("getorprime.flights", "{flight}", "Keys that are being loaded or waited for.")
	w.leases = level("getorprime.leases", "{lease}", "Leases that are held.")
	w.hung = level("getorprime.hung", "{load}", "Loaders that were given up and have not returned.")
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err := meter.RegisterCallback(w.observe, w.flights, w.leases, w.hung)
	return err
}

// observe sums up all caches: two observations of one series in one collection
// have no meaning that OpenTelemetry defines.
func (w *watched) observe(_ context.Context, to metric.Observer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.caches) == 0 {
		return nil
	}
	var flights, leases, hung int
	for c := range w.caches {
		s := c.Stats()
		flights, leases, hung = flights+s.FlightsNow, leases+s.LeasesNow, hung+s.HungNow
	}
	to.ObserveInt64(w.flights, int64(flights))
	to.ObserveInt64(w.leases, int64(leases))
	to.ObserveInt64(w.hung, int64(hung))
	return nil
}
