package entry_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/redistest"
)

// The durations of all tests that do not set their own. They are far longer
// than a test takes: what has to be over is written into the entry as over.
const (
	lease = 20 * time.Second
	keep  = 50 * time.Second
	fresh = 100 * time.Second
	hard  = 300 * time.Second
	grace = 30 * time.Second
	cool  = 15 * time.Second
)

// backend is a Redis that the protocol must behave the same on.
type backend struct {
	name    string
	addrs   []string
	cluster bool
	client  redis.UniversalClient // shared; tests put no hooks on it
	age     func(time.Duration)   // makes the keys older; nil: they age by themselves
}

// dial returns a further client of the backend, changed by opts.
func (b *backend) dial(tb testing.TB, opts func(*redis.UniversalOptions)) redis.UniversalClient {
	tb.Helper()
	o := &redis.UniversalOptions{Addrs: b.addrs, IsClusterMode: b.cluster}
	if opts != nil {
		opts(o)
	}
	c := redis.NewUniversalClient(o)
	tb.Cleanup(func() { c.Close() })
	return c
}

// onBackends runs test on an embedded, a real and a clustered Redis.
func onBackends(t *testing.T, test func(*testing.T, *backend)) {
	t.Helper()
	start := map[string]func(*testing.T) *backend{"embedded": embedded, "server": server, "cluster": cluster}
	for name, start := range start {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

func embedded(t *testing.T) *backend {
	m := miniredis.RunT(t)
	return dialed(t, &backend{name: "embedded", addrs: []string{m.Addr()}, age: m.FastForward})
}

func server(t *testing.T) *backend {
	return dialed(t, &backend{name: "server", addrs: []string{redistest.Start(t).Addr()}})
}

func cluster(t *testing.T) *backend {
	return dialed(t, &backend{name: "cluster", addrs: redistest.StartCluster(t).Addrs(), cluster: true})
}

func dialed(t *testing.T, b *backend) *backend {
	b.client = b.dial(t, nil)
	return b
}

var serial atomic.Int64 // of names that must differ

// place is one test's place at a backend: a key, a channel and a store of its own.
type place struct {
	*testing.T
	backend *backend
	client  redis.UniversalClient
	store   *entry.Store
	key     string
	channel string
}

// at returns a place at b, its store on client or, if that is nil, on a shared one.
func at(t *testing.T, b *backend, client redis.UniversalClient) *place {
	t.Helper()
	if client == nil {
		client = b.client
	}
	n := serial.Add(1)
	p := &place{T: t, backend: b, client: client, key: fmt.Sprintf("key %d", n), channel: fmt.Sprintf("channel %d", n)}
	p.store = p.another()
	return p
}

// another returns the store of another process.
func (p *place) another() *entry.Store { return entry.NewStore(p.client, p.channel, 10*time.Second) }

// must ends the test on an error.
func (p *place) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// now returns the server's time in milliseconds.
func (p *place) now() int64 {
	p.Helper()
	t, err := p.backend.client.Time(p.Context()).Result()
	p.must(err)
	return t.UnixMilli()
}

// pass waits until d has gone by at the server.
func (p *place) pass(d time.Duration) {
	p.Helper()
	until := p.now() + d.Milliseconds()
	redistest.Eventually(p.T, 10*time.Second, func() bool { return p.now() > until }, "time passing at the server")
	if p.backend.age != nil {
		p.backend.age(d)
	}
}

// spec describes an entry, its times in milliseconds from now. A zero state
// stands for no entry, unless raw is set.
type spec struct {
	state              entry.State
	flags              entry.Flags
	failures           uint8
	gen, lease         entry.Token
	until, fresh, hard int64
	payload            string
	raw                string
	px                 time.Duration
	asAList            bool
}

// seed writes s to the key.
func (p *place) seed(s spec) {
	p.Helper()
	ctx, raw := p.Context(), p.backend.client
	px := 40 * time.Second // less than keep
	switch {
	case s.asAList:
		p.must(raw.RPush(ctx, p.key, "x").Err())
		return
	case s.raw != "":
		p.must(raw.Set(ctx, p.key, s.raw, px).Err())
		return
	case s.state == 0:
		return
	}
	now := p.now()
	rel := func(ms int64) int64 {
		if ms == 0 {
			return 0
		}
		return now + ms
	}
	h := entry.Header{
		State: s.state, Flags: s.flags, Failures: s.failures, Generation: s.gen, Lease: s.lease,
		LeaseUntil: rel(s.until), FreshUntil: rel(s.fresh), HardUntil: rel(s.hard),
	}
	if s.px != 0 {
		px = s.px
	}
	p.must(raw.Set(ctx, p.key, append(h.AppendTo(nil), s.payload...), px).Err())
}

// stored returns the entry as it is at the server, and whether there is one.
func (p *place) stored() (entry.Header, string, bool) {
	p.Helper()
	b, err := p.backend.client.Get(p.Context(), p.key).Bytes()
	if errors.Is(err, redis.Nil) {
		return entry.Header{}, "", false
	}
	p.must(err)
	h, payload, err := entry.Parse(b)
	p.must(err)
	return h, string(payload), true
}

// pttl returns the key's remaining life, negative if it has none or is absent.
func (p *place) pttl() time.Duration {
	p.Helper()
	d, err := p.backend.client.PTTL(p.Context(), p.key).Result()
	p.must(err)
	return d
}

// mortal checks that the key, if there, has an end.
func (p *place) mortal() {
	p.Helper()
	if d := p.pttl(); d == -1 {
		p.Errorf("the key has no TTL")
	}
}

// acquire asks for the lease under the default request, changed by opts.
func (p *place) acquire(opts ...func(*ask)) entry.Acquired {
	p.Helper()
	got, err := p.try(p.Context(), opts...)
	p.must(err)
	p.mortal()
	return got
}

// grant is acquire that must be granted.
func (p *place) grant(opts ...func(*ask)) entry.Token {
	p.Helper()
	got := p.acquire(opts...)
	if got.Verdict != entry.Grant || got.Token.IsZero() {
		p.Fatalf("acquire = %v, token %v; want a grant", verdictName(got.Verdict), got.Token)
	}
	return got.Token
}

// fill stores payload under tok and returns what became of it.
func (p *place) fill(tok entry.Token, payload string) entry.Stored {
	p.Helper()
	got, err := p.store.Fill(p.Context(), p.key, tok, content(payload), grace)
	p.must(err)
	p.mortal()
	return got
}

// wantVerdict checks what an acquire says now.
func (p *place) wantVerdict(want entry.Verdict, opts ...func(*ask)) entry.Acquired {
	p.Helper()
	got := p.acquire(opts...)
	if got.Verdict != want {
		p.Fatalf("acquire = %v, want %v", verdictName(got.Verdict), verdictName(want))
	}
	return got
}

// wantFill checks what a fill says now.
func (p *place) wantFill(want entry.Stored, tok entry.Token, payload string) {
	p.Helper()
	if got := p.fill(tok, payload); got != want {
		p.Errorf("fill = %v, want %v", got, want)
	}
}

// wantAbsent checks that there is no key.
func (p *place) wantAbsent() {
	p.Helper()
	if h, _, ok := p.stored(); ok {
		p.Errorf("the key is there, state %v, lease %v; want none", h.State, h.Lease)
	}
}

// try asks for the lease, after a plain set if that is wanted.
func (p *place) try(ctx context.Context, opts ...func(*ask)) (entry.Acquired, error) {
	a := ask{Request: entry.Request{Lease: lease, Keep: keep}}
	for _, o := range opts {
		o(&a)
	}
	if a.cold {
		if got, won := p.store.Claim(ctx, p.key, &a.Request); won {
			return got, nil
		}
	}
	return p.store.Acquire(ctx, p.key, &a.Request)
}

// ask is a request for the lease, with a word on how.
type ask struct {
	entry.Request
	cold bool // the key was just seen to be absent
}

func content(payload string) entry.Content {
	return entry.Content{State: entry.Value, Payload: []byte(payload), Fresh: fresh, Hard: hard}
}

func verdictName(v entry.Verdict) string {
	names := map[entry.Verdict]string{
		entry.Grant: "GRANT", entry.Hit: "VALUE", entry.Wait: "WAIT", entry.Cooling: "FAILED", entry.Bypassed: "BYPASS",
	}
	if n, ok := names[v]; ok {
		return n
	}
	return fmt.Sprint(int(v))
}

func cold(r *ask)   { r.cold = true }
func nowait(r *ask) { r.NoWait = true }
func old(r *ask)    { r.Old = true }
func forced(r *ask) { r.Force = entry.Forced }

func unless(seen ...entry.Token) func(*ask) {
	return func(r *ask) { r.Force, r.Seen = entry.ForcedUnless, seen }
}

func awaiting(t entry.Token) func(*ask) {
	return func(r *ask) { r.Await = t }
}
