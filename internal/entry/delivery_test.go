package entry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/entry"
)

// wire records what a client writes, and can lose replies.
type wire struct {
	mu     sync.Mutex // guards what follows
	sent   bytes.Buffer
	got    int    // bytes read
	losing int    // replies still to be lost
	of     []byte // to writes that contain this
	lost   bool   // the next reply is to be lost
}

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &tap{Conn: c, wrote: w.wrote, read: w.read}, nil
}

func (w *wire) wrote(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent.Write(b)
	if w.losing > 0 && bytes.Contains(b, w.of) {
		w.losing--
		w.lost = true
	}
}

// read passes a reply on, or ends the connection once the server has answered.
func (w *wire) read(c net.Conn, b []byte) (int, error) {
	n, err := c.Read(b)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got += n
	if w.lost {
		w.lost = false
		c.Close()
		return 0, io.EOF
	}
	return n, err
}

// lose makes the next n replies to writes that contain mark be lost.
func (w *wire) lose(n int, mark string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.losing, w.of = n, []byte(mark)
}

// count returns how often pattern was written.
func (w *wire) count(pattern string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Count(w.sent.Bytes(), []byte(pattern))
}

func (w *wire) received() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.got
}

// wired returns a place whose store's traffic is seen and may be disturbed, and
// the list of tokens it mints.
func wired(t *testing.T, b *backend) (*place, *wire, *[]entry.Token) {
	t.Helper()
	w := &wire{}
	p := at(t, b, b.dial(t, func(o *redis.UniversalOptions) { o.Dialer = w.dial }))
	p.knowTime()
	_, err := p.store.Get(t.Context(), p.key) // connects
	p.must(err)
	var minted []entry.Token
	p.store.Mint = func() entry.Token {
		minted = append(minted, entry.NewToken())
		return minted[len(minted)-1]
	}
	return p, w, &minted
}

// deliveries returns how often a script that creates the lease of tok was sent.
func (p *place) deliveries(w *wire, tok entry.Token) int {
	return w.count(fmt.Sprintf("%s\r\n$16\r\n%s\r\n", p.key, tok[:]))
}

// testRule02OnceOverTheWire loses replies where go-redis by itself would send
// the command again, and counts what was written to the sockets.
func testRule02OnceOverTheWire(t *testing.T, b *backend) {
	t.Run("ACQUIRE", func(t *testing.T) {
		p, w, minted := wired(t, b)
		w.lose(2, entry.AcquireSHA)
		tok := p.grant()
		if got := len(*minted); got != 3 && got != 4 { // one more if the server had no script yet
			t.Errorf("%d tokens were minted, want one for each of 3 deliveries", got)
		}
		for _, m := range *minted {
			if got := p.deliveries(w, m); got != 1 {
				t.Errorf("a token was sent %d times, want once", got)
			}
		}
		p.wantFill(entry.Done, tok, "v")
	})
	t.Run("plain set", func(t *testing.T) {
		p, w, minted := wired(t, b)
		w.lose(1, p.key+"\r\n$70\r\n")
		tok := p.grant(cold)
		if got := w.count(p.key + "\r\n$70\r\n"); got != 1 {
			t.Errorf("the plain set was sent %d times, want once", got)
		}
		if tok == (*minted)[0] {
			t.Error("the grant has the token whose reply was lost")
		}
		p.wantPowerless((*minted)[0])
		p.wantFill(entry.Done, tok, "v")
	})
	t.Run("SEIZE", func(t *testing.T) {
		p, w, minted := wired(t, b)
		w.lose(1, p.key)
		tok, err := p.store.Seize(t.Context(), p.key, lease, keep)
		p.must(err)
		for _, m := range *minted {
			if got := p.deliveries(w, m); got != 1 {
				t.Errorf("a token was sent %d times, want once", got)
			}
		}
		p.wantFill(entry.Done, tok, "v")
	})
}

// testRepeats loses the reply to each script that may be sent again.
func testRepeats(t *testing.T, b *backend) {
	tests := map[string]struct {
		do    func(*place) (int, error)
		twice int // what the second delivery answers
		after *spec
	}{
		"FILL":       {doFill, int(entry.Already), &filled},
		"EXTEND":     {doExtend, 1, &held},
		"FAIL":       {doFail, int(entry.FailLost), &failedNow},
		"RELEASE":    {doRelease, 0, nil},
		"INVALIDATE": {doInvalidate, 0, nil},
		"MARKSTALE":  {doMark, 0, nil},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			p, w, _ := wired(t, b)
			_, err := c.do(p) // so that the server has the script
			p.must(err)
			p.seed(held)
			w.lose(1, p.key)
			got, err := c.do(p)
			p.must(err)
			if got != c.twice {
				t.Errorf("got %d, want %d", got, c.twice)
			}
			p.wantStored(c.after)
		})
	}
}

// withheld keeps the first command that match accepts from the server: its
// client is told that the connection broke.
type withheld struct {
	match func(redis.Cmder) bool
	taken atomic.Bool
	args  []any
}

func (w *withheld) process(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
	if w.match(cmd) && w.taken.CompareAndSwap(false, true) {
		w.args = append([]any(nil), cmd.Args()...)
		cmd.SetErr(io.EOF)
		return io.EOF
	}
	return next(ctx, cmd)
}

// deliver lets the server have the command after all.
func (w *withheld) deliver(p *place) {
	p.Helper()
	if !w.taken.Load() {
		p.Fatal("nothing was withheld")
	}
	if err := p.backend.client.Do(p.Context(), w.args...).Err(); err != nil && !errors.Is(err, redis.Nil) {
		p.Fatal(err)
	}
}

func isAcquire(cmd redis.Cmder) bool {
	return cmd.Name() == "evalsha" && cmd.Args()[1] == entry.AcquireSHA
}

func isSet(cmd redis.Cmder) bool { return cmd.Name() == "set" }

// testRule02LateCopy is about a command that the network delivers late: (1)
// ACQUIRE(t1) is delayed and given up; (2) a second attempt is granted and its
// load reads the old value; (3) INVALIDATE; (4) ACQUIRE(t1) arrives; (5) the
// load fills.
func testRule02LateCopy(t *testing.T, b *backend) {
	tests := map[string]struct {
		match   func(redis.Cmder) bool
		request []func(*ask)
	}{"ACQUIRE": {match: isAcquire}, "plain set": {match: isSet, request: reqs(cold)}}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			w := &withheld{match: c.match}
			p := hooked(t, b, w.process)
			p.knowTime()
			p.grantAndForget()
			tok := p.grant(c.request...)
			p.must(p.store.Invalidate(t.Context(), p.key))
			w.deliver(p)
			p.wantFill(entry.Lost, tok, "read before the invalidation")
			h, _, _ := p.stored()
			if h.State != entry.Stub || h.Lease == tok {
				t.Errorf("after: state %v, lease %v; want the stub of the late copy", h.State, h.Lease)
			}
		})
		t.Run(name+" without invalidation", func(t *testing.T) {
			w := &withheld{match: c.match}
			p := hooked(t, b, w.process)
			p.knowTime()
			p.grantAndForget()
			tok := p.grant(c.request...)
			w.deliver(p)
			p.wantFill(entry.Done, tok, "v")
			w.deliver(p)
			p.wantVerdict(entry.Hit)
		})
	}
}

// grantAndForget runs ACQUIRE on the shared client, so that the server that
// holds the key has the script.
func (p *place) grantAndForget() {
	p.Helper()
	s := entry.NewStore(p.backend.client, p.channel, 10*time.Second)
	got, err := s.Acquire(p.Context(), p.key, &entry.Request{Lease: lease, Keep: keep})
	p.must(err)
	_, err = s.Release(p.Context(), p.key, got.Token)
	p.must(err)
}

// testRule02Mutant re-sends one ACQUIRE, as go-redis would, and so shows that
// the interleaving above breaks a client that does.
func testRule02Mutant(t *testing.T, b *backend) {
	w := &withheld{match: isAcquire}
	p := hooked(t, b, w.process)
	p.grantAndForget()
	p.store.Mint = func() entry.Token { return tokA }
	tok := p.grant()
	p.must(p.store.Invalidate(t.Context(), p.key))
	w.deliver(p)
	p.wantFill(entry.Done, tok, "read before the invalidation")
}

// testRule02NoScript is about a server without the script: the text is sent
// with a token of its own.
func testRule02NoScript(t *testing.T, b *backend) {
	p, w, minted := wired(t, b)
	p.must(b.client.ScriptFlush(t.Context()).Err())
	tok := p.grant()
	if len(*minted) != 2 || tok != (*minted)[1] {
		t.Fatalf("minted %v, granted %v; want two, and the second granted", *minted, tok)
	}
	for _, m := range *minted {
		if got := p.deliveries(w, m); got != 1 {
			t.Errorf("a token was sent %d times, want once", got)
		}
	}
}

// testRule02AllLost is about a lease that was granted in replies that were all
// lost: it is given back.
func testRule02AllLost(t *testing.T, b *backend) {
	p := hooked(t, b, func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		err := next(ctx, cmd)
		if isAcquire(cmd) && err == nil {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return err
	})
	p.grantAndForget()
	if got, err := p.try(t.Context()); err == nil {
		t.Fatalf("acquire = %v, want an error", got.Verdict)
	}
	p.wantAbsent()
}

// testRule02Recognized is about a lease that a late copy gets for a caller that
// is still asking: (1) ACQUIRE(t1) is delayed; (2) the next attempt is told to
// wait for somebody else; (3) that one gives up; (4) ACQUIRE(t1) arrives; (5) the
// caller asks again, and need not wait for itself.
func testRule02Recognized(t *testing.T, b *backend) {
	w := &withheld{match: isAcquire}
	p := hooked(t, b, w.process)
	p.grantAndForget()
	p.seed(held)
	r := &entry.Request{Lease: lease, Keep: keep}
	ask := func(want entry.Verdict) entry.Acquired {
		t.Helper()
		got, err := p.store.Acquire(t.Context(), p.key, r)
		p.must(err)
		if got.Verdict != want {
			t.Fatalf("acquire = %v, want %v", verdictName(got.Verdict), verdictName(want))
		}
		return got
	}
	ask(entry.Wait)
	_, err := doRelease(p)
	p.must(err)
	w.deliver(p)
	late, _, _ := p.stored()
	got := ask(entry.Grant)
	p.wantPowerless(late.Lease)
	p.wantFill(entry.Done, got.Token, "v")
	if len(r.Mine) != 0 {
		t.Errorf("%d tokens are kept after a grant", len(r.Mine))
	}
}

// testRule07SmallReplies is about a large value that stays where it is unless
// it is asked for.
func testRule07SmallReplies(t *testing.T, b *backend) {
	const size = 4 << 20
	p, w, _ := wired(t, b)
	p.seed(leasedStale.with(func(s *spec) { s.payload = string(make([]byte, size)) }))
	before := w.received()
	p.wantVerdict(entry.Wait)
	for _, do := range []func(*place) (int, error){doExtend, doFail} {
		got, err := do(p)
		p.must(err)
		if got == 0 {
			t.Error("the lease was lost")
		}
	}
	p.wantVerdict(entry.Cooling)
	if got := w.received() - before; got > 4<<10 {
		t.Errorf("%d bytes were read, want headers only", got)
	}
	p.seed(staleValue.with(func(s *spec) { s.payload = string(make([]byte, size)) }))
	before = w.received()
	if got := p.wantVerdict(entry.Grant); len(got.Payload) != 0 || w.received()-before > 4<<10 {
		t.Errorf("a grant carried %d bytes that nobody asked for", len(got.Payload))
	}
}
