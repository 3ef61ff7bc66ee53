package entry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/command"
)

// Store reads and writes entries of one Redis. It is safe for concurrent use.
type Store struct {
	*command.Sender
	breaker breaker
	user    redis.UniversalClient
	budget  time.Duration
	channel string

	// Mint makes the token of each attempt to get a lease. It is replaced only
	// by tests that show what a weaker token breaks.
	Mint func() Token

	// Changed is told when the circuit breaker opens or closes. It must neither
	// block nor use the store.
	Changed func(open bool)

	clock  *Clock   // of the primary, unless user is a cluster
	clocks sync.Map // node address -> *Clock, of a cluster's primaries
}

// NewStore returns a store on client. Wake-up messages go to channel. Commands
// under a context without a budget (see [command.WithBudget]) get one of their own.
func NewStore(client redis.UniversalClient, channel string, budget time.Duration) *Store {
	s := &Store{
		Sender: command.NewSender(client, budget), user: client, Changed: func(bool) {},
		budget: budget, channel: channel, Mint: NewToken, clock: newClock(),
	}
	s.breaker = newBreaker(func(open bool) { s.Changed(open) })
	return s
}

// Entry is what a key held when it was read.
type Entry struct {
	Header
	Payload []byte
	// Known is false if there was no entry: no key, or foreign bytes.
	Known bool
	// Foreign says that there were bytes of another origin or format.
	Foreign bool
	// Now is the server's time of the reading, in milliseconds since the Unix epoch.
	Now int64
}

func parse(b []byte, now int64) Entry {
	h, payload, err := Parse(b)
	return Entry{Header: h, Payload: payload, Known: err == nil, Foreign: err != nil && len(b) > 0, Now: now}
}

// WrongTypeError says that a key holds something other than a string.
type WrongTypeError struct {
	Type string // as the TYPE command names it: "list", "hash", …
}

// Error names the type.
func (e *WrongTypeError) Error() string {
	return fmt.Sprintf("key holds a %s, not a string", e.Type)
}

// Get reads an entry: one GET, or every half minute a script that reads the
// server's clock along with it.
func (s *Store) Get(ctx context.Context, key string) (Entry, error) {
	clock := s.clockOf(ctx, key)
	if clock.Due() {
		return s.timedGet(ctx, key, clock)
	}
	var b []byte
	err := s.persist(ctx, func() (err error) {
		b, err = s.Sender.Get(ctx, key)
		return err
	})
	if err != nil {
		return Entry{}, s.explain(ctx, key, clock, err)
	}
	now, known := clock.Now()
	if !known {
		// Another call's trouble made the clock unknown meanwhile.
		return s.timedGet(ctx, key, clock)
	}
	return parse(b, now), nil
}

func (s *Store) timedGet(ctx context.Context, key string, clock *Clock) (Entry, error) {
	sent := time.Now()
	cmd, err := s.idempotent(ctx, timedGetScript, key)
	if err != nil {
		return Entry{}, s.explain(ctx, key, clock, err)
	}
	reply, err := cmd.Slice()
	if err != nil || len(reply) != 3 {
		return Entry{}, fmt.Errorf("entry: unexpected reply %v to a read: %w", reply, err)
	}
	sec, _ := reply[0].(int64)
	usec, _ := reply[1].(int64)
	clock.Observe(time.Unix(sec, usec*1000), time.Microsecond, sent)
	b, _ := reply[2].(string)
	return parse([]byte(b), sec*1000+usec/1000), nil
}

// clockOf returns the clock of the primary that holds key.
func (s *Store) clockOf(ctx context.Context, key string) *Clock {
	cluster, ok := s.user.(*redis.ClusterClient)
	if !ok {
		return s.clock
	}
	if !s.Reached() {
		// To ask which primary it is would connect, without a bound.
		return newClock()
	}
	addr := ""
	if node, err := cluster.MasterForKey(ctx, key); err == nil {
		addr = node.Options().Addr
	}
	if c, ok := s.clocks.Load(addr); ok {
		return c.(*Clock)
	}
	c, _ := s.clocks.LoadOrStore(addr, newClock())
	return c.(*Clock)
}

// ForgetTime makes the server's time unknown, as if the primary had changed: the
// next read asks for it.
func (s *Store) ForgetTime() {
	s.clock.Forget()
	s.clocks.Range(func(_, c any) bool {
		c.(*Clock).Forget()
		return true
	})
}

// explain turns a failed command's error into the one to report. Where the
// primary may have changed, its clock is forgotten.
func (s *Store) explain(ctx context.Context, key string, clock *Clock, err error) error {
	if !command.IsWrongType(err) {
		if command.MayMend(err) && !errors.Is(err, ErrOpen) || errors.Is(err, command.ErrBudget) {
			clock.Forget()
		}
		return err
	}
	cmd := redis.NewStatusCmd(ctx, "type", key)
	if s.Send(ctx, cmd) != nil {
		return err
	}
	return &WrongTypeError{Type: cmd.Val()}
}
