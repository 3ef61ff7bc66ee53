package entry_test

import (
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/entry"
)

// leaseCase is a row of the table of what a script does with the lease of tokA.
type leaseCase struct {
	name   string
	before spec
	do     func(*place) (int, error)
	want   int
	after  *spec // times left out; nil: the key is gone
	heard  string
	about  entry.Token // of the messages
	// The lease's end and the key's life after, where they matter.
	until, life time.Duration
}

func (p *place) fillAs(s entry.State, f entry.Flags) (int, error) {
	c := content("new")
	c.State, c.Flags, c.Schema, c.Delta = s, f, 7, 3*time.Millisecond
	n, err := p.store.Fill(p.Context(), p.key, tokA, c, grace)
	return int(n), err
}

func doFill(p *place) (int, error) { return p.fillAs(entry.Value, 0) }

func doExtend(p *place) (int, error) {
	held, waited, err := p.store.Extend(p.Context(), p.key, tokA, lease, keep)
	return bit(held) + bit(waited), err
}

func doFail(p *place) (int, error) {
	n, _, err := p.store.Fail(p.Context(), p.key, tokA, entry.Failure{Message: "no luck"}, 9, cool)
	return int(n), err
}

func doPanic(p *place) (int, error) {
	n, _, err := p.store.Fail(p.Context(), p.key, tokA, entry.Failure{Message: "no luck", Panic: true}, 9, cool)
	return int(n), err
}

func doRelease(p *place) (int, error) {
	held, err := p.store.Release(p.Context(), p.key, tokA)
	return bit(held), err
}

func doBypass(p *place) (int, error) {
	held, err := p.store.ReleaseUnstored(p.Context(), p.key, tokA, time.Second)
	return bit(held), err
}

func doInvalidate(p *place) (int, error) { return 0, p.store.Invalidate(p.Context(), p.key) }

func doMark(p *place) (int, error) {
	marked, err := p.store.MarkStale(p.Context(), p.key)
	return bit(marked), err
}

func doSeize(p *place) (int, error) {
	_, err := p.store.Seize(p.Context(), p.key, lease, keep)
	return 0, err
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

var (
	leasedStale = staleValue.with(leased(20_000))
	leasedGone  = goneValue.with(leased(20_000))
	othersLease = held.with(func(s *spec) { s.lease = tokB })
	filled      = spec{state: entry.Value, gen: tokA, payload: "new"}
	unleased    = spec{state: entry.Value, gen: genG, payload: "v", failures: 2}
	failedNow   = spec{state: entry.Failed, gen: tokA, failures: 9, payload: "Fno luck"}
)

func waiting(s *spec) { s.flags |= entry.Waiters }

var leaseCases = []leaseCase{
	{name: "FILL", before: held, do: doFill, want: int(entry.Done), after: &filled, life: hard},
	{name: "FILL, others wait", before: held.with(waiting), do: doFill, want: int(entry.Done), after: &filled, heard: "S", about: tokA, life: hard},
	{name: "FILL not found", before: held, do: func(p *place) (int, error) { return p.fillAs(entry.Negative, 0) }, want: int(entry.Done), after: new(filled.with(func(s *spec) { s.state = entry.Negative })), life: hard},
	{name: "FILL over a value", before: leasedStale, do: doFill, want: int(entry.Done), after: &filled, life: hard},
	{name: "FILL over a value with local copies", before: leasedStale.with(flagged(entry.Local)), do: doFill, want: int(entry.Done), after: &filled, heard: "S", about: tokA},
	{name: "FILL with local copies to come", before: held, do: func(p *place) (int, error) { return p.fillAs(entry.Value, entry.Local) }, want: int(entry.Done), after: new(filled.with(flagged(entry.Local)))},
	{name: "FILL over failures", before: cooled.with(leased(20_000)), do: doFill, want: int(entry.Done), after: &filled},
	{name: "FILL, lapsed", before: lapsed, do: doFill, want: int(entry.Done), after: &filled},
	{name: "FILL, lapsed, just in time", before: held.with(leased(-grace.Milliseconds() + 10_000)), do: doFill, want: int(entry.Done), after: &filled},
	{name: "FILL, lapsed long ago", before: held.with(leased(-grace.Milliseconds() - 1)), do: doFill, want: int(entry.Lost), after: &held},
	{name: "FILL, absent", do: doFill, want: int(entry.Lost)},
	{name: "FILL, taken", before: othersLease, do: doFill, want: int(entry.Lost), after: &othersLease},
	{name: "FILL, no lease", before: staleValue, do: doFill, want: int(entry.Lost), after: &staleValue},
	{name: "FILL again", before: filled, do: doFill, want: int(entry.Already), after: &filled},
	{name: "FILL again, being refreshed", before: filled.with(func(s *spec) { s.lease = tokB }), do: doFill, want: int(entry.Already), after: new(filled.with(func(s *spec) { s.lease = tokB }))},
	{name: "FILL after its own failure", before: failedNow, do: doFill, want: int(entry.Lost), after: &failedNow},

	{name: "EXTEND", before: held.with(leased(1_000)), do: doExtend, want: 1, after: &held, until: lease, life: keep},
	{name: "EXTEND, others wait", before: held.with(waiting), do: doExtend, want: 2, after: new(held.with(waiting)), until: lease, life: keep},
	{name: "EXTEND, lapsed", before: lapsed, do: doExtend, want: 1, after: &held, until: lease, life: keep},
	{name: "EXTEND of a refresh", before: leasedStale, do: doExtend, want: 1, after: &leasedStale, until: lease, life: keep},
	{name: "EXTEND, taken", before: othersLease, do: doExtend, want: 0, after: &othersLease},
	{name: "EXTEND, absent", do: doExtend, want: 0},

	{name: "FAIL", before: held, do: doFail, want: int(entry.FailSet), after: &failedNow, heard: "F", about: tokA, until: cool, life: cool + 10*time.Second},
	{name: "FAIL by panic", before: held, do: doPanic, want: int(entry.FailSet), after: new(failedNow.with(func(s *spec) { s.payload = "Pno luck" })), heard: "P", about: tokA, until: cool},
	{name: "FAIL again and again", before: cooled.with(leased(20_000)), do: doFail, want: int(entry.FailSet), after: &failedNow, heard: "F", about: tokA, until: cool},
	{name: "FAIL beside a value", before: leasedStale.with(waiting), do: doFail, want: int(entry.FailKept), after: new(unleased.with(flagged(entry.LastFailed)).with(func(s *spec) { s.failures = 9 })), heard: "F", about: tokA, until: cool, life: time.Minute},
	{name: "FAIL beside a failed value", before: leasedStale.with(flagged(entry.LastFailed | entry.Local)), do: doFail, want: int(entry.FailKept), after: new(unleased.with(flagged(entry.LastFailed | entry.Local)).with(func(s *spec) { s.failures = 9 })), heard: "F", about: tokA, until: cool},
	{name: "FAIL beside a value soon gone", before: leasedStale.with(func(s *spec) { s.hard = 5_000 }), do: doFail, want: int(entry.FailKept), after: new(unleased.with(flagged(entry.LastFailed)).with(func(s *spec) { s.failures = 9 })), heard: "F", about: tokA, until: cool, life: cool + 10*time.Second},
	{name: "FAIL past hard expiry", before: leasedGone, do: doFail, want: int(entry.FailSet), after: &failedNow, heard: "F", about: tokA},
	{name: "FAIL, taken", before: othersLease, do: doFail, want: int(entry.FailLost), after: &othersLease},
	{name: "FAIL, absent", do: doFail, want: int(entry.FailLost)},

	{name: "RELEASE of a stub", before: held, do: doRelease, want: 1},
	{name: "RELEASE of a stub, others wait", before: held.with(waiting), do: doRelease, want: 1, heard: "R", about: tokA},
	{name: "RELEASE of a refresh", before: leasedStale, do: doRelease, want: 1, after: &unleased, life: time.Minute},
	{name: "RELEASE of a refresh, others wait", before: leasedStale.with(waiting), do: doRelease, want: 1, after: &unleased, heard: "R", about: tokA},
	{name: "RELEASE after failures", before: cooled.with(leased(20_000)), do: doRelease, want: 1, after: new(cooled), life: 10 * time.Second},
	{name: "RELEASE past hard expiry", before: leasedGone, do: doRelease, want: 1},
	{name: "RELEASE, taken", before: othersLease, do: doRelease, want: 0, after: &othersLease},
	{name: "RELEASE, absent", do: doRelease, want: 0},
	{name: "RELEASE unstored", before: held, do: doBypass, want: 1, after: &bypass, life: time.Second},
	{name: "RELEASE unstored, old value", before: leasedStale.with(waiting), do: doBypass, want: 1, after: &bypass, heard: "R", about: tokA, life: time.Second},
	{name: "RELEASE unstored, taken", before: othersLease, do: doBypass, want: 0, after: &othersLease},

	{name: "INVALIDATE", before: freshValue, do: doInvalidate, heard: "I"},
	{name: "INVALIDATE in mid-load", before: held.with(waiting), do: doInvalidate, heard: "I"},
	{name: "INVALIDATE of a failure", before: cooling, do: doInvalidate, heard: "I"},
	{name: "INVALIDATE of a list", before: spec{asAList: true}, do: doInvalidate, heard: "I"},
	{name: "INVALIDATE of nothing", do: doInvalidate, heard: "I"},
}

func testLease(t *testing.T, b *backend) {
	for _, c := range leaseCases {
		t.Run(c.name, func(t *testing.T) {
			p := at(t, b, nil)
			p.seed(c.before)
			ear := p.listen()
			got, err := c.do(p)
			p.must(err)
			if got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
			ear.wantHeard(c.heard, c.about)
			p.wantStored(c.after)
			p.wantUntil(c.until, c.life)
		})
	}
}

// wantStored checks what the key holds, but for the times.
func (p *place) wantStored(want *spec) {
	p.Helper()
	p.mortal()
	h, payload, ok := p.stored()
	if want == nil {
		p.wantAbsent()
		return
	}
	got := spec{state: h.State, flags: h.Flags, failures: h.Failures, gen: h.Generation, lease: h.Lease, payload: payload}
	w := *want
	w.until, w.fresh, w.hard = 0, 0, 0
	if !ok || got != w {
		p.Errorf("after: %+v, want %+v", got, w)
	}
}

// wantUntil checks the end of the lease and the life of the key, if not zero.
func (p *place) wantUntil(until, life time.Duration) {
	p.Helper()
	if until == 0 && life == 0 {
		return
	}
	h, _, _ := p.stored()
	if left := time.Duration(h.LeaseUntil-p.now()) * time.Millisecond; until != 0 && !near(left, until) {
		p.Errorf("the lease or cool-down ends in %v, want %v", left, until)
	}
	if left := p.pttl(); life != 0 && !near(left, life) {
		p.Errorf("the key lives %v more, want %v", left, life)
	}
}

// near allows for a slow machine.
func near(got, want time.Duration) bool {
	return got <= want+50*time.Millisecond && got > want-5*time.Second && got > 0
}

func testFillStamps(t *testing.T, b *backend) {
	p := at(t, b, nil)
	p.seed(held)
	before := p.now()
	_, err := p.fillAs(entry.Value, entry.Nil)
	p.must(err)
	h, _, _ := p.stored()
	if h.WrittenAt < before || h.WrittenAt > p.now() {
		t.Errorf("written %d ms after the fill was sent", h.WrittenAt-before)
	}
	if got := h.FreshUntil - h.WrittenAt; got != fresh.Milliseconds() {
		t.Errorf("fresh for %d ms, want %v", got, fresh)
	}
	if got := h.HardUntil - h.WrittenAt; got != hard.Milliseconds() {
		t.Errorf("hard expiry after %d ms, want %v", got, hard)
	}
	if h.Schema != 7 || h.Delta != 3*time.Millisecond || h.Flags != entry.Nil {
		t.Errorf("schema %d, delta %v, flags %b; want 7, 3ms, nil", h.Schema, h.Delta, h.Flags)
	}
}

func testMarkStale(t *testing.T, b *backend) {
	cases := []struct {
		name   string
		before spec
		marked bool
		flags  entry.Flags
	}{
		{name: "fresh", before: freshValue, marked: true, flags: entry.Marked},
		{name: "stale", before: staleValue, marked: true, flags: entry.Marked},
		{name: "being refreshed", before: leasedStale.with(waiting), marked: true, flags: entry.Marked},
		{name: "marked", before: freshValue.with(flagged(entry.Marked | entry.Local)), marked: true, flags: entry.Marked | entry.Local},
		{name: "nil, last refresh failed", before: freshValue.with(flagged(entry.Nil | entry.LastFailed)), marked: true, flags: entry.Marked | entry.Nil},
		{name: "past hard expiry", before: goneValue},
		{name: "not found", before: freshValue.with(func(s *spec) { s.state = entry.Negative })},
		{name: "being loaded", before: held},
		{name: "cooling down", before: cooling},
		{name: "not stored", before: bypass},
		{name: "foreign", before: spec{raw: "hello"}},
		{name: "absent"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := at(t, b, nil)
			p.seed(c.before)
			ear := p.listen()
			got, err := doMark(p)
			p.must(err)
			if got != bit(c.marked) {
				t.Errorf("marked = %d, want %v", got, c.marked)
			}
			h, _, ok := p.stored()
			if ok != c.marked {
				t.Fatalf("there is a key: %v, want %v", ok, c.marked)
			}
			heard := ear.heard()
			if len(heard) != 1 || heard[0].Kind != 'M' || heard[0].Topic != p.key {
				t.Errorf("heard %+v, want one M", heard)
			}
			if !c.marked {
				return
			}
			if h.Generation == genG || h.Generation != heard[0].Token {
				t.Errorf("generation = %v, want a new one, as published, %x", h.Generation, heard[0].Token)
			}
			after := c.before
			after.gen, after.lease, after.flags = h.Generation, entry.Token{}, c.flags
			p.wantStored(&after)
			if left := h.HardUntil - p.now(); !near(time.Duration(left)*time.Millisecond, time.Duration(c.before.hard)*time.Millisecond) {
				t.Errorf("hard expiry in %d ms, want %d", left, c.before.hard)
			}
			p.wantUntil(0, time.Duration(c.before.hard)*time.Millisecond)
		})
	}
}

func testSeize(t *testing.T, b *backend) {
	cases := []struct {
		name   string
		before spec
		after  spec
	}{
		{name: "absent", after: spec{state: entry.Stub}},
		{name: "foreign", before: spec{raw: "hello"}, after: spec{state: entry.Stub}},
		{name: "fresh", before: freshValue, after: freshValue},
		{name: "not found", before: freshValue.with(func(s *spec) { s.state = entry.Negative }), after: freshValue.with(func(s *spec) { s.state = entry.Negative })},
		{name: "being refreshed", before: leasedStale.with(waiting), after: staleValue.with(waiting)},
		{name: "past hard expiry", before: leasedGone.with(waiting), after: spec{state: entry.Stub, flags: entry.Waiters}},
		{name: "being loaded", before: held.with(waiting), after: spec{state: entry.Stub, flags: entry.Waiters}},
		{name: "cooling down", before: cooling, after: spec{state: entry.Stub}},
		{name: "not stored", before: bypass, after: spec{state: entry.Stub}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := at(t, b, nil)
			p.seed(c.before)
			tok, err := p.store.Seize(t.Context(), p.key, lease, keep)
			p.must(err)
			c.after.lease = tok
			p.wantStored(&c.after)
			h, _, _ := p.stored()
			if left := h.LeaseUntil - p.now(); !near(time.Duration(left)*time.Millisecond, lease) {
				t.Errorf("the lease ends in %d ms, want %v", left, lease)
			}
			if d := p.pttl(); d < keep-5*time.Second {
				t.Errorf("the key lives %v more, want at least %v", d, keep)
			}
			p.seizedBy(tok)
		})
	}
}

// seizedBy checks that whoever held the lease before cannot fill, and tok can.
func (p *place) seizedBy(tok entry.Token) {
	p.Helper()
	p.wantFill(entry.Lost, tokA, "loaded before")
	p.wantFill(entry.Done, tok, "set")
	got, err := p.store.Get(p.Context(), p.key)
	p.must(err)
	if string(got.Payload) != "set" {
		p.Errorf("read %q, want what was set", got.Payload)
	}
}
