package bench

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/getorprime/getorprime/internal/bench/monotime"
	"github.com/getorprime/getorprime/internal/origin"
)

// herd is a worker's callers, each parked in a goroutine that already runs.
type herd struct {
	id    string
	bound time.Duration
	calls []call
	start chan context.Context // each caller takes its context from here
	back  sync.WaitGroup
}

// getter is what a herd calls: a strategy, or an endpoint.
type getter interface {
	Get(ctx context.Context, id string) ([]byte, error)
}

// call is what one caller got. Digests are made when all are back: hashing would take the processor from those still on the way.
type call struct {
	value []byte
	err   error
	end   monotime.Instant
}

// parkHerd returns when every caller stands at the start.
func parkHerd(o order, s getter) *herd {
	h := &herd{id: o.ID, bound: o.Bound, calls: make([]call, o.Callers), start: make(chan context.Context, o.Callers)}
	var parked sync.WaitGroup
	parked.Add(o.Callers)
	for i := range h.calls {
		h.back.Go(func() {
			parked.Done()
			ctx := <-h.start
			c := &h.calls[i]
			c.value, c.err = safely(func() ([]byte, error) { return s.Get(ctx, h.id) })
			c.end = monotime.Now()
		})
	}
	parked.Wait()
	return h
}

// release lets the callers go at the instant at and returns what they saw when all are back. Their context ends with ctx, and the herd's
// bound after at.
func (h *herd) release(ctx context.Context, at monotime.Instant) *result {
	ctx, cancel := context.WithTimeout(ctx, at.Add(h.bound).Sub(monotime.Now()))
	defer cancel()
	// An end of ctx is no reason to stay parked: the callers meet it in their calls.
	_ = monotime.SleepUntil(ctx, at)
	for range h.calls {
		h.start <- ctx
	}
	h.back.Wait()
	return h.result(at)
}

func (h *herd) result(start monotime.Instant) *result {
	t := &tally{start: start}
	answers := map[string]bool{}
	for _, c := range h.calls {
		t.add(seen{start: start, end: c.end, err: c.err})
		if c.err == nil {
			answers[origin.Digest(c.value)] = true
		}
	}
	t.Answers = slices.Sorted(maps.Keys(answers))
	return &t.result
}
