package wake

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// How long a session waits before it subscribes again, before jitter.
const (
	minRetry     = 20 * time.Millisecond
	maxRetry     = 2 * time.Second
	refusedRetry = 30 * time.Second // the server's ACL forbids SUBSCRIBE
)

// session keeps one subscription for as long as somebody watches.
//
// It reads with ReceiveTimeout rather than PubSub.Channel: the health check behind
// Channel counts a PING that could be written as a sign of life, and a peer that
// vanished without a reset accepts writes into its void for most of a minute.
type session struct {
	bus    *Bus
	ctx    context.Context
	cancel context.CancelFunc

	// Of run's goroutine.
	up     bool // the server has confirmed the subscription
	losses int  // subscriptions lost or refused in a row

	quiet time.Time // since when nobody has watched; guarded by bus.mu
}

func newSession(b *Bus) *session {
	ctx, cancel := context.WithCancel(context.Background())
	return &session{bus: b, ctx: ctx, cancel: cancel, quiet: time.Now()}
}

// run subscribes, and again after each loss, until the session is retired.
func (s *session) run() {
	defer s.cancel()
	for s.ctx.Err() == nil {
		err := s.listen()
		s.lost()
		s.pause(err)
		s.retireIfIdle()
	}
}

// listen holds one connection and returns the error that ended it.
func (s *session) listen() error {
	ctx, cancel := context.WithCancel(s.ctx)
	pubsub := s.bus.client.Subscribe(ctx) // no channel yet: nothing is dialled
	if err := pubsub.Subscribe(ctx, s.bus.channel); err != nil {
		cancel()
		_ = pubsub.Close()
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.beat(ctx, pubsub) })
	defer wg.Wait()
	defer cancel()
	return s.receive(ctx, pubsub)
}

// beat sends PINGs until ctx ends, and then closes the connection, which ends a
// blocked receive. Each PING carries its own instant, so that the answer tells how
// old the news is.
func (s *session) beat(ctx context.Context, pubsub *redis.PubSub) {
	defer pubsub.Close()
	tick := time.NewTicker(max(1, s.bus.opts.Heartbeat/3))
	defer tick.Stop()
	for {
		// A failed PING needs no answer here: the receiver notices.
		_ = pubsub.Ping(ctx, strconv.FormatInt(s.bus.now(), 10))
		select {
		case <-tick.C:
			s.retireIfIdle()
		case <-ctx.Done():
			return
		}
	}
}

// receive reads until the connection fails or is silent for a heartbeat. A timeout
// may have cut a reply in two, so a connection that timed out is never read again.
func (s *session) receive(ctx context.Context, pubsub *redis.PubSub) error {
	for {
		reply, err := pubsub.ReceiveTimeout(ctx, s.bus.opts.Heartbeat)
		if err != nil {
			return err
		}
		switch reply := reply.(type) {
		case *redis.Message:
			s.bus.dispatch(reply.Payload)
		case *redis.Subscription:
			s.established()
		case *redis.Pong:
			s.alive(reply.Payload)
		}
	}
}

// established is called when Redis has confirmed the subscription.
func (s *session) established() {
	s.up, s.losses = true, 0
	s.bus.gap()
	s.bus.wakeAll()
}

// alive notes the answer to a PING.
func (s *session) alive(payload string) {
	sent, err := strconv.ParseInt(payload, 10, 64)
	if err != nil {
		return // a proxy that does not echo the payload: never live, polls serve
	}
	s.setLiveUntil(sent + int64(s.bus.opts.Heartbeat))
}

// lost is called when a connection has ended or could not be made.
func (s *session) lost() {
	s.setLiveUntil(0)
	if s.up {
		s.up = false
		s.bus.gap()
	}
}

// setLiveUntil does nothing for a retired session, which must not speak for its
// successor.
func (s *session) setLiveUntil(at int64) {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	if s.bus.session == s {
		s.bus.liveUntil.Store(at)
	}
}

// pause waits before the next attempt, longer after each failure, at random so that
// the processes of a cluster do not return together.
func (s *session) pause(err error) {
	d := min(minRetry<<min(s.losses, 10), maxRetry)
	if redis.IsPermissionError(err) {
		d = refusedRetry
	}
	s.losses++
	timer := time.NewTimer(time.Duration(float64(d) * (0.5 + rand.Float64())))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
	}
}

// retireIfIdle ends the session when nobody has watched for the idle timeout.
func (s *session) retireIfIdle() {
	b := s.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != s || b.opts.IdleTimeout < 0 {
		return
	}
	if b.count > 0 || b.touched {
		b.touched = false
		s.quiet = time.Now()
		return
	}
	if time.Since(s.quiet) >= b.opts.IdleTimeout {
		b.retireLocked()
	}
}
