package entry

import (
	"context"
	"fmt"
	"time"

	"github.com/getorprime/getorprime/internal/command"
)

// Stored says what became of a fill.
type Stored int

// The outcomes of a fill.
const (
	Lost    Stored = 0 // the lease was somebody else's, or gone: nothing was written
	Done    Stored = 1
	Already Stored = 2 // an earlier delivery of the same fill had stored it
)

// Content is what a fill writes.
type Content struct {
	State   State // Value or Negative
	Flags   Flags
	Schema  uint32
	Delta   time.Duration
	Payload []byte
	Room    []byte        // a slice that Payload is the end of, with [HeaderSize] bytes before it to write the header into; nil: Payload is copied
	Fresh   time.Duration // at least 1 ms
	Hard    time.Duration // at least Fresh
}

// filling is the entry to be stored, with times that count from now.
func (c *Content) filling(tok Token, now int64) []byte {
	h := Header{
		State: c.State, Flags: c.Flags, Schema: c.Schema, Generation: tok, Delta: c.Delta,
		WrittenAt: now, FreshUntil: now + c.Fresh.Milliseconds(), HardUntil: now + c.Hard.Milliseconds(),
	}
	if c.Room != nil {
		h.AppendTo(c.Room[:0])
		return c.Room
	}
	return append(h.AppendTo(make([]byte, 0, HeaderSize+len(c.Payload))), c.Payload...)
}

// Fill stores c if the lease named by tok still stands, and ends the lease. It
// is refused later than grace after the lease's end. It may be repeated.
//
// The times of the entry are the server's, in milliseconds: as it is known here if
// that is right when the script runs, which saves the script the half of its work;
// else the script puts them right.
func (s *Store) Fill(ctx context.Context, key string, tok Token, c Content, grace time.Duration) (Stored, error) {
	now, _ := s.clockOf(ctx, key).Now()
	n, err := s.stamped(ctx, fillScript, key, tok[:], c.filling(tok, now),
		c.Fresh.Milliseconds(), c.Hard.Milliseconds(), grace.Milliseconds(), s.channel, now)
	return Stored(n), err
}

// Extend moves the end of a lease to lease from now and keeps the key alive for
// keep. It reports whether the lease is still held and whether others wait.
func (s *Store) Extend(ctx context.Context, key string, tok Token, lease, keep time.Duration) (held, waited bool, err error) {
	n, err := s.stamped(ctx, extendScript, key, tok[:], lease.Milliseconds(), keep.Milliseconds())
	return n >= 1, n == 2, err
}

// Release ends a lease and leaves what was there before. It reports whether the
// lease was still held. It may be repeated.
func (s *Store) Release(ctx context.Context, key string, tok Token) (held bool, err error) {
	n, err := s.stamped(ctx, releaseScript, key, tok[:], "", 0, s.channel)
	return n == 1, err
}

// ReleaseUnstored ends a lease, removes what was there before, and for the time
// given tells everybody who asks to load without storing and without waiting.
func (s *Store) ReleaseUnstored(ctx context.Context, key string, tok Token, d time.Duration) (held bool, err error) {
	h := Header{State: Bypass}
	n, err := s.stamped(ctx, releaseScript, key, tok[:], h.AppendTo(nil), d.Milliseconds(), s.channel)
	return n == 1, err
}

// Seize takes the lease of key whatever is there; a value stays readable. It
// returns the new lease's token. A lost reply is followed by another attempt
// with another token.
func (s *Store) Seize(ctx context.Context, key string, lease, keep time.Duration) (tok Token, err error) {
	clock := s.clockOf(ctx, key)
	err = s.persist(ctx, func() error {
		_, err := seizeScript.RunFresh(ctx, s.Sender, []any{key}, func() []any {
			tok = s.Mint()
			return []any{tok[:], lease.Milliseconds(), keep.Milliseconds(), stubOf(tok, 0)}
		})
		return err
	})
	if err != nil {
		return Token{}, s.explain(ctx, key, clock, err)
	}
	return tok, nil
}

// Kept says what became of an entry whose load failed.
type Kept int

// The outcomes of [Store.Fail].
const (
	FailLost Kept = 0 // the lease was somebody else's, or gone: nothing was written
	FailSet  Kept = 1 // the entry says that the load failed
	FailKept Kept = 2 // there is a value still; it stays, marked
)

// Fail ends a lease without a value. Everybody who asks within cool gets the
// failure instead of a lease. A value that is still servable stays; its header
// is returned with FailKept.
func (s *Store) Fail(ctx context.Context, key string, tok Token, f Failure, failures uint8, cool time.Duration) (Kept, Header, error) {
	clock := s.clockOf(ctx, key)
	h := Header{State: Failed, Generation: tok, Failures: failures}
	cmd, err := s.idempotent(ctx, failScript, key, tok[:], h.AppendTo(nil), f.encode(),
		cool.Milliseconds(), failureLinger.Milliseconds(), s.channel)
	if err != nil {
		return FailLost, Header{}, s.explain(ctx, key, clock, err)
	}
	reply, err := cmd.Slice()
	if err != nil || len(reply) != 3 {
		return FailLost, Header{}, fmt.Errorf("entry: unexpected reply %v to FAIL: %w", reply, err)
	}
	kept, _ := reply[0].(int64)
	before, _ := reply[2].(string)
	old, _, _ := Parse([]byte(before))
	return Kept(kept), old, nil
}

// Invalidate deletes an entry, whatever it is, and tells everybody.
func (s *Store) Invalidate(ctx context.Context, key string) error {
	_, err := s.idempotent(ctx, invalidateScript, key, s.channel)
	return err
}

// MarkStale makes a value stale at once, and ends its lease; it stays servable
// while it is reloaded. Anything else is deleted. It reports whether there was
// a value.
func (s *Store) MarkStale(ctx context.Context, key string) (marked bool, err error) {
	gen := s.Mint()
	n, err := s.stamped(ctx, markStaleScript, key, gen[:], s.channel)
	return n == 1, err
}

// stamped runs a script whose reply is the server's time times 4 plus a small
// number, which it returns.
func (s *Store) stamped(ctx context.Context, sc command.Script, key string, args ...any) (int, error) {
	clock := s.clockOf(ctx, key)
	sent := time.Now()
	cmd, err := s.idempotent(ctx, sc, key, args...)
	if err != nil {
		return 0, s.explain(ctx, key, clock, err)
	}
	n, err := cmd.Int64()
	if err != nil {
		return 0, err
	}
	clock.Observe(time.UnixMilli(n/4), time.Millisecond, sent)
	return int(n % 4), nil
}
