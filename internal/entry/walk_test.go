package entry_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/wake"
)

// walk takes one key through a random sequence of calls, the model along with
// it, and compares all they say and leave behind.
type walk struct {
	*testing.T
	ctx   context.Context
	seed  uint64
	rand  *rand.Rand
	store *entry.Store
	raw   redis.UniversalClient
	key   string
	model model
	// tokens are of grants so far, the oldest forgotten; minted is the latest of all.
	tokens []entry.Token
	minted entry.Token
	// times are those to choose from, steps those by which time passes. Where the
	// server's time cannot be set they are chosen so that no decision hangs on
	// less than slack.
	times, steps []time.Duration
	slack        time.Duration
	pass         func(time.Duration)
	now          func() int64
	stored       func() (b []byte, ttl time.Duration) // nil: no key
	heard        func() []wake.Message
	log          []string
}

// ops are the calls, each as often as it shall be chosen.
var ops = []func(*walk){
	(*walk).acquire, (*walk).acquire, (*walk).acquire, (*walk).acquire, (*walk).acquire,
	(*walk).fill, (*walk).fill, (*walk).fill, (*walk).fail, (*walk).fail, (*walk).extend,
	(*walk).release, (*walk).releaseUnstored, (*walk).seize, (*walk).markStale, (*walk).invalidate,
	(*walk).get, (*walk).timePasses, (*walk).timePasses, (*walk).timePasses, (*walk).del, (*walk).overwrite,
}

// run makes n random calls. It ends the test at the first difference, and tells
// how it was reached.
func (w *walk) run(n int) {
	w.model = model{now: w.now()}
	for range n {
		if w.slack > 0 {
			w.model.now = w.now()
		}
		w.model.heard = nil
		ops[w.rand.IntN(len(ops))](w)
		w.compare()
		if w.Failed() {
			w.Fatalf("seed %d, after:\n%s", w.seed, strings.Join(w.log, "\n"))
		}
	}
	if err := w.raw.Del(w.ctx, w.key).Err(); err != nil {
		w.Fatal(err)
	}
}

func (w *walk) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// same checks one thing that the store and the model say.
func same[T comparable](w *walk, what string, got, want T) {
	if got != want {
		w.Errorf("%s = %v, the model says %v", what, got, want)
	}
}

func (w *walk) check(err error) {
	if err != nil {
		w.Errorf("error: %v", err)
	}
}

func (w *walk) time() time.Duration { return w.times[w.rand.IntN(len(w.times))] }

func (w *walk) odds(of int) bool { return w.rand.IntN(of) == 0 }

// token chooses among the grants so far, mostly the latest.
func (w *walk) token() entry.Token {
	if len(w.tokens) == 0 {
		return tokA
	}
	last := len(w.tokens) - 1
	if w.odds(3) {
		return w.tokens[w.rand.IntN(last+1)]
	}
	return w.tokens[last]
}

func (w *walk) granted(tok entry.Token) {
	w.tokens = append(w.tokens, tok)
	if len(w.tokens) > 4 {
		w.tokens = w.tokens[1:]
	}
	w.model.Lease = tok
}

func (w *walk) request() entry.Request {
	r := entry.Request{Lease: w.time(), Keep: w.time(), NoWait: w.odds(3), Old: w.odds(2)}
	switch w.rand.IntN(4) {
	case 0:
		r.Force = entry.Forced
	case 1:
		r.Force, r.Seen = entry.ForcedUnless, []entry.Token{w.token(), w.model.Generation}[:w.rand.IntN(3)]
	}
	if w.odds(3) {
		r.Mine = []entry.Token{tokB, w.token()}
	}
	if w.odds(2) {
		r.Await = w.token()
	}
	return r
}

func (w *walk) acquire() {
	r := w.request()
	cold := w.model.content == absent && w.odds(2)
	before, known := w.model.Header, w.model.content == present
	verdict, payload := w.model.acquire(r)
	asked := r
	got, err := w.try(cold, &asked)
	w.check(err)
	w.note("acquire(cold %v, %+v) = %v %v", cold, r, verdictName(got.Verdict), got.Token)
	same(w, "verdict", verdictName(got.Verdict), verdictName(verdict))
	same(w, "known", got.Known, known)
	same(w, "header before", got.Header, before)
	same(w, "payload", string(got.Payload), payload)
	same(w, "a token with the verdict", !got.Token.IsZero(), verdict == entry.Grant)
	w.sameTime("time", got.Now, w.model.now)
	if verdict == entry.Grant {
		w.granted(got.Token)
	}
}

func (w *walk) try(cold bool, r *entry.Request) (entry.Acquired, error) {
	if cold {
		if got, won := w.store.Claim(w.ctx, w.key, r); won {
			return got, nil
		}
	}
	return w.store.Acquire(w.ctx, w.key, r)
}

func (w *walk) fill() {
	tok, grace := w.token(), w.time()-w.times[0]
	c := entry.Content{State: entry.Value, Schema: w.rand.Uint32(), Delta: time.Duration(w.rand.IntN(1e6)) * time.Microsecond, Fresh: w.time()}
	c.Payload = bytes.Repeat([]byte{byte(w.rand.Uint32())}, w.rand.IntN(20))
	c.Hard = max(c.Fresh, w.time())
	if w.odds(4) {
		c.State, c.Payload = entry.Negative, nil
	}
	c.Flags = []entry.Flags{0, 0, entry.Local, entry.Nil}[w.rand.IntN(4)]
	got, err := w.store.Fill(w.ctx, w.key, tok, c, grace)
	w.check(err)
	w.note("fill(%v, %+v, grace %v) = %v", tok, c, grace, got)
	same(w, "stored", got, w.model.fill(tok, c, grace))
}

func (w *walk) extend() {
	tok, lease, keep := w.token(), w.time(), w.time()
	held, waited, err := w.store.Extend(w.ctx, w.key, tok, lease, keep)
	w.check(err)
	w.note("extend(%v, %v, %v) = %v %v", tok, lease, keep, held, waited)
	wantHeld, wantWaited := w.model.extend(tok, lease, keep)
	same(w, "held", held, wantHeld)
	same(w, "waited", waited, wantWaited)
}

func (w *walk) fail() {
	tok, cool, failures := w.token(), w.time(), uint8(w.rand.IntN(256))
	f := entry.Failure{Message: strings.Repeat("no ", w.rand.IntN(5)), Panic: w.odds(3)}
	before := w.model.Header
	want := w.model.fail(tok, f, failures, cool)
	got, old, err := w.store.Fail(w.ctx, w.key, tok, f, failures, cool)
	w.check(err)
	w.note("fail(%v, %+v, %d, cool %v) = %v", tok, f, failures, cool, got)
	same(w, "kept", got, want)
	same(w, "header before", old, before)
}

func (w *walk) release() {
	tok := w.token()
	got, err := w.store.Release(w.ctx, w.key, tok)
	w.check(err)
	w.note("release(%v) = %v", tok, got)
	same(w, "held", got, w.model.release(tok))
}

func (w *walk) releaseUnstored() {
	tok, d := w.token(), w.time()
	got, err := w.store.ReleaseUnstored(w.ctx, w.key, tok, d)
	w.check(err)
	w.note("releaseUnstored(%v, %v) = %v", tok, d, got)
	same(w, "held", got, w.model.releaseUnstored(tok, d))
}

func (w *walk) seize() {
	lease, keep := w.time(), w.time()
	tok, err := w.store.Seize(w.ctx, w.key, lease, keep)
	w.check(err)
	w.note("seize(%v, %v) = %v", lease, keep, tok)
	w.model.seize(lease, keep)
	w.granted(tok)
}

func (w *walk) markStale() {
	got, err := w.store.MarkStale(w.ctx, w.key)
	w.check(err)
	w.note("markStale() = %v", got)
	same(w, "marked", got, w.model.markStale(w.minted))
}

func (w *walk) invalidate() {
	w.check(w.store.Invalidate(w.ctx, w.key))
	w.note("invalidate()")
	w.model.invalidate()
}

func (w *walk) get() {
	got, err := w.store.Get(w.ctx, w.key)
	w.check(err)
	w.note("get()")
	same(w, "known", got.Known, w.model.content == present)
	same(w, "foreign", got.Foreign, w.model.content == alien)
	if w.model.content == present {
		same(w, "header", got.Header, w.model.Header)
		same(w, "payload", string(got.Payload), w.model.payload)
	}
	w.sameTime("time", got.Now, w.model.now)
}

func (w *walk) timePasses() {
	d := w.steps[w.rand.IntN(len(w.steps))]
	w.note("%v pass", d)
	w.pass(d)
}

func (w *walk) del() {
	w.note("DEL")
	w.check(w.raw.Del(w.ctx, w.key).Err())
	w.model.remove()
}

func (w *walk) overwrite() {
	if !w.odds(3) {
		return
	}
	d := w.time()
	w.note("SET by hand, %v", d)
	w.model.putAlien(d)
	w.check(w.raw.Set(w.ctx, w.key, w.model.payload, d).Err())
}

// compare checks what is at the server, and what was published, against the model.
func (w *walk) compare() {
	heard := w.heard()
	for i := range heard {
		same(w, "topic", heard[i].Topic, w.key)
		heard[i].Topic = ""
	}
	same(w, "messages", fmt.Sprintf("%+v", heard), fmt.Sprintf("%+v", w.model.heard))
	b, ttl := w.stored()
	if b == nil {
		same(w, "content", absent, w.model.content)
		return
	}
	w.sameTime("expiry", w.now()+ttl.Milliseconds(), w.model.expires)
	h, payload, err := entry.Parse(b)
	if err != nil {
		same(w, "bytes", string(b), w.model.payload)
		same(w, "content", alien, w.model.content)
		return
	}
	same(w, "content", present, w.model.content)
	same(w, "payload", string(payload), w.model.payload)
	w.compareTimes(&h)
	same(w, "header", h, w.model.Header)
}

// compareTimes checks the instants, and then takes over those of the server:
// the rest of the header is to be the same.
func (w *walk) compareTimes(h *entry.Header) {
	m := &w.model
	w.sameTime("lease until", h.LeaseUntil, m.LeaseUntil)
	w.sameTime("written at", h.WrittenAt, m.WrittenAt)
	w.sameTime("fresh until", h.FreshUntil, m.FreshUntil)
	w.sameTime("hard until", h.HardUntil, m.HardUntil)
	m.LeaseUntil, m.WrittenAt, m.FreshUntil, m.HardUntil = h.LeaseUntil, h.WrittenAt, h.FreshUntil, h.HardUntil
}

func (w *walk) sameTime(what string, got, want int64) {
	if d := time.Duration(got-want) * time.Millisecond; d < -w.slack || d > w.slack {
		w.Errorf("%s is %v off the model's", what, d)
	}
}
