package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// What is allowed for things that take the longer the more processes share the machine.
const (
	startBound     = 20 * time.Second
	startPerWorker = 250 * time.Millisecond
	answerSlack    = 20 * time.Second
	leadBase       = 20 * time.Millisecond
	leadPerWorker  = 2 * time.Millisecond
	endBound       = 5 * time.Second
)

// releaseLead is how far ahead the common start must lie for every worker to hear of it before.
func releaseLead(workers int) time.Duration {
	return leadBase + time.Duration(workers)*leadPerWorker
}

// fleet is the worker processes of one strategy.
type fleet struct{ workers []*process }

// startFleet starts workers and returns when all are connected. It ends those it started if one fails.
func startFleet(ctx context.Context, s setup) (*fleet, error) {
	f := &fleet{}
	for range s.Processes {
		p, err := startProcess(s.Processes)
		if err != nil {
			f.close()
			return nil, err
		}
		f.workers = append(f.workers, p)
	}
	_, err := f.exchange(ctx, startBound+time.Duration(s.Processes)*startPerWorker, func(i int) order {
		mine := s
		mine.Process = i
		return order{Do: doOpen, Open: &mine}
	})
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// each gives all workers the same order.
func (f *fleet) each(ctx context.Context, limit time.Duration, o order) ([]reply, error) {
	return f.exchange(ctx, limit, func(int) order { return o })
}

// press gives all workers an order that has them call, and adds up what those saw that are alive afterwards.
func (f *fleet) press(ctx context.Context, limit time.Duration, o order) (*result, error) {
	replies, err := f.each(ctx, limit+answerSlack, o)
	if err != nil {
		return nil, err
	}
	var sum result
	for _, r := range replies {
		if r.Result != nil {
			sum.join(r.Result)
		}
	}
	return &sum, nil
}

// exchange gives each worker its order and collects the replies. When ctx ends, limit has passed or one worker fails, it kills them all:
// a read from a worker has no other end.
func (f *fleet) exchange(ctx context.Context, limit time.Duration, orderOf func(i int) order) ([]reply, error) {
	late := fmt.Errorf("bench: the workers did not answer within %v", limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	stop := context.AfterFunc(ctx, f.kill)
	defer stop()
	replies := make([]reply, len(f.workers))
	var group errgroup.Group
	for i, p := range f.workers {
		if p.dead.Load() {
			continue
		}
		group.Go(func() (err error) {
			if replies[i], err = p.exchange(orderOf(i)); err != nil {
				f.kill()
				return fmt.Errorf("bench: worker %d: %w", i, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		return nil, err
	}
	return replies, context.Cause(ctx)
}

func (f *fleet) kill() {
	for _, p := range f.workers {
		p.kill()
	}
}

// close ends the workers: by the end of their input, and those that do not heed it in time by force. It returns when all are gone.
func (f *fleet) close() {
	for _, p := range f.workers {
		p.in.Close()
	}
	timer := time.AfterFunc(endBound, f.kill)
	defer timer.Stop()
	for _, p := range f.workers {
		// How a worker ended says nothing: what mattered was in its replies.
		_ = p.cmd.Wait()
	}
}
