package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/getorprime/getorprime/internal/bench/monotime"
	"github.com/getorprime/getorprime/internal/origin"
)

// driver makes the calls of one worker over some time.
type driver struct {
	drive
	worker *worker
	start  monotime.Instant

	mu  sync.Mutex // guards all
	all []*tally
}

// errTurnedAway is a call's that found as many under way as may be.
var errTurnedAway = errors.New("bench: too many calls at once")

// drive calls until the order's time is over and all calls are back.
func (w *worker) drive(ctx context.Context, o order) *result {
	d := &driver{drive: *o.Drive, worker: w, start: o.At}
	w.origin.Set(d.Load, origin.Works)
	w.until.Store(int64(d.Until))
	_ = monotime.SleepUntil(ctx, d.start)
	var wg sync.WaitGroup
	if d.Writes > 0 {
		wg.Go(func() { d.write(ctx) })
	}
	if d.Rate > 0 {
		d.arrive(ctx, &wg)
	} else {
		for n := range d.Callers {
			wg.Go(func() { d.loop(ctx, n) })
		}
	}
	wg.Wait()
	return d.result()
}

func (d *driver) over() bool { return monotime.Now().Sub(d.start) >= d.Duration }

// random is the chance of one goroutine, by the seed.
func (d *driver) random(stream int) *rand.Rand {
	return rand.New(rand.NewPCG(d.worker.seed, uint64(d.worker.process)<<32|uint64(stream)))
}

// loop is a caller who calls without a pause.
func (d *driver) loop(ctx context.Context, n int) {
	t, r := d.tally(), d.random(n)
	if d.Sweep {
		all := d.worker.processes * d.Callers
		for k := d.worker.process*d.Callers + n; k < d.Keys && ctx.Err() == nil; k += all {
			t.add(d.call(ctx, k))
		}
		return
	}
	for ctx.Err() == nil && !d.over() {
		t.add(d.call(ctx, r.IntN(d.Keys)))
	}
}

// arrive makes calls at the instants of a Poisson process, and returns when the last has begun.
func (d *driver) arrive(ctx context.Context, wg *sync.WaitGroup) {
	r, t := d.random(-1), d.tally()
	var mu sync.Mutex // guards t
	places := make(chan struct{}, d.Callers)
	for at := d.start; ; {
		at = at.Add(time.Duration(r.ExpFloat64() / d.Rate * float64(time.Second)))
		if at.Sub(d.start) >= d.Duration || monotime.SleepUntil(ctx, at) != nil {
			return
		}
		key := r.IntN(d.Keys)
		select {
		case places <- struct{}{}:
			wg.Go(func() {
				c := d.call(ctx, key)
				<-places
				mu.Lock()
				defer mu.Unlock()
				t.add(c)
			})
		default:
			mu.Lock()
			t.add(seen{start: at, end: at, err: errTurnedAway})
			mu.Unlock()
		}
	}
}

// call makes one call and judges its answer: it must not be older than what was invalidated before the call.
func (d *driver) call(ctx context.Context, key int) seen {
	ctx, cancel := context.WithTimeout(ctx, d.Patience)
	defer cancel()
	row := &d.worker.board.rows[key]
	told := row.told.Load()
	c := seen{start: monotime.Now()}
	value, err := safely(func() ([]byte, error) { return d.worker.strategy.Get(ctx, keyID(key)) })
	c.end, c.err = monotime.Now(), err
	if stamp, ok := origin.Read(value); ok {
		c.stale, c.age = stamp.Version < told, c.end.Sub(stamp.Began)
		// A value that was made during the call, and a call that took long: one alone may be chance.
		c.blocked = stamp.Ended > c.start && c.end.Sub(c.start) >= d.Blocked
	}
	return c
}

// safely turns a panic into an error, as a web server does.
func safely(get func() ([]byte, error)) (value []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			value, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	return get()
}

// write changes the data, and says so.
func (d *driver) write(ctx context.Context) {
	r := d.random(-2)
	for n := 0; !d.over() && monotime.Sleep(ctx, time.Duration(r.ExpFloat64()/d.Writes*float64(time.Second))) == nil; n++ {
		d.change(ctx, r.IntN(d.Keys), d.ByHand && n%2 == 1)
	}
}

// change commits a new version of a record and invalidates the old one, by the strategy's own means or with a plain DEL.
func (d *driver) change(ctx context.Context, key int, byHand bool) {
	// One that fails is not held against the strategy: nobody was told.
	_ = d.worker.board.rows[key].change(func() error {
		if byHand {
			return d.worker.redis.Del(ctx, d.worker.namespace+keyID(key)).Err()
		}
		return d.worker.strategy.Invalidate(ctx, keyID(key))
	})
}

func (d *driver) tally() *tally {
	t := &tally{start: d.start}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, t)
	return t
}

func (d *driver) result() *result {
	var sum result
	for _, t := range d.all {
		sum.join(&t.result)
	}
	return &sum
}
