package wake

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Subscriber is the part of a go-redis client a [Bus] needs. Every
// redis.UniversalClient has it.
type Subscriber interface {
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// BusOptions changes how a [Bus] listens. The zero value is the default.
type BusOptions struct {
	// DisablePubSub keeps the Bus from ever subscribing: watches are never woken,
	// and polls serve alone. Default: false.
	DisablePubSub bool
	// Heartbeat is the time without an answer after which the connection is taken
	// for dead; a PING is sent every third of it. Default: 1 s.
	Heartbeat time.Duration
	// IdleTimeout is how long the subscription outlives the last watch; negative
	// keeps it for good. Default: 30 s.
	IdleTimeout time.Duration
	// OnMessage gets every message, before the watches of its topic are woken. It
	// is called from the receiving goroutine and must neither block nor call
	// [Bus.Close]. Default: nil.
	OnMessage func(Message)
	// OnGap is called when messages may have been missed: after every
	// (re)subscription, before the watches are woken, and after a subscription was
	// lost. The rules of OnMessage hold. Default: nil.
	OnGap func()
}

func (o *BusOptions) withDefaults() BusOptions {
	var d BusOptions
	if o != nil {
		d = *o
	}
	if d.Heartbeat <= 0 {
		d.Heartbeat = time.Second
	}
	if d.IdleTimeout == 0 {
		d.IdleTimeout = 30 * time.Second
	}
	return d
}

// Bus wakes the watches of one process when a message on its channel names their
// topic. Its methods may be called from any goroutine.
type Bus struct {
	client  Subscriber
	channel string
	opts    BusOptions
	base    time.Time // instants sent in PINGs are counted from here

	liveUntil atomic.Int64 // in ns since base; written under mu
	wg        sync.WaitGroup

	// mu guards what is below and the lists of watches.
	mu      sync.Mutex
	watches map[string]*Watch // head of each topic's list
	count   int
	touched bool     // a watch began since the last look for idleness
	session *session // nil: nobody listens
	closed  bool
}

// NewBus returns a Bus for the messages on channel. It does nothing until the first
// [Bus.Watch], and works when Redis is absent. nil opts are the defaults. Close it
// when done; the client stays the caller's.
func NewBus(client Subscriber, channel string, opts *BusOptions) *Bus {
	return &Bus{
		client:  client,
		channel: channel,
		opts:    opts.withDefaults(),
		base:    time.Now(),
		watches: make(map[string]*Watch),
	}
}

// Watch registers interest in topic and returns at once, whatever the state of
// Redis. It opens the subscription when there is none. Stop the watch when done.
// After Close it returns a watch that is never woken.
func (b *Bus) Watch(topic string) *Watch {
	w := &Watch{bus: b, topic: topic, c: make(chan struct{}, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return w
	}
	b.linkLocked(w)
	if b.session == nil && !b.opts.DisablePubSub {
		b.session = newSession(b)
		b.wg.Go(b.session.run)
	}
	return w
}

// Live reports whether messages can be trusted to arrive: the latest PING whose
// answer was processed, in order with the messages, was sent less than a heartbeat
// ago. It is false while nobody watches for long, after Close, and on a link whose
// round trip exceeds two thirds of the heartbeat.
func (b *Bus) Live() bool {
	return b.now() < b.liveUntil.Load()
}

// Watching returns the number of watches that have not been stopped.
func (b *Bus) Watching() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

// Close ends the subscription and waits for the goroutine that kept it. Watches are
// dropped without being woken: their waits go on by polls. Close may be called more
// than once. A handshake with a server that accepts connections but does not answer
// cannot be interrupted; Close then waits for the client's own timeouts.
func (b *Bus) Close() {
	b.mu.Lock()
	b.closed = true
	b.retireLocked()
	for _, w := range b.watches {
		for ; w != nil; w = b.unlinkLocked(w) {
		}
	}
	b.mu.Unlock()
	b.wg.Wait()
}

// retireLocked ends the session, if any; the next Watch may start another.
func (b *Bus) retireLocked() {
	if b.session != nil {
		b.session.cancel()
		b.session = nil
		b.liveUntil.Store(0)
	}
}

// dispatch wakes the watches of the message's topic. It runs in the receiving
// goroutine, without another hop: this is the path between a stored value and a
// crowd of waiters.
func (b *Bus) dispatch(payload string) {
	m, err := ParseMessage(payload)
	if err != nil {
		return // anyone may publish on the channel
	}
	if b.opts.OnMessage != nil {
		b.opts.OnMessage(m)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := b.watches[m.Topic]; w != nil; w = w.next {
		if m.failure() {
			w.failure, w.failed = m, true
		}
		w.wake()
	}
}

// gap tells everyone that messages may have been missed.
func (b *Bus) gap() {
	if b.opts.OnGap != nil {
		b.opts.OnGap()
	}
}

func (b *Bus) wakeAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.watches {
		for ; w != nil; w = w.next {
			w.wake()
		}
	}
}

// now is the time since base, in nanoseconds.
func (b *Bus) now() int64 { return int64(time.Since(b.base)) }
