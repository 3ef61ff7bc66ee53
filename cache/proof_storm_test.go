//go:build unix

package cache_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/loader"
)

// mix says what a storm is made of. Shares are of ten thousand.
type mix struct {
	Keys    int
	Callers int           // of each process
	Pause   time.Duration // a caller rests up to this long before each call

	// What a caller does; the rest is GetOrPrime, of which the share Hurried has
	// a deadline of a few milliseconds.
	Invalidate, Delete, Flush, Set, Refresh, Peek, Hurried int

	// Loads take up to Load, the share LongLoad up to Long; the shares Failing and
	// Unstored fail and ask not to be stored.
	Load, Long                  time.Duration
	LongLoad, Failing, Unstored int

	Lease time.Duration // 0: from 20 ms, differing by process
	TTL   time.Duration // 0: 300 ms, which few values live to see

	StaleFor, Soft time.Duration // 0: no stale windows, and no early refresh

	// A share of the replies to FILL travel up to Slow.
	SlowReply int
	Slow      time.Duration

	// The first Proxied processes reach Redis through a proxy, which makes trouble
	// for commands that can create a lease, for the scripts that keep or end one,
	// and for the rest.
	Proxied                 int
	Leasing, Ending, Others trouble
	Within                  time.Duration // how late
	Stops                   bool          // processes are stopped past their leases, and go on
	Cuts                    bool          // the proxy's connections are cut
}

// trouble is what the network does to commands, in shares of ten thousand.
type trouble struct{ Drop, Late, Duplicate, Delay int }

// storm ends when so many calls have been answered and judged, a process has seen so many
// violations, or its time is over.
type storm struct {
	Calls  int64
	StopAt int
	For    time.Duration
}

// tally is what a storm came to in one process.
type tally struct {
	Calls, Writes, Flushes, Sets, Refreshes int64
	NotFound                                int64 // of the calls, those that were told so
	Errors                                  map[string]int64
	Stale                                   int64
	Violations                              []violation
	Stats                                   cache.Stats
}

// violation is one value that was older than it could be.
type violation struct {
	Process      int
	Call         string
	Row          int
	Got, Want    uint64
	Began, Ended int64
}

const keptViolations = 3

// caller is one goroutine of a storm.
type caller struct {
	*worker
	order *storm
	until time.Time
	rnd   *rand.Rand
	tally
}

// storm runs this process's callers to the end of the storm.
func (w *worker) storm(o *storm) *tally {
	callers := make([]*caller, w.Mix.Callers)
	var wg sync.WaitGroup
	for i := range callers {
		c := &caller{worker: w, order: o, until: time.Now().Add(o.For), rnd: rand.New(rand.NewPCG(uint64(w.Process), uint64(i)))}
		c.Errors = map[string]int64{}
		callers[i] = c
		wg.Go(c.run)
	}
	wg.Wait()
	sum := &tally{Errors: map[string]int64{}, Stats: w.cache.Stats()}
	for _, c := range callers {
		sum.add(&c.tally)
	}
	return sum
}

func (t *tally) add(u *tally) {
	t.Calls += u.Calls
	t.Writes += u.Writes
	t.Flushes += u.Flushes
	t.Sets += u.Sets
	t.Refreshes += u.Refreshes
	t.NotFound += u.NotFound
	t.Stale += u.Stale
	t.Violations = append(t.Violations, u.Violations...)
	for kind, n := range u.Errors {
		t.Errors[kind] += n
	}
}

func (c *caller) run() {
	for !c.board.halt.Load() && c.board.calls.Load() < c.order.Calls && time.Now().Before(c.until) {
		if c.Mix.Pause > 0 {
			rest(context.Background(), time.Duration(c.rnd.Int64N(int64(c.Mix.Pause))))
		}
		c.act(c.rnd.IntN(10_000), strconv.Itoa(c.rnd.IntN(c.Mix.Keys)))
	}
}

// act does what the draw says.
func (c *caller) act(draw int, id string) {
	m := c.Mix
	for _, a := range []struct {
		share int
		do    func(id string)
	}{
		{m.Invalidate, c.invalidate},
		{m.Delete, c.remove},
		{m.Flush, c.flush},
		{m.Set, c.set},
		{m.Refresh, c.refresh},
		{m.Peek, c.peek},
		{m.Hurried, c.hurry},
	} {
		if draw < a.share {
			a.do(id)
			return
		}
		draw -= a.share
	}
	c.get(id)
}

func (c *caller) get(id string) { c.judge("GetOrPrime", id, c.values.GetOrPrime) }

func (c *caller) peek(id string) { c.judge("Peek", id, c.values.Peek) }

// hurry is a caller who leaves soon, alone or out of a crowd.
func (c *caller) hurry(id string) {
	c.judge("GetOrPrime in a hurry", id, func(ctx context.Context, id string) (uint64, error) {
		ctx, cancel := context.WithTimeout(ctx, upTo(5*time.Millisecond))
		defer cancel()
		return c.values.GetOrPrime(ctx, id)
	})
}

// judge makes a call and compares its value with the newest version that was
// acknowledged as invalidated before the call began.
func (c *caller) judge(name, id string, call func(context.Context, string) (uint64, error)) {
	r, _ := c.board.row(id)
	c.compare(name, id, r.acked.Load(), call)
}

// refresh demands more of a row that is never Set: the load began after the
// call, and so read what was written before it.
func (c *caller) refresh(id string) {
	c.Refreshes++
	r, i := c.board.row(id)
	want := r.acked.Load()
	if !isSet(i) {
		want = r.version.Load()
	}
	c.compare("Refresh", id, want, c.values.Refresh)
}

func (c *caller) compare(name, id string, want uint64, call func(context.Context, string) (uint64, error)) {
	r, i := c.board.row(id)
	began := time.Now().UnixNano()
	got, err := call(context.Background(), id)
	newest := r.version.Load()
	if errors.Is(err, loader.ErrNotFound) {
		got, err = newestGone(i, newest), nil
		c.NotFound++
	}
	c.count(err)
	if err != nil || got >= want && got <= newest {
		return
	}
	c.Stale++
	c.board.note(c.Process, logStale, i, got)
	if len(c.Violations) < keptViolations {
		c.Violations = append(c.Violations, violation{c.Process, name, int(i), got, want, began, time.Now().UnixNano()})
	}
	if c.order.StopAt > 0 && c.Stale >= int64(c.order.StopAt) {
		c.board.halt.Store(true)
	}
}

// count counts a call. Only an answer is something to judge. Where Redis is out
// of reach a call fails at once, and its caller waits a little, as any would.
func (c *caller) count(err error) {
	if err == nil {
		c.Calls++
		c.board.calls.Add(1)
		return
	}
	c.Errors[kindOf(err)]++
	if errors.Is(err, cache.ErrUnavailable) {
		rest(context.Background(), 10*time.Millisecond)
	}
}

// isSet reports whether a row is written by Set too. Writers of such a row take
// turns, as any writers must who write the value through: else the older of two
// values may be the later to arrive. The others write at any time.
func isSet(row uint64) bool { return row%2 == 0 }

// gone reports whether a row's record does not exist in version v: one version in
// four. A row that is Set always has one.
func gone(row, v uint64) bool { return !isSet(row) && v%4 == 3 }

// newestGone returns the newest version up to v without a record, which is the
// newest that "not found" can tell of; one that does not exist if there is none.
func newestGone(row, v uint64) uint64 {
	for ; v > 0; v-- {
		if gone(row, v) {
			return v
		}
	}
	return math.MaxUint64
}

// write makes a new version and has it told. It is acknowledged only if tell
// returned without an error.
func (c *caller) write(how uint64, id string, tell func(ctx context.Context, v uint64) error) {
	r, i := c.board.row(id)
	v := r.version.Add(1)
	c.board.note(c.Process, how, i, v)
	c.Writes++
	if err := tell(context.Background(), v); err != nil {
		c.Errors["write: "+kindOf(err)]++
		c.board.note(c.Process, logRefused, i, v)
		return
	}
	r.ack(v)
	c.board.note(c.Process, logAcked, i, v)
}

// beside writes unless a Set of the row is under way.
func (c *caller) beside(how uint64, id string, tell func(context.Context, uint64) error) {
	r, i := c.board.row(id)
	if isSet(i) {
		if !r.share() {
			return
		}
		defer r.unshare()
	}
	c.write(how, id, tell)
}

func (c *caller) invalidate(id string) {
	c.beside(logInvalidate, id, func(ctx context.Context, _ uint64) error { return c.values.Invalidate(ctx, id) })
}

// remove is a DEL by somebody who knows nothing of the cache.
func (c *caller) remove(id string) {
	c.beside(logDelete, id, func(ctx context.Context, _ uint64) error { return c.direct.Del(ctx, prefix+id).Err() })
}

func (c *caller) set(id string) {
	r, i := c.board.row(id)
	if !isSet(i) || !r.own() {
		return
	}
	defer r.disown()
	c.Sets++
	c.write(logSet, id, func(ctx context.Context, v uint64) error { return c.values.Set(ctx, id, v) })
}

// flush empties Redis: what was written before is acknowledged after.
func (c *caller) flush(string) {
	before := make([]uint64, c.Mix.Keys)
	for i := range before {
		before[i] = c.board.rows[i].version.Load()
	}
	if err := c.direct.FlushAll(context.Background()).Err(); err != nil {
		c.Errors["flush: "+kindOf(err)]++
		return
	}
	c.Flushes++
	for i, v := range before {
		c.board.rows[i].ack(v)
		c.board.note(c.Process, logAcked, uint64(i), v)
	}
}

// stormLoad reads a row's version before anything else.
func (w *worker) stormLoad(ctx context.Context, id string) (uint64, error) {
	r, i := w.board.row(id)
	v := r.version.Load()
	r.loads.Add(1)
	w.board.note(w.Process, logLoad, i, v)
	d := upTo(w.Mix.Load)
	if chance(w.Mix.LongLoad) {
		d = upTo(w.Mix.Long)
	}
	rest(context.Background(), d) // as a driver that does not heed its context
	w.board.note(w.Process, logLoaded, i, v)
	if chance(w.Mix.Unstored) {
		loader.NoStore(ctx)
	}
	switch {
	case chance(w.Mix.Failing):
		return 0, errDatabase
	case gone(i, v):
		return 0, loader.ErrNotFound
	}
	return v, nil
}

var errDatabase = errors.New("the database is down")
