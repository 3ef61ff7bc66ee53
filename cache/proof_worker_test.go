//go:build unix

package cache_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/loader"
)

// closeBound is how long a worker's cache may take to close.
const closeBound = 2 * time.Second

// worker is one process of a proof, seen from inside.
type worker struct {
	setup
	board    *board
	direct   *redis.Client
	client   *redis.Client
	cache    *cache.Cache
	values   *cache.Keyspace[uint64]
	pointers *cache.Keyspace[*uint64]
}

// work obeys the orders in in until it ends, and answers each on out.
func work(in io.Reader, out io.Writer) error {
	orders, replies := json.NewDecoder(in), json.NewEncoder(out)
	var w worker
	defer w.close()
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			return ignoring(io.EOF, err)
		}
		r, err := w.obey(&o)
		if err != nil {
			r.Error = err.Error()
		}
		if err := replies.Encode(r); err != nil {
			return err
		}
	}
}

func ignoring(expected, err error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

func (w *worker) obey(o *order) (reply, error) {
	switch o.Do {
	case "open":
		return reply{}, w.open(*o.Open)
	case "call":
		return reply{Outcomes: w.call(o.Calls)}, nil
	case "storm":
		return reply{Tally: w.storm(o.Storm)}, nil
	case "stats":
		s := w.cache.Stats()
		return reply{Stats: &s}, nil
	}
	return reply{}, fmt.Errorf("order %q is unknown", o.Do)
}

func (w *worker) open(s setup) (err error) {
	w.setup = s
	if w.board, err = openBoard(s.Board); err != nil {
		return err
	}
	w.direct = redis.NewClient(&redis.Options{Addr: s.Direct})
	w.client = redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: s.Tampered})
	if s.Tampered {
		scripts, err := readScripts()
		if err != nil {
			return err
		}
		w.client.AddHook(&tamperer{s.Mutant, scripts, s.Mix})
	}
	policy := &cache.Policy{
		TTL: s.TTL, LoadTimeout: s.LoadTimeout, ErrorCooldown: s.Cooldown, ErrorCooldownMax: s.CoolMax,
		StaleWhileRevalidate: s.StaleFor, StaleIfError: 2 * s.StaleFor, SoftTimeout: s.Soft,
		OnOutage: cache.FailFast,
	}
	if s.local() {
		policy.OnOutage = cache.LoadLocally
	}
	if s.StaleFor == 0 {
		policy.EarlyRefresh = -1
	}
	w.cache, err = cache.New(w.client, &cache.Options{LeaseTTL: s.Lease, RedisBudget: s.Budget, Defaults: policy})
	if err != nil {
		return err
	}
	w.weaken()
	return w.register()
}

// register makes the keyspaces, and connects: calls are to be measured, not dialling.
func (w *worker) register() (err error) {
	load := w.load
	if w.Mix != nil {
		load = w.stormLoad
	}
	if w.values, err = cache.Register(w.cache, prefix, load, nil); err != nil {
		return err
	}
	if w.pointers, err = cache.Register(w.cache, "pointer:", w.loadPointer, nil); err != nil {
		return err
	}
	for range connectAttempts {
		_, err = w.values.Peek(context.Background(), fmt.Sprint(maxRows-1))
		if !errors.Is(err, cache.ErrUnavailable) {
			break
		}
	}
	return ignoring(cache.ErrMiss, err)
}

// connectAttempts is how often a worker tries to connect while the machine is
// busy with starting others.
const connectAttempts = 20

// prefix begins the keys of the board's rows.
const prefix = "row:"

// weaken switches on a mutant that lives in the cache itself.
func (w *worker) weaken() {
	switch w.Mutant {
	case mutantToken:
		mine := entry.NewToken()
		w.cache.MintWith(func() entry.Token { return mine })
	case mutantAny:
		w.cache.TakeAny()
	case mutantStored:
		w.cache.TakeStored()
	}
}

func (w *worker) close() {
	if w.cache == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeBound)
	defer cancel()
	// A load that hangs for good is left behind: some proofs are about those.
	_ = w.cache.Close(ctx)
	w.client.Close()
	w.direct.Close()
}

// load reads a row's version, takes its time, and behaves as it was told.
func (w *worker) load(ctx context.Context, id string) (uint64, error) {
	r, i := w.board.row(id)
	v, n := r.version.Load(), r.loads.Add(1)
	w.board.note(w.Process, logLoad, i, v)
	r.running.Add(1)
	defer r.running.Add(-1)
	bad := w.Load.N == 0 || n <= w.Load.N
	if bad || w.Load.Bad != "slow" {
		rest(ctx, w.Load.For)
	}
	if bad {
		return w.misbehave(ctx, id, v, n)
	}
	return v, nil
}

func (w *worker) misbehave(ctx context.Context, id string, v uint64, n int64) (uint64, error) {
	switch w.Load.Bad {
	case "fail":
		return 0, fmt.Errorf("attempt %d: %w", n, errDatabase)
	case "panic":
		panic(fmt.Sprintf("attempt %d: no such column", n))
	case "goexit":
		runtime.Goexit()
	case "hang":
		select {}
	case "reenter":
		return w.values.GetOrPrime(ctx, id)
	case "unstored":
		loader.NoStore(ctx)
	}
	return v, nil
}

// loadPointer finds no record but no error either.
func (w *worker) loadPointer(ctx context.Context, id string) (*uint64, error) {
	v, err := w.load(ctx, id)
	if v == 0 {
		return nil, err
	}
	return &v, err
}

// rest takes d of a load's or a caller's time.
func rest(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// call makes calls at their instant and returns what each caller saw.
func (w *worker) call(c *calls) []outcome {
	outcomes := make([]outcome, c.Callers)
	var wg sync.WaitGroup
	for i := range outcomes {
		wg.Go(func() {
			rest(context.Background(), time.Until(time.Unix(0, c.At)))
			outcomes[i] = w.one(c)
		})
	}
	wg.Wait()
	return outcomes
}

func (w *worker) one(c *calls) (o outcome) {
	ctx := context.Background()
	if c.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Within)
		defer cancel()
	}
	o.Began = time.Now().UnixNano()
	err := w.do(ctx, c, &o)
	o.Ended = time.Now().UnixNano()
	o.Kind = kindOf(err)
	if err != nil {
		o.Error = err.Error()
	}
	return o
}

// do makes the call proper.
func (w *worker) do(ctx context.Context, c *calls, o *outcome) (err error) {
	switch c.Do {
	case "":
		o.Value, err = w.values.GetOrPrime(ctx, c.ID)
	case "peek":
		o.Value, err = w.values.Peek(ctx, c.ID)
	case "set":
		err = w.values.Set(ctx, c.ID, c.V)
	case "pointer":
		var p *uint64
		p, err = w.pointers.GetOrPrime(ctx, c.ID)
		o.Nil = p == nil
	}
	return err
}

// kinds are errors by the name under which they are counted, the more telling first.
var kinds = []struct {
	err  error
	name string
}{
	{cache.ErrReentrant, "reentrant"},
	{cache.ErrUnavailable, "unavailable"},
	{cache.ErrWaitTimeout, "wait timeout"},
	{cache.ErrOverloaded, "overloaded"},
	{cache.ErrLoadTimeout, "load timeout"},
	{cache.ErrMiss, "miss"},
	{cache.ErrClosed, "closed"},
	{context.DeadlineExceeded, "deadline"},
	{context.Canceled, "canceled"},
}

// kindOf names what err says, for counting and for travel between processes.
func kindOf(err error) string {
	var panicked *loader.PanicError
	var remote *loader.RemoteError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &panicked):
		return "panic"
	case errors.As(err, &remote) && remote.Panic:
		return "remote panic"
	case errors.As(err, &remote):
		return "remote"
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	if errors.Is(err, errDatabase) {
		return "loader"
	}
	return "other: " + err.Error()
}
