package lockhttp

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/getorprime/getorprime/lock"
)

// Middleware returns a middleware that lets one request at a time, over all
// processes, have the resource that key names: see the package comment for what
// it does and answers. Nil opts are the defaults. It may wrap any number of
// handlers; those that share a resource need the same Prefix.
//
// The error names everything that is wrong with the arguments.
func Middleware(locker *lock.Locker, key KeyFunc, opts *Options) (func(http.Handler) http.Handler, error) {
	o := opts.withDefaults()
	err := errors.Join(
		problem("locker", "nil", locker != nil, "must be one of lock.New"),
		problem("key", "nil", key != nil, "must say which resource a request is for"),
		o.validate(),
	)
	if err != nil {
		return nil, err
	}
	g := &guard{locker: locker, key: key, opts: o, want: o.acquire(), log: newJournal(o.Logger)}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, next) })
	}, nil
}

// guard is what the handlers of one middleware share.
type guard struct {
	locker *lock.Locker
	key    KeyFunc
	opts   Options
	want   *lock.AcquireOptions
	holds  smoothed // how long handlers held the lock
	log    *journal
}

func (g *guard) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if !slices.Contains(g.opts.Methods, r.Method) {
		next.ServeHTTP(w, r)
		return
	}
	key, err := g.keyOf(r)
	if err != nil {
		g.refuseKey(w, r, err)
		return
	}
	lease, err := g.acquire(r.Context(), g.opts.Prefix+key)
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	header := w.Header().Clone()
	g.showFence(w, lease)
	answer := &response{ResponseWriter: w}
	err = g.handle(answer, r, lease, next)
	if errors.Is(err, lock.ErrLost) && !answer.written {
		// What the handler has set was for an answer of its own.
		clear(w.Header())
		maps.Copy(w.Header(), header)
		reply(w, lost, g.retryAfter())
	}
}

func (g *guard) acquire(ctx context.Context, name string) (*lock.Lease, error) {
	if g.opts.Wait > 0 {
		return g.locker.Acquire(ctx, name, g.want)
	}
	return g.locker.TryAcquire(ctx, name, g.want)
}

// showFence tells the client the fence. It came along with the lock, so that
// nothing is asked here that could fail.
func (g *guard) showFence(w http.ResponseWriter, lease *lock.Lease) {
	if g.opts.FenceHeader == "" {
		return
	}
	if fence, err := lease.Fence(lease.Context()); err == nil {
		w.Header().Set(g.opts.FenceHeader, strconv.FormatInt(fence, 10))
	}
}

// handle calls the handler and then releases the lock, whichever way the handler
// ends; a panic is not caught, so it goes on with its own stack. The error is that
// of the release, which also tells whether the lock was lost before.
func (g *guard) handle(w *response, r *http.Request, lease *lock.Lease, next http.Handler) (err error) {
	since := time.Now()
	defer func() {
		err = lease.Release(r.Context())
		g.holds.add(time.Since(since))
		if err != nil {
			g.log.note(r, notReleased, err)
		}
	}()
	next.ServeHTTP(w, r.WithContext(lease.Context()))
	return nil
}

// refuse answers a request that did not get the lock.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, lock.ErrNotAcquired):
		reply(w, locked(g.opts.Status), g.retryAfter())
	case errors.Is(err, lock.ErrUnavailable), errors.Is(err, lock.ErrClosed), errors.Is(err, lock.ErrLost):
		g.log.note(r, notAcquired, err)
		reply(w, unavailable, max(1, seconds(g.opts.RetryAfter)))
	default:
		g.log.note(r, notAcquired, err)
		reply(w, problemOf(http.StatusInternalServerError, "The lock of this resource cannot be used; the server's log says why."), 0)
	}
}

// retryAfter is in how many seconds the resource may be free.
func (g *guard) retryAfter() int {
	if g.opts.RetryAfter > 0 {
		return seconds(g.opts.RetryAfter)
	}
	return max(1, seconds(g.holds.mean()))
}
