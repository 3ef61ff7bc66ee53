package entry_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/entry"
)

// The tokens of entries that tests write.
var (
	genG = entry.Token{0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f}
	tokA = entry.Token{0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f}
	tokB = entry.Token{0: 'B', 15: 2}
)

// Entries in the states that matter, in milliseconds from now.
var (
	freshValue = spec{state: entry.Value, gen: genG, fresh: 60_000, hard: 120_000, payload: "v"}
	staleValue = spec{state: entry.Value, gen: genG, fresh: -1_000, hard: 60_000, payload: "v", failures: 2}
	goneValue  = spec{state: entry.Value, gen: genG, fresh: -2_000, hard: -1, payload: "v", failures: 3}
	held       = spec{state: entry.Stub, lease: tokA, until: 20_000}
	lapsed     = spec{state: entry.Stub, lease: tokA, until: -1}
	cooling    = spec{state: entry.Failed, gen: genG, until: 20_000, failures: 4, payload: "Fno luck"}
	cooled     = spec{state: entry.Failed, gen: genG, until: -1, failures: 4, payload: "Fno luck"}
	bypass     = spec{state: entry.Bypass}
)

func (s spec) with(change func(*spec)) spec {
	change(&s)
	return s
}

func flagged(f entry.Flags) func(*spec) { return func(s *spec) { s.flags |= f } }

func leased(until int64) func(*spec) { return func(s *spec) { s.lease, s.until = tokA, until } }

// foreign returns the bytes of s with byte i replaced.
func foreign(i int, c byte) spec {
	h := entry.Header{State: entry.Value, FreshUntil: 1 << 47, HardUntil: 1 << 47}
	b := h.AppendTo(nil)
	b[i] = c
	return spec{raw: string(b)}
}

// acquireCase is a row of the table of what ACQUIRE does. After it the key
// holds the entry of want, its lease that of the grant or the one before.
type acquireCase struct {
	name    string
	before  spec
	request []func(*ask)
	verdict entry.Verdict
	// What the answer says about the entry before.
	state    entry.State // 0: none
	payload  string
	replaced bool        // the key holds a new stub
	flags    entry.Flags // after
}

var acquireCases = []acquireCase{
	{name: "absent", verdict: entry.Grant, replaced: true},
	{name: "absent, plain set", request: reqs(cold), verdict: entry.Grant, replaced: true},
	{name: "foreign text", before: spec{raw: "hello"}, verdict: entry.Grant, replaced: true},
	{name: "foreign text, plain set refused", before: spec{raw: "hello"}, request: reqs(cold), verdict: entry.Grant, replaced: true},
	{name: "foreign text as long as a header", before: spec{raw: strings.Repeat("x", 200)}, verdict: entry.Grant, replaced: true},
	{name: "cut short", before: spec{raw: "\xf5P\x01\x01"}, verdict: entry.Grant, replaced: true},
	{name: "another format", before: foreign(2, 2), verdict: entry.Grant, replaced: true},
	{name: "state below all", before: foreign(3, 0), verdict: entry.Grant, replaced: true},
	{name: "state above all", before: foreign(3, 6), verdict: entry.Grant, replaced: true},

	{name: "fresh", before: freshValue, verdict: entry.Hit, state: entry.Value, payload: "v"},
	{name: "fresh, plain set refused", before: freshValue, request: reqs(cold), verdict: entry.Hit, state: entry.Value, payload: "v"},
	{name: "fresh not found", before: freshValue.with(func(s *spec) { s.state, s.payload = entry.Negative, "" }), verdict: entry.Hit, state: entry.Negative},
	{name: "fresh, being refreshed", before: freshValue.with(leased(20_000)), verdict: entry.Hit, state: entry.Value, payload: "v"},
	{name: "fresh, last refresh failed", before: freshValue.with(flagged(entry.LastFailed)).with(func(s *spec) { s.until = 20_000 }), verdict: entry.Hit, state: entry.Value, payload: "v", flags: entry.LastFailed},

	{name: "stale", before: staleValue, verdict: entry.Grant, state: entry.Value},
	{name: "stale, old value wanted", before: staleValue, request: reqs(old), verdict: entry.Grant, state: entry.Value, payload: "v"},
	{name: "stale not found, old value wanted", before: staleValue.with(func(s *spec) { s.state = entry.Negative }), request: reqs(old), verdict: entry.Grant, state: entry.Negative},
	{name: "stale, being refreshed", before: staleValue.with(leased(20_000)), verdict: entry.Wait, state: entry.Value, flags: entry.Waiters},
	{name: "stale, refresh lapsed", before: staleValue.with(leased(-1)).with(flagged(entry.Waiters)), verdict: entry.Grant, state: entry.Value, flags: entry.Waiters},
	{name: "stale, cooling down", before: staleValue.with(flagged(entry.LastFailed)).with(func(s *spec) { s.until = 20_000 }), verdict: entry.Cooling, state: entry.Value, flags: entry.LastFailed},
	{name: "stale, cooled down", before: staleValue.with(flagged(entry.LastFailed)).with(func(s *spec) { s.until = -1 }), verdict: entry.Grant, state: entry.Value, flags: entry.LastFailed},
	{name: "marked stale", before: freshValue.with(flagged(entry.Marked)), verdict: entry.Grant, state: entry.Value, flags: entry.Marked},
	{name: "past hard expiry", before: goneValue, verdict: entry.Grant, state: entry.Value},
	{name: "past hard expiry, old value wanted", before: goneValue, request: reqs(old), verdict: entry.Grant, state: entry.Value},
	{name: "past hard expiry, being loaded", before: goneValue.with(leased(20_000)), verdict: entry.Wait, state: entry.Value, flags: entry.Waiters},

	{name: "forced", before: freshValue, request: reqs(forced), verdict: entry.Grant, state: entry.Value},
	{name: "forced, being refreshed", before: freshValue.with(leased(20_000)), request: reqs(forced), verdict: entry.Wait, state: entry.Value, flags: entry.Waiters},
	{name: "forced unless changed, unchanged", before: freshValue, request: reqs(unless(genG)), verdict: entry.Grant, state: entry.Value},
	{name: "forced unless changed, second of two", before: freshValue, request: reqs(unless(tokB, genG)), verdict: entry.Grant, state: entry.Value},
	{name: "forced unless changed, changed", before: freshValue, request: reqs(unless(tokB)), verdict: entry.Hit, state: entry.Value, payload: "v"},
	{name: "forced unless changed, nothing seen", before: freshValue, request: reqs(unless()), verdict: entry.Hit, state: entry.Value, payload: "v"},
	{name: "forced unless changed, changed but stale", before: staleValue, request: reqs(unless(tokB)), verdict: entry.Grant, state: entry.Value},
	{name: "forced unless changed, changed but marked", before: freshValue.with(flagged(entry.Marked)), request: reqs(unless(tokB)), verdict: entry.Grant, state: entry.Value, flags: entry.Marked},

	{name: "being loaded", before: held, verdict: entry.Wait, state: entry.Stub, flags: entry.Waiters},
	{name: "being loaded, plain set refused", before: held, request: reqs(cold), verdict: entry.Wait, state: entry.Stub, flags: entry.Waiters},
	{name: "being loaded, others wait", before: held.with(flagged(entry.Waiters)), verdict: entry.Wait, state: entry.Stub, flags: entry.Waiters},
	{name: "being loaded, no wish to be woken", before: held, request: reqs(nowait), verdict: entry.Wait, state: entry.Stub},
	{name: "lease lapsed", before: lapsed, verdict: entry.Grant, state: entry.Stub},
	{name: "lease lapsed, others wait", before: lapsed.with(flagged(entry.Waiters)), verdict: entry.Grant, state: entry.Stub, flags: entry.Waiters},
	{name: "lease from a stepped clock", before: held.with(leased(65_000)), verdict: entry.Grant, state: entry.Stub},

	{name: "cooling down", before: cooling, verdict: entry.Cooling, state: entry.Failed, payload: "Fno luck"},
	{name: "cooling down, forced", before: cooling, request: reqs(forced), verdict: entry.Cooling, state: entry.Failed, payload: "Fno luck"},
	{name: "cooled down", before: cooled, verdict: entry.Grant, state: entry.Failed},
	{name: "cooled down, that load awaited", before: cooled, request: reqs(awaiting(genG)), verdict: entry.Cooling, state: entry.Failed, payload: "Fno luck"},
	{name: "cooled down, another load awaited", before: cooled, request: reqs(awaiting(tokB)), verdict: entry.Grant, state: entry.Failed},
	{name: "cooled down, loading again", before: cooled.with(leased(20_000)), request: reqs(awaiting(genG)), verdict: entry.Wait, state: entry.Failed, flags: entry.Waiters},
	{name: "not stored", before: bypass, verdict: entry.Bypassed, state: entry.Bypass},
	{name: "not stored, forced", before: bypass, request: reqs(forced), verdict: entry.Bypassed, state: entry.Bypass},
}

func reqs(r ...func(*ask)) []func(*ask) { return r }

func testAcquire(t *testing.T, b *backend) {
	for _, c := range acquireCases {
		t.Run(c.name, func(t *testing.T) {
			p := at(t, b, nil)
			p.seed(c.before)
			p.knowTime()
			before := p.now()
			got := p.wantVerdict(c.verdict, c.request...)
			c.checkAnswer(p, got)
			if got.Now < before-5 || got.Now > p.now()+5 {
				t.Errorf("the answer's time is %d ms off", got.Now-before)
			}
			c.checkAfter(p, got)
		})
	}
}

// knowTime makes the store know the server's time.
func (p *place) knowTime() {
	p.Helper()
	_, err := p.store.Get(p.Context(), "another key") // until then a cluster's nodes are unknown
	p.must(err)
	clock := p.store.ClockOf(p.Context(), p.key)
	sent := time.Now()
	at, err := p.backend.client.Time(p.Context()).Result()
	p.must(err)
	clock.Observe(at, time.Microsecond, sent)
}

func (c acquireCase) checkAnswer(p *place, got entry.Acquired) {
	p.Helper()
	if got.State != c.state || got.Known != (c.state != 0) {
		p.Errorf("state before = %v, known %v; want %v", got.State, got.Known, c.state)
	}
	if !bytes.Equal(got.Payload, []byte(c.payload)) {
		p.Errorf("payload = %q, want %q", got.Payload, c.payload)
	}
	if (c.verdict == entry.Grant) == got.Token.IsZero() {
		p.Errorf("token = %v with %v", got.Token, verdictName(got.Verdict))
	}
	if c.verdict == entry.Wait && got.Lease != tokA {
		p.Errorf("token awaited = %v, want %v", got.Lease, tokA)
	}
}

func (c acquireCase) checkAfter(p *place, got entry.Acquired) {
	p.Helper()
	h, payload, ok := p.stored()
	if !ok {
		p.Fatal("no key after ACQUIRE")
	}
	if h.Flags != c.flags {
		p.Errorf("flags after = %b, want %b", h.Flags, c.flags)
	}
	state, kept, failures, gen := c.before.state, c.before.payload, c.before.failures, c.before.gen
	if c.replaced {
		state, kept, failures, gen = entry.Stub, "", 0, entry.Token{}
	}
	if h.State != state || payload != kept || h.Failures != failures || h.Generation != gen {
		p.Errorf("after: state %v, payload %q, %d failures, generation %v; want %v, %q, %d, %v",
			h.State, payload, h.Failures, h.Generation, state, kept, failures, gen)
	}
	if c.verdict != entry.Grant {
		if h.Lease != c.before.lease {
			p.Errorf("lease after = %v, want the one before, %v", h.Lease, c.before.lease)
		}
		return
	}
	if h.Lease != got.Token || h.LeaseUntil != got.Now+lease.Milliseconds() {
		p.Errorf("lease after = %v, ends in %d ms; want %v, %v", h.Lease, h.LeaseUntil-got.Now, got.Token, lease)
	}
	if ttl := p.pttl(); ttl < keep-10*time.Second {
		p.Errorf("the key lives %v more, want %v", ttl, keep)
	}
}

func testForeignRead(t *testing.T, b *backend) {
	for name, s := range map[string]spec{
		"text": {raw: "hello"}, "short": {raw: "\xf5P\x01"}, "format": foreign(2, 2), "state": foreign(3, 9),
	} {
		t.Run(name, func(t *testing.T) {
			p := at(t, b, nil)
			p.seed(s)
			for range 2 { // with and without the clock
				got, err := p.store.Get(t.Context(), p.key)
				p.must(err)
				if got.Known || !got.Foreign {
					t.Errorf("known %v, foreign %v; want a foreign miss", got.Known, got.Foreign)
				}
			}
			p.wantFill(entry.Done, p.grant(), "mine")
			got, err := p.store.Get(t.Context(), p.key)
			p.must(err)
			if !got.Known || string(got.Payload) != "mine" {
				t.Errorf("after the fill: %q, known %v", got.Payload, got.Known)
			}
		})
	}
}

func testWrongType(t *testing.T, b *backend) {
	p := at(t, b, nil)
	p.seed(spec{asAList: true})
	_, timed := p.store.Get(t.Context(), p.key)
	p.knowTime()
	_, plain := p.store.Get(t.Context(), p.key)
	_, script := p.try(t.Context())
	_, set := p.try(t.Context(), cold)
	_, mark := p.store.MarkStale(t.Context(), p.key)
	_, seize := p.store.Seize(t.Context(), p.key, lease, keep)
	for name, err := range map[string]error{"timed read": timed, "read": plain, "acquire": script, "cold acquire": set, "mark stale": mark, "seize": seize} {
		var wrong *entry.WrongTypeError
		if !errors.As(err, &wrong) || wrong.Type != "list" || !strings.Contains(err.Error(), "list") {
			t.Errorf("%s of a list: %v, want a *WrongTypeError naming it", name, err)
		}
	}
	p.must(p.store.Invalidate(t.Context(), p.key))
	p.grant()
}
