package entry_test

import (
	"slices"
	"time"

	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/wake"
)

// model is what one key holds, as the rules of the protocol say: the oracle that
// random sequences of calls are compared with. It is written from the rules,
// not from the scripts. Instants are the server's, in milliseconds.
type model struct {
	now     int64
	content kind
	entry.Header
	payload string
	expires int64
	heard   []wake.Message // published, topics left out
}

// kind is what a key holds.
type kind int

const (
	absent  kind = iota
	alien        // bytes that are no entry
	present      // an entry
)

// lingering is how long a failure outlives its cool-down, in milliseconds.
const lingering = 10_000

// pass lets time go by.
func (m *model) pass(d time.Duration) {
	m.now += d.Milliseconds()
	if m.content != absent && m.now >= m.expires {
		m.remove()
	}
}

func (m *model) remove() { m.content, m.Header, m.payload = absent, entry.Header{}, "" }

// put replaces whatever is there.
func (m *model) put(h entry.Header, payload string, ttl int64) {
	m.content, m.Header, m.payload, m.expires = present, h, payload, m.now+ttl
}

func (m *model) putAlien(ttl time.Duration) {
	m.remove()
	m.content, m.payload, m.expires = alien, "by hand", m.now+ttl.Milliseconds()
}

func (m *model) say(kind wake.Kind, tok entry.Token, text string) {
	m.heard = append(m.heard, wake.Message{Kind: kind, Token: tok, Text: text})
}

// answers reports whether there is a value, or a "not found".
func (m *model) answers() bool {
	return m.content == present && (m.State == entry.Value || m.State == entry.Negative)
}

func (m *model) servable() bool { return m.answers() && m.now < m.HardUntil }

func (m *model) fresh() bool {
	return m.servable() && m.now < m.FreshUntil && !m.Flags.Has(entry.Marked)
}

func (m *model) leased() bool { return m.content == present && !m.Lease.IsZero() }

func (m *model) heldBy(tok entry.Token) bool { return m.leased() && m.Lease == tok }

// live reports whether the lease is neither over nor from a stepped clock.
func (m *model) live() bool {
	return m.leased() && m.now < m.LeaseUntil && m.LeaseUntil <= m.now+60_000
}

// cooling reports whether the last load failed and nobody shall try again yet.
func (m *model) cooling(awaited entry.Token) bool {
	switch {
	case m.leased():
		return false
	case m.State == entry.Failed:
		return m.now < m.LeaseUntil || m.Generation == awaited
	default:
		return m.answers() && m.Flags.Has(entry.LastFailed) && m.now < m.LeaseUntil
	}
}

// good reports whether a value that is fresh will do.
func good(r entry.Request, gen entry.Token) bool {
	return r.Force == entry.Unforced || r.Force == entry.ForcedUnless && !slices.Contains(r.Seen, gen)
}

// acquire returns the verdict and the payload that comes with it. The token of
// a grant is left to be set.
func (m *model) acquire(r entry.Request) (entry.Verdict, string) {
	lease, keep := r.Lease.Milliseconds(), r.Keep.Milliseconds()
	switch {
	case m.content != present:
		m.put(entry.Header{State: entry.Stub, LeaseUntil: m.now + lease}, "", keep)
		return entry.Grant, ""
	case m.fresh() && good(r, m.Generation):
		return entry.Hit, m.payload
	case m.leased() && slices.Contains(r.Mine, m.Lease):
		return m.grant(r)
	case m.live():
		if !r.NoWait {
			m.Flags |= entry.Waiters
		}
		return entry.Wait, ""
	case m.cooling(r.Await) && m.State == entry.Failed:
		return entry.Cooling, m.payload
	case m.cooling(r.Await):
		return entry.Cooling, ""
	case m.State == entry.Bypass:
		return entry.Bypassed, ""
	}
	return m.grant(r)
}

func (m *model) grant(r entry.Request) (entry.Verdict, string) {
	m.LeaseUntil = m.now + r.Lease.Milliseconds()
	m.keep(r.Keep)
	if r.Old && m.servable() && m.State == entry.Value {
		return entry.Grant, m.payload
	}
	return entry.Grant, ""
}

// keep makes the key live for at least d.
func (m *model) keep(d time.Duration) { m.expires = max(m.expires, m.now+d.Milliseconds()) }

func (m *model) extend(tok entry.Token, lease, keep time.Duration) (held, waited bool) {
	if !m.heldBy(tok) {
		return false, false
	}
	m.LeaseUntil = m.now + lease.Milliseconds()
	m.keep(keep)
	return true, m.Flags.Has(entry.Waiters)
}

func (m *model) fill(tok entry.Token, c entry.Content, grace time.Duration) entry.Stored {
	switch {
	case m.answers() && m.Generation == tok:
		return entry.Already
	case !m.heldBy(tok) || m.now > m.LeaseUntil+grace.Milliseconds():
		return entry.Lost
	}
	if m.Flags&(entry.Waiters|entry.Local) != 0 {
		m.say(wake.Stored, tok, "")
	}
	m.put(entry.Header{
		State: c.State, Flags: c.Flags, Schema: c.Schema, Generation: tok, Delta: c.Delta,
		WrittenAt: m.now, FreshUntil: m.now + c.Fresh.Milliseconds(), HardUntil: m.now + c.Hard.Milliseconds(),
	}, string(c.Payload), c.Hard.Milliseconds())
	return entry.Done
}

func (m *model) fail(tok entry.Token, f entry.Failure, failures uint8, cool time.Duration) entry.Kept {
	if !m.heldBy(tok) {
		return entry.FailLost
	}
	kind := wake.Failed
	if f.Panic {
		kind = wake.Panicked
	}
	m.say(kind, tok, f.Message)
	until, linger := m.now+cool.Milliseconds(), cool.Milliseconds()+lingering
	if !m.servable() {
		m.put(entry.Header{State: entry.Failed, Generation: tok, Failures: failures, LeaseUntil: until}, string(rune(kind))+f.Message, linger)
		return entry.FailSet
	}
	m.Flags = m.Flags&^entry.Waiters | entry.LastFailed
	m.Failures, m.Lease, m.LeaseUntil = failures, entry.Token{}, until
	m.expires = max(m.HardUntil, m.now+linger)
	return entry.FailKept
}

func (m *model) release(tok entry.Token) bool {
	if !m.heldBy(tok) {
		return false
	}
	if m.Flags.Has(entry.Waiters) {
		m.say(wake.Released, tok, "")
	}
	m.Flags &^= entry.Waiters
	m.Lease, m.LeaseUntil = entry.Token{}, 0
	switch {
	case m.servable():
		m.expires = m.HardUntil
	case m.State == entry.Failed:
		m.expires = m.now + lingering
	default:
		m.remove()
	}
	return true
}

func (m *model) releaseUnstored(tok entry.Token, d time.Duration) bool {
	if !m.heldBy(tok) {
		return false
	}
	if m.Flags.Has(entry.Waiters) {
		m.say(wake.Released, tok, "")
	}
	m.put(entry.Header{State: entry.Bypass}, "", d.Milliseconds())
	return true
}

// seize leaves the token to be set.
func (m *model) seize(lease, keep time.Duration) {
	if m.servable() {
		m.LeaseUntil = m.now + lease.Milliseconds()
		m.keep(keep)
		return
	}
	h := entry.Header{State: entry.Stub, LeaseUntil: m.now + lease.Milliseconds()}
	if m.content == present {
		h.Flags = m.Flags & entry.Waiters
	}
	m.put(h, "", keep.Milliseconds())
}

func (m *model) invalidate() {
	m.remove()
	m.say(wake.Invalidated, entry.Token{}, "")
}

func (m *model) markStale(gen entry.Token) bool {
	m.say(wake.MarkedStale, gen, "")
	if !m.servable() || m.State != entry.Value {
		m.remove()
		return false
	}
	m.Generation, m.Lease, m.LeaseUntil = gen, entry.Token{}, 0
	m.Flags = m.Flags&(entry.Nil|entry.Local|entry.Compressed) | entry.Marked
	m.expires = m.HardUntil
	return true
}
