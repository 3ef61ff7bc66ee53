package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/getorprime/getorprime/internal/bench/monotime"
	"github.com/getorprime/getorprime/internal/origin"
	"github.com/getorprime/getorprime/internal/proxy"
)

// Stage is where one strategy runs: its workers, and what the scenario may do to them and to the way to the server.
type Stage struct {
	Options   *Options
	namespace string
	ours      bool
	fleet     *fleet
	server    *server
	board     *board
	unmap     func()
	proxy     *proxy.Proxy // nil unless the scenario has faults
}

// event is something that happens while callers call.
type event struct {
	at time.Duration // after the start
	do func(ctx context.Context) error
}

// Herd makes one call of id by every caller of every process, all released at one instant, and returns what was seen. Loads of id take
// load. Callers that are not back after the [Outcome]'s Bound are cut off with an error.
func (s *Stage) Herd(ctx context.Context, id string, load time.Duration, mode origin.Mode, events ...event) (*Outcome, error) {
	call := order{Do: doCall, ID: id, Callers: s.Options.Callers, Load: load, Mode: mode, Bound: callBound(load)}
	return s.herd(ctx, call, events)
}

// post is Herd for requests to the workers' endpoints.
func (s *Stage) post(ctx context.Context, load time.Duration) (*Outcome, error) {
	return s.herd(ctx, order{Do: doCall, Post: true, Callers: s.Options.Callers, Load: load, Bound: callBound(load)}, nil)
}

func (s *Stage) herd(ctx context.Context, call order, events []event) (*Outcome, error) {
	if _, err := s.fleet.each(ctx, answerSlack, call); err != nil {
		return nil, err
	}
	return s.press(ctx, call.Bound, order{Do: doRelease}, events)
}

// Drive makes calls over some time: the options' Rate of calls per second over all processes, or as many as Callers can make.
func (s *Stage) Drive(ctx context.Context, d drive, events ...event) (*Outcome, error) {
	o := s.Options
	d.Rate, d.Writes = d.Rate/float64(o.Processes), d.Writes/float64(o.Processes)
	d.Callers = max(d.Callers, 1)
	d.Keys = max(d.Keys, 1)
	if d.Patience == 0 {
		d.Patience = callBound(d.Load)
	}
	if d.Blocked == 0 {
		d.Blocked = max(d.Load*9/10, 20*time.Millisecond)
	}
	return s.press(ctx, d.Duration+d.Patience, order{Do: doDrive, Drive: &d}, events)
}

// fill reads each of so many keys once.
func (s *Stage) fill(ctx context.Context, keys int) error {
	o, err := s.Drive(ctx, drive{Keys: keys, Callers: 16, Sweep: true, Load: s.Options.Load, Duration: time.Minute})
	if err == nil && o.Errors > 0 {
		err = fmt.Errorf("%s failed while the cache was filled: %s", count(o.Errors, "read"), o.FirstError)
	}
	return err
}

// press has all workers call from one instant on, and meanwhile lets things happen.
func (s *Stage) press(ctx context.Context, bound time.Duration, o order, events []event) (*Outcome, error) {
	counted, first := s.server.watchCommands(ctx), s.board.loads.Load()
	o.At = monotime.Now().Add(releaseLead(len(s.fleet.workers)))
	happening, stop := context.WithCancel(ctx)
	defer stop()
	var scene errgroup.Group
	for _, e := range events {
		scene.Go(func() error {
			if monotime.SleepUntil(happening, o.At.Add(e.at)) != nil {
				return nil // all callers are back: it would change nothing
			}
			return e.do(ctx)
		})
	}
	sum, err := s.fleet.press(ctx, bound, o)
	stop()
	if err := errors.Join(err, scene.Wait()); err != nil {
		return nil, err
	}
	out := newOutcome(sum, o.At, s.board.since(first))
	out.Loads, out.Bound = int(s.board.loads.Load()-first), bound
	out.Commands, out.Series.Commands = counted()
	return out, nil
}

// warmUp has the workers meet on another key: first absent, so that whatever a strategy sets up for waiting is there, then present, so
// that every caller has a connection.
func (s *Stage) warmUp(ctx context.Context) error {
	for range 2 {
		o, err := s.Herd(ctx, "warm", warmLoad, origin.Works)
		if err != nil {
			return err
		}
		if o.Errors == o.Calls {
			return fmt.Errorf("no caller got a value while warming up: %s", o.FirstError)
		}
	}
	return nil
}

// warmLoad is how long a load takes while workers warm up: long enough that callers meet, whatever --load is.
const warmLoad = 20 * time.Millisecond

// leader returns the worker that is loading, and waits for one.
func (s *Stage) leader(ctx context.Context) (int, error) {
	for {
		for i := range s.fleet.workers {
			if s.board.loading[i].Load() > 0 {
				return i, nil
			}
		}
		if err := monotime.Sleep(ctx, time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// kill ends a worker with SIGKILL. What its callers saw is lost with it.
func (s *Stage) kill(i int) error {
	p := s.fleet.workers[i]
	p.dead.Store(true)
	return p.cmd.Process.Kill()
}

// change commits a new version of record k and tells Redis in the way of a program of another kind, a plain DEL.
func (s *Stage) change(ctx context.Context, k int) error {
	return s.board.rows[k].change(func() error { return s.server.admin.Del(ctx, s.namespace+keyID(k)).Err() })
}
