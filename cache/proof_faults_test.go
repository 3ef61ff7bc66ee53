//go:build unix

package cache_test

import (
	"context"
	"crypto/sha1"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/proxy"
	"github.com/getorprime/getorprime/internal/redistest"
)

// startBehind starts n processes of which the first reaches Redis through a
// proxy that is returned, and the others directly.
func (p *proof) startBehind(n int, s setup) *proxy.Proxy {
	p.Helper()
	x, err := proxy.New(p.server.Addr())
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(x.Close)
	for i := range n {
		s.Process, s.Addr = i, ""
		if i == 0 {
			s.Addr = x.Addr()
		}
		p.launch(n, s)
	}
	for _, w := range p.workers {
		p.await(w, replyBound)
	}
	return x
}

// once has the first command of a kind meet a fault, and hands out a copy of it.
func (p *proof) once(x *proxy.Proxy, kind string, f proxy.Fault) (met <-chan []any) {
	p.Helper()
	first := make(chan []any, 1)
	var seen atomic.Bool
	p.onCommand(x, func(k string, cmd [][]byte) proxy.Fault {
		if k != kind || !seen.CompareAndSwap(false, true) {
			return proxy.Pass()
		}
		first <- copied(cmd)
		return f
	})
	return first
}

// onCommand has hook choose the fault of every command, given its kind.
func (p *proof) onCommand(x *proxy.Proxy, hook func(kind string, cmd [][]byte) proxy.Fault) {
	p.Helper()
	scripts, err := readScripts()
	if err != nil {
		p.Fatal(err)
	}
	x.OnCommand(func(cmd [][]byte) proxy.Fault { return hook(scripts.ofBytes(cmd), cmd) })
}

// copied returns a command to be sent by a client.
func copied(cmd [][]byte) (args []any) {
	for _, arg := range cmd {
		args = append(args, string(arg))
	}
	return args
}

// sent fails unless the command was sent.
func (p *proof) sent(kind string, met <-chan []any) []any {
	p.Helper()
	select {
	case args := <-met:
		return args
	default:
		p.Fatalf("no %s was sent", kind)
		return nil
	}
}

// foreign puts bytes of another origin in a row's key, so that it takes the
// script to get the lease.
func (p *proof) foreign(id string) {
	p.Helper()
	if err := p.client.Set(p.Context(), prefix+id, "not an entry", time.Minute).Err(); err != nil {
		p.Fatal(err)
	}
}

// loadScripts makes Redis know all scripts.
func (p *proof) loadScripts() {
	p.Helper()
	scripts, err := readScripts()
	if err != nil {
		p.Fatal(err)
	}
	for text := range scripts {
		// The other keys are their SHA-1.
		if len(text) > 2*sha1.Size {
			if err := p.client.ScriptLoad(p.Context(), text).Err(); err != nil {
				p.Fatal(err)
			}
		}
	}
}

// free reports whether a row's key is gone, and the lease with it.
func (p *proof) free(id string) bool {
	n, err := p.client.Exists(p.Context(), prefix+id).Result()
	return err == nil && n == 0
}

// TestCase14CancelledWhileLeasing has the only caller leave while the reply to
// its process's request for the lease is on its way.
func TestCase14CancelledWhileLeasing(t *testing.T) {
	// The read is answered after one delay, the request after another.
	const delay, within = 200 * time.Millisecond, 300 * time.Millisecond
	for _, c := range []struct {
		name, kind string
	}{{"SET NX", cmdClaim}, {"script", cmdAcquire}} {
		t.Run(c.name, func(t *testing.T) {
			p := newProof(t)
			s := patient(time.Minute)
			s.Lease = 30 * time.Second // too long to wait for
			x := p.startBehind(1, s)
			p.loadScripts() // else the request for the lease takes two round trips
			if c.kind == cmdAcquire {
				p.foreign("0")
			}
			met := p.once(x, c.kind, proxy.Pass())
			x.SetDelay(0, delay)
			o := p.one(p.workers[0], calls{ID: "0", Within: within})
			if o.Kind != "deadline" || o.took() > within+promised+slack {
				t.Errorf("the caller got %q after %v, want its deadline of %v", o.Error, o.took(), within)
			}
			redistest.Eventually(t, 10*delay+slack, func() bool { return p.free("0") }, "no lease is left")
			p.sent(c.kind, met)
		})
	}
}

// TestCase14LeaseOfAnother has that caller's process be told to wait: the lease
// belongs to another.
func TestCase14LeaseOfAnother(t *testing.T) {
	p := newProof(t)
	p.board.rows[0].version.Store(7)
	x := p.startBehind(2, patient(time.Second))
	late, holder := p.workers[0], p.workers[1]
	p.begin(calls{ID: "0", Callers: 1}, holder)
	p.loading("0")
	x.SetDelay(0, 200*time.Millisecond)
	if o := p.one(late, calls{ID: "0", Within: 300 * time.Millisecond}); o.Kind != "deadline" {
		t.Errorf("the caller got %q, want its deadline", o.Error)
	}
	p.wantSame(p.hear(holder), 7)
	if s := p.stats(holder); s.StoresRefused != 0 || s.LeasesLost != 0 {
		t.Errorf("the holder lost %d leases and %d stores, want none", s.LeasesLost, s.StoresRefused)
	}
	p.wantLoads("0", 1)
}

// TestCase45ReplyDropped drops the reply to one command of each kind. The call
// goes on, and nobody waits for a lease that is its own.
func TestCase45ReplyDropped(t *testing.T) {
	const load = 150 * time.Millisecond
	for _, c := range []struct {
		kind  string
		loads int64
		setup func(*proof, *setup)
		do    string
	}{
		{kind: cmdClaim, loads: 1},
		{kind: cmdAcquire, loads: 1, setup: func(p *proof, _ *setup) { p.foreign("0") }},
		{kind: cmdExtend, loads: 1, setup: func(_ *proof, s *setup) { s.Lease = load }},
		{kind: cmdFill, loads: 1},
		{kind: cmdFail, loads: 1, setup: func(_ *proof, s *setup) { s.Load.Bad, s.Cooldown = "fail", time.Minute }},
		// What is not to be stored is loaded for each call.
		{kind: cmdRelease, loads: 2, setup: func(_ *proof, s *setup) { s.Load.Bad = "unstored" }},
		{kind: cmdSeize, loads: 0, do: "set"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			p := newProof(t)
			s := patient(load)
			s.CoolMax = time.Minute
			s.Lease = 30 * time.Second // whoever waits for it is found out
			if c.setup != nil {
				c.setup(p, &s)
			}
			p.board.rows[0].version.Store(7)
			x := p.startBehind(2, s)
			met := p.once(x, c.kind, proxy.DropReply())
			first := p.one(p.workers[0], calls{ID: "0", Do: c.do, V: 7})
			second := p.one(p.workers[1], calls{ID: "0"})
			p.sent(c.kind, met)
			p.wantWithin([]outcome{first, second}, load+3*promised)
			p.wantLoads("0", c.loads)
			if c.kind == cmdFail {
				if first.Kind != "loader" || second.Kind != "remote" {
					t.Errorf("the callers got %q and %q, want the loader's error", first.Error, second.Error)
				}
				return
			}
			if first.Error != "" {
				t.Errorf("the caller got %q", first.Error)
			}
			p.wantSame([]outcome{second}, 7)
		})
	}
}

// TestCase45LeaseDeliveredLate has the network deliver a request for the lease
// after its client gave up, was given the lease by another, and somebody deleted
// the key. The copy brings a lease back, but not the one of the load.
func TestCase45LeaseDeliveredLate(t *testing.T) {
	for _, c := range []struct{ name, kind string }{{"SET NX", cmdClaim}, {"script", cmdAcquire}} {
		t.Run(c.name, func(t *testing.T) {
			p := newProof(t)
			s := patient(500 * time.Millisecond)
			s.Lease = time.Second
			row := &p.board.rows[0]
			row.version.Store(1)
			x := p.startBehind(2, s)
			if c.kind == cmdAcquire {
				p.foreign("0")
			}
			met := p.once(x, c.kind, proxy.Late(time.Hour)) // the test itself is the network
			late := p.workers[0]
			p.begin(calls{ID: "0", Callers: 1}, late)
			p.loading("0")
			row.version.Store(2)
			if n, err := p.client.Del(t.Context(), prefix+"0").Result(); n != 1 || err != nil {
				t.Fatalf("DEL = %d, %v, want 1", n, err)
			}
			if err := p.client.Do(t.Context(), p.sent(c.kind, met)...).Err(); err != nil || p.free("0") {
				t.Fatalf("the late copy brought no lease back: %v", err)
			}
			p.wantSame(p.hear(late), 1)
			if got := p.stats(late).StoresRefused; got != 1 {
				t.Errorf("%d stores were refused, want 1", got)
			}
			p.wantSame(p.call(calls{ID: "0", Callers: 4}), 2)
			p.wantLoads("0", 2)
		})
	}
}

// TestG2SetOvertaken has the network deliver a Set's first request for the lease
// between the second, which was granted, and the fill. The fill is refused, and
// the value from before must not outlive the Set.
func TestG2SetOvertaken(t *testing.T) {
	p := newProof(t)
	row := &p.board.rows[0]
	row.version.Store(1)
	x := p.startBehind(2, patient(0))
	setter, reader := p.workers[0], p.workers[1]
	p.wantSame([]outcome{p.one(reader, calls{ID: "0"})}, 1)

	var first atomic.Pointer[[]any]
	p.onCommand(x, func(kind string, cmd [][]byte) proxy.Fault {
		switch {
		case kind == cmdSeize && first.Load() == nil:
			args := copied(cmd)
			first.Store(&args)
			return proxy.Late(time.Hour) // the test itself is the network
		case kind == cmdFill:
			if err := p.client.Do(context.Background(), *first.Load()...).Err(); err != nil {
				t.Errorf("the late delivery: %v", err)
			}
		}
		return proxy.Pass()
	})
	row.version.Store(2)
	if o := p.one(setter, calls{ID: "0", Do: "set", V: 2}); o.Error != "" {
		t.Fatalf("Set: %s", o.Error)
	}
	p.wantSame(p.call(calls{ID: "0", Callers: 4}), 2)
}

// TestCase44ScriptFlush has somebody make Redis forget its scripts all the time.
func TestCase44ScriptFlush(t *testing.T) {
	p := newProof(t)
	s := patient(0)
	s.TTL = 50 * time.Millisecond
	s.Mix = &mix{Keys: 4, Callers: 8, Invalidate: 200, Set: 100, Refresh: 100, Load: 2 * time.Millisecond}
	p.start(4, s)
	for _, w := range p.workers {
		w.tell(order{Do: "storm", Storm: &storm{Calls: 1e9, For: 2 * time.Second}})
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	flushes := 0
	wg.Go(func() {
		for sleep(done, time.Millisecond) {
			if p.client.ScriptFlush(t.Context()).Err() == nil {
				flushes++
			}
		}
	})
	for _, w := range p.workers {
		r := p.await(w, replyBound)
		if len(r.Tally.Errors) > 0 || r.Tally.Stale > 0 {
			t.Errorf("a process saw errors %v and %d stale values, want none", r.Tally.Errors, r.Tally.Stale)
		}
	}
	close(done)
	wg.Wait()
	if loads := p.loads(4); flushes < 100 || loads < 10 {
		t.Errorf("%d SCRIPT FLUSH and %d loads, which proves too little", flushes, loads)
	}
}

// TestCase50RestartInMidWait restarts Redis, empty, while processes wait for
// another's load. Nothing tells them; they ask, and are given a lease or a value.
func TestCase50RestartInMidWait(t *testing.T) {
	const load = time.Second
	p := newProof(t)
	p.board.rows[0].version.Store(7)
	p.start(4, patient(load))
	holder, others := p.workers[0], p.workers[1:]
	p.begin(calls{ID: "0", Callers: 1}, holder)
	p.loading("0")
	p.begin(calls{ID: "0", Callers: 8}, others...)
	p.awaited("0")
	p.server.Restart()
	p.wantSame(p.hear(holder), 7)
	all := p.hear(others...)
	p.wantWithin(all, 2*load+5*promised)
	served := 0
	for _, o := range all {
		if o.Error == "" && o.Value == 7 {
			served++
		} else if o.Kind != "unavailable" {
			t.Errorf("a caller got %d, %q, want 7 or that Redis is unavailable", o.Value, o.Error)
		}
	}
	t.Logf("%d of %d waiters served", served, len(all))
	redistest.Eventually(t, replyBound, func() bool {
		return !slices.ContainsFunc(p.call(calls{ID: "1", Callers: 8}), func(o outcome) bool { return o.Error != "" })
	}, "every process reaches Redis again")
	p.wantMessages()
}

// wantMessages fails unless waiters are woken by messages again soon.
func (p *proof) wantMessages() {
	p.Helper()
	before, row := p.stats(p.workers...).WokenByMessage, 1
	redistest.Eventually(p, replyBound, func() bool {
		row++
		p.call(calls{ID: strconv.Itoa(row), Callers: 1})
		return p.stats(p.workers...).WokenByMessage > before
	}, "a waiter is woken by a message")
}
