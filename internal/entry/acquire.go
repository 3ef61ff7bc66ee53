package entry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/command"
)

// Verdict is the answer to an attempt to get the lease of an entry.
type Verdict int

// The verdicts. What [Acquired.Entry] holds is said with each.
const (
	Grant    Verdict = 1 // the lease is the caller's; the entry as it was before
	Hit      Verdict = 2 // no load is needed: the entry
	Wait     Verdict = 3 // another lease is live: its header
	Cooling  Verdict = 4 // the last load failed, and its cool-down lasts: the entry or its header
	Bypassed Verdict = 5 // do not store, do not wait
)

// Force says when a value that is still fresh is to be loaded all the same.
type Force int

// The degrees of force.
const (
	Unforced     Force = 0 // never
	Forced       Force = 1 // always
	ForcedUnless Force = 2 // unless its generation is not among Request.Seen
)

// Request says what kind of lease is wanted.
type Request struct {
	Lease  time.Duration // how long until it lapses without EXTEND
	Keep   time.Duration // how long the key must live at least: load timeout + lease
	Force  Force
	Seen   []Token // with ForcedUnless: generations that are not good enough
	Await  Token   // the lease waited for so far, zero if none: its failure is accepted at any time
	NoWait bool    // a live lease is no reason to be woken
	Old    bool    // return the value that is being replaced
	// Mine are tokens of earlier attempts whose replies were lost: a lease with
	// one of them is the caller's. Claim and Acquire add to them.
	Mine []Token
}

// Acquired is the answer to a [Request].
type Acquired struct {
	Verdict
	Entry
	Token Token // of the lease, with Grant
}

// Claim tries to win a key that was just seen to be absent, with SET NX and a
// stub built here, at a tenth of the cost of a script. Won is false if the key
// is not absent after all, if the server's time is not known, or if the reply
// was lost; [Store.Acquire] then tells which.
func (s *Store) Claim(ctx context.Context, key string, r *Request) (got Acquired, won bool) {
	now, known := s.clockOf(ctx, key).Now()
	if !known {
		return Acquired{}, false
	}
	tok := s.Mint()
	stub := stubOf(tok, now+r.Lease.Milliseconds())
	cmd := redis.NewCmd(ctx, "set", key, stub, "px", r.Keep.Milliseconds(), "nx")
	switch err := s.Send(ctx, command.Once{Cmd: cmd}); {
	case err == nil:
		return Acquired{Verdict: Grant, Token: tok, Entry: Entry{Now: now}}, true
	case !errors.Is(err, redis.Nil):
		r.Mine = append(r.Mine, tok)
	}
	return Acquired{}, false
}

// Acquire asks for the lease of key.
//
// Each attempt has a token of its own and is sent once; after a lost reply the
// next attempt names the earlier tokens, so that a lease got without knowing is
// recognised. If all fail, an attempt is made to release what may have been got.
func (s *Store) Acquire(ctx context.Context, key string, r *Request) (got Acquired, err error) {
	clock := s.clockOf(ctx, key)
	err = s.persist(ctx, func() (err error) {
		got, err = s.acquire(ctx, key, clock, r)
		return err
	})
	if err != nil {
		if !command.IsFull(err) {
			s.Abandon(ctx, key, r)
		}
		return Acquired{}, s.explain(ctx, key, clock, err)
	}
	if got.Verdict == Grant {
		// Until then a late copy of an earlier attempt may still get the lease.
		r.Mine = r.Mine[:0]
	}
	return got, nil
}

// acquire runs the script once.
func (s *Store) acquire(ctx context.Context, key string, clock *Clock, r *Request) (Acquired, error) {
	sent := time.Now()
	var tok Token
	cmd, err := acquireScript.RunFresh(ctx, s.Sender, []any{key}, func() []any {
		mine := concat(r.Mine)
		tok = s.Mint()
		r.Mine = append(r.Mine, tok)
		return []any{
			tok[:], r.Lease.Milliseconds(), r.Keep.Milliseconds(), stubOf(tok, 0), int(r.Force),
			concat(r.Seen), mine, awaited(r.Await), command.Digit(r.NoWait), command.Digit(r.Old),
		}
	})
	if err != nil {
		return Acquired{}, err
	}
	return readAcquired(cmd, tok, clock, sent)
}

func readAcquired(cmd *redis.Cmd, tok Token, clock *Clock, sent time.Time) (Acquired, error) {
	reply, err := cmd.Slice()
	if err != nil || len(reply) != 3 {
		return Acquired{}, fmt.Errorf("entry: unexpected reply %v to ACQUIRE: %w", reply, err)
	}
	verdict, _ := reply[0].(int64)
	now, _ := reply[1].(int64)
	b, _ := reply[2].(string)
	clock.Observe(time.UnixMilli(now), time.Millisecond, sent)
	got := Acquired{Verdict: Verdict(verdict), Entry: parse([]byte(b), now)}
	if got.Verdict == Grant {
		got.Token = tok
	}
	return got, nil
}

// Abandon releases leases that may have been granted to r in replies that were
// lost, as far as the budget of the call allows: they lapse by themselves. It
// goes on when ctx is cancelled.
func (s *Store) Abandon(ctx context.Context, key string, r *Request) {
	ctx = command.Detached(ctx, s.budget/4)
	for _, t := range r.Mine {
		if _, err := s.Release(ctx, key, t); err != nil {
			return
		}
	}
}

func stubOf(tok Token, until int64) []byte {
	h := Header{State: Stub, Lease: tok, LeaseUntil: until}
	return h.AppendTo(make([]byte, 0, HeaderSize))
}

func awaited(t Token) []byte {
	if t.IsZero() {
		return nil
	}
	return t[:]
}
