package lock

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/command"
	"github.com/getorprime/getorprime/internal/lease"
	"github.com/getorprime/getorprime/internal/wake"
)

// Locker acquires locks in one Redis. It is safe for concurrent use; a process
// needs one.
type Locker struct {
	opts   Options
	client redis.UniversalClient
	sender *command.Sender
	keeper lease.Keeper
	bus    *wake.Bus
	stop   context.Context
	cancel context.CancelCauseFunc

	// Arguments of scripts, boxed once.
	process  any // how other processes name this one
	prefix   any // what the names of the processes' channels begin with
	everyone any // 1: PUBLISH does not tell whether anybody listened
	lifetime any // TTL in milliseconds

	leaving sync.WaitGroup // what is being given back without anybody waiting for it

	mu      sync.Mutex // guards what follows
	closed  bool
	callers int // who are acquiring a lock
	held    map[*Lease]struct{}
	asking  map[string]*Lease // who asks without waiting, by key
	empty   chan struct{}     // closed when nothing is held and nobody acquires, after Close
	lines   map[string]*line  // who waits in this process, by key
}

// New returns a locker on client. It neither connects nor starts anything. The
// error names every field of opts that is wrong; nil opts are the defaults.
//
// Give it a Redis whose maxmemory-policy is noeviction: a lock that is evicted is
// lost, and its holder learns of that at the next renewal only.
func New(client redis.UniversalClient, opts *Options) (*Locker, error) {
	if err := checkClient(client); err != nil {
		return nil, err
	}
	o := opts.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	l := &Locker{
		opts: o, client: client, sender: command.NewSender(client, o.RedisBudget),
		held: map[*Lease]struct{}{}, asking: map[string]*Lease{}, lines: map[string]*line{},
	}
	tok := newToken()
	prefix, process := o.Namespace+"lock:", hex.EncodeToString(tok[:])
	l.prefix, l.process, l.lifetime = prefix, process, o.TTL.Milliseconds()
	_, cluster := client.(*redis.ClusterClient)
	l.everyone = command.Digit(cluster)
	l.stop, l.cancel = context.WithCancelCause(context.Background())
	l.bus = wake.NewBus(client, prefix+process, &wake.BusOptions{DisablePubSub: o.DisablePubSub})
	return l, nil
}

// newToken returns 128 random bits.
func newToken() (tok [16]byte) {
	rand.Read(tok[:])
	return tok
}

// Close refuses whoever comes and ends all waiting with [ErrClosed]. It then
// waits until what is held has been released, or until ctx ends: then it cancels
// the contexts of the leases that are left, which lapse within their TTL, and
// returns an error that tells how many. It may be called more than once.
func (l *Locker) Close(ctx context.Context) error {
	empty := l.refuse()
	l.cancel(ErrClosed)
	select {
	case <-empty:
		return l.stopped(ctx, &l.leaving)
	case <-ctx.Done():
		return errors.Join(l.forsake(context.Cause(ctx)), l.stopped(ctx, nil))
	}
}

// refuse lets nobody in any more, and returns what is closed when all are gone.
func (l *Locker) refuse() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed, l.empty = true, make(chan struct{})
		l.emptyLocked()
	}
	return l.empty
}

// stopped ends renewing and listening, after leaving if that is given, and returns
// when that is done. A handshake with a server that does not answer cannot be
// interrupted; it is left to its own timeout when ctx ends.
func (l *Locker) stopped(ctx context.Context, leaving *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if leaving != nil {
			leaving.Wait()
		}
		l.keeper.Close()
		l.bus.Close()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// enter counts a caller in, unless the locker was closed. It is followed by exit.
func (l *Locker) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.callers++
	}
	return !l.closed
}

func (l *Locker) exit() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.callers--
	l.emptyLocked()
}

// emptyLocked tells who closed the locker when nothing is held any more and
// nobody acquires.
func (l *Locker) emptyLocked() {
	if l.closed && len(l.held) == 0 && l.callers == 0 {
		select {
		case <-l.empty:
		default:
			close(l.empty)
		}
	}
}

// forsake cancels the contexts of all leases.
func (l *Locker) forsake(why error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for h := range l.held {
		h.cancel(ErrClosed)
	}
	if n := len(l.held); n > 0 {
		return fmt.Errorf("lock: closed with %d leases held: %w", n, why)
	}
	return nil
}

// Stats is what a locker does just now.
type Stats struct {
	Held    int // leases held
	Waiting int // callers waiting for a lock
}

// Stats returns what the locker does just now.
func (l *Locker) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Stats{Held: len(l.held)}
	for _, ln := range l.lines {
		s.Waiting += ln.waiters.Len()
	}
	return s
}
