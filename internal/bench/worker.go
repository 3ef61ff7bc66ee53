package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/bench/monotime"
	"github.com/getorprime/getorprime/internal/origin"
)

// errOrphaned is why a worker's calls end when its standard input does.
var errOrphaned = errors.New("bench: the process that started this worker is gone")

// closeBound is how long a worker's strategy may take to close.
const closeBound = 2 * time.Second

// Work is the whole life of a worker process: it obeys the orders that it reads from in, answers on out, and returns when in or ctx ends;
// calls under way are cancelled then. It returns an error only if a line cannot be read or written.
func Work(ctx context.Context, in io.Reader, out io.Writer) error {
	working, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	orders := readOrders(working, cancel, in)
	replies := json.NewEncoder(out)
	var w worker
	defer w.close()
	for {
		select {
		case o := <-orders:
			if err := replies.Encode(w.obey(working, o)); err != nil {
				return fmt.Errorf("bench: worker cannot answer: %w", err)
			}
		case <-working.Done():
			if err := context.Cause(working); ctx.Err() == nil && !errors.Is(err, errOrphaned) {
				return err
			}
			return nil
		}
	}
}

// readOrders passes on the orders in in, and cancels as soon as in ends: also in the middle of an order, which is why reading has a
// goroutine of its own.
func readOrders(ctx context.Context, cancel context.CancelCauseFunc, in io.Reader) <-chan order {
	orders := make(chan order)
	go func() {
		lines := json.NewDecoder(in)
		for {
			var o order
			if err := lines.Decode(&o); err != nil {
				cancel(readError(err))
				return
			}
			select {
			case orders <- o:
			case <-ctx.Done():
				return
			}
		}
	}()
	return orders
}

func readError(err error) error {
	if errors.Is(err, io.EOF) {
		return errOrphaned
	}
	return fmt.Errorf("bench: worker cannot read: %w", err)
}

// worker is one instance of a strategy and the callers parked before it.
type worker struct {
	process   int
	processes int
	seed      uint64
	namespace string
	redis     *redis.Client
	board     *board
	unmap     func()
	origin    *origin.Origin
	strategy  Strategy
	herd      *herd
	kind      string
	endpoint  *endpoint    // opened when it is first needed
	until     atomic.Int64 // a monotime.Instant, or 0
}

func (w *worker) obey(ctx context.Context, o order) reply {
	var r reply
	var err error
	switch {
	case o.Do == doOpen && w.strategy == nil && o.Open != nil:
		err = w.open(ctx, *o.Open)
	case o.Do == doCall && w.strategy != nil && w.herd == nil:
		w.origin.Set(o.Load, o.Mode)
		err = w.park(o)
	case o.Do == doRelease && w.herd != nil:
		r.Result = w.herd.release(ctx, o.At)
		r.Result.Loads = w.origin.Loads(w.herd.id)
		w.herd = nil
	case o.Do == doDrive && w.strategy != nil && o.Drive != nil:
		r.Result = w.drive(ctx, o)
	default:
		err = fmt.Errorf("order %q does not fit here", o.Do)
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

func (w *worker) open(ctx context.Context, s setup) error {
	k, err := findKind(s.Strategy)
	if err != nil {
		return err
	}
	opts, err := clientOptions(s.RedisURL, s.Processes)
	if err != nil {
		return err
	}
	w.redis = redis.NewClient(opts)
	if err := w.redis.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("no answer from Redis: %w", err)
	}
	w.kind = s.Strategy
	w.process, w.processes, w.seed, w.namespace = s.Process, s.Processes, s.Seed, s.Namespace
	if w.board, w.unmap, err = openBoard(s.Board); err != nil {
		return err
	}
	w.origin = origin.New(s.Seed, uint64(s.Process), 0)
	w.origin.Begin = func(id string) uint64 { return w.board.begin(s.Process, id) }
	w.origin.End = func(string) { w.board.end(s.Process) }
	w.strategy, err = k.open(Site{
		Redis: w.redis, Namespace: s.Namespace, TTL: s.TTL, Valid: w.valid, LoadTimeout: s.LoadTimeout, Budget: s.Budget, Load: w.origin.Load,
	})
	return err
}

// park parks callers before the strategy, or before the worker's endpoint.
func (w *worker) park(o order) (err error) {
	var target getter = w.strategy
	if o.Post {
		if w.endpoint == nil {
			if w.endpoint, err = openEndpoint(w, w.kind); err != nil {
				return err
			}
		}
		target = w.endpoint
	}
	w.herd = parkHerd(o, target)
	return nil
}

// valid is how long a value loaded now is valid, 0 if it does not say.
func (w *worker) valid() time.Duration {
	return max(0, monotime.Instant(w.until.Load()).Sub(monotime.Now()))
}

func (w *worker) close() {
	if w.endpoint != nil {
		w.endpoint.shut()
	}
	if w.strategy != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeBound)
		defer cancel()
		w.strategy.Close(ctx)
	}
	if w.redis != nil {
		w.redis.Close()
	}
	if w.unmap != nil {
		w.unmap()
	}
}
