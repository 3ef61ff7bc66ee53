//go:build unix

package cache_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/redistest"
)

// patient is a setup that a machine busy with hundreds of processes cannot push
// over its budget.
func patient(load time.Duration) setup {
	return setup{Load: behaviour{For: load}, Budget: 10 * time.Second, TTL: time.Minute}
}

// wantSame fails unless every caller got the value want.
func (p *proof) wantSame(all []outcome, want uint64) {
	p.Helper()
	for _, o := range all {
		if o.Value != want || o.Error != "" {
			p.Fatalf("a caller got %d, %q, want %d", o.Value, o.Error, want)
		}
	}
}

// wantLoads fails unless the row was loaded so often.
func (p *proof) wantLoads(id string, want int64) {
	p.Helper()
	r, _ := p.board.row(id)
	if got := r.loads.Load(); got != want {
		p.Errorf("row %s was loaded %d times, want %d", id, got, want)
	}
}

// loading waits until a load of the row is under way.
func (p *proof) loading(id string) {
	p.Helper()
	r, _ := p.board.row(id)
	redistest.Eventually(p, replyBound, func() bool { return r.running.Load() > 0 }, "a load is running")
}

// awaited waits until another process waits for the load of the row.
func (p *proof) awaited(id string) {
	p.Helper()
	redistest.Eventually(p, replyBound, func() bool {
		flags, err := p.client.GetRange(p.Context(), prefix+id, 4, 4).Bytes()
		return err == nil && len(flags) == 1 && flags[0]&1 == 1
	}, "another process waits for the load")
}

// TestG1ColdKey has a crowd of processes ask for one cold key at one instant.
func TestG1ColdKey(t *testing.T) {
	processes := 200
	if testing.Short() {
		processes = 50
	}
	p := newProof(t)
	p.board.rows[0].version.Store(7)
	p.start(processes, patient(200*time.Millisecond))
	p.wantSame(p.call(calls{ID: "0", Callers: 1}), 7)
	p.wantLoads("0", 1)
}

// TestG1Herds has 8 processes with 64 callers each ask for a cold key, ten times.
func TestG1Herds(t *testing.T) {
	p := newProof(t)
	p.start(8, patient(100*time.Millisecond))
	for i := range 10 {
		id := strconv.Itoa(i)
		p.board.rows[i].version.Store(uint64(100 + i))
		p.wantSame(p.call(calls{ID: id, Callers: 64}), uint64(100+i))
		p.wantLoads(id, 1)
	}
}

// TestG1SteadyExpiry reads one key steadily over many expiries. A load may begin
// only when the value before has expired, and has to soon after.
func TestG1SteadyExpiry(t *testing.T) {
	const ttl, jitter, load = 100 * time.Millisecond, 10 * time.Millisecond, 5 * time.Millisecond
	lasts := 10 * time.Second
	if testing.Short() {
		lasts = 3 * time.Second
	}
	p := newProof(t)
	s := patient(0)
	s.TTL, s.Mix = ttl, &mix{Keys: 1, Callers: 8, Pause: 2 * time.Millisecond, Load: load}
	p.start(4, s)
	for _, w := range p.workers {
		w.tell(order{Do: "storm", Storm: &storm{Calls: 1e9, For: lasts}})
	}
	for _, w := range p.workers {
		if r := p.await(w, lasts+replyBound); len(r.Tally.Errors) > 0 || r.Tally.Stale > 0 {
			t.Errorf("a process saw errors %v and %d stale values, want none", r.Tally.Errors, r.Tally.Stale)
		}
	}
	began := p.board.began(0)
	for i := 1; i < len(began); i++ {
		// The server counts whole milliseconds, and a load begins one round trip
		// after the expiry at the earliest, so only the rounding can make it sooner.
		if d := time.Duration(began[i] - began[i-1]); d < ttl-jitter-2*time.Millisecond {
			t.Errorf("load %d began %v after the one before, whose value lives for %v at least", i, d, ttl-jitter)
		}
	}
	if least := int(lasts / (2 * (ttl + load + slack/10))); len(began) < least {
		t.Errorf("%d loads in %v of steady reads, want at least %d", len(began), lasts, least)
	}
	t.Logf("%d loads in %v", len(began), lasts)
}

// TestG1SlowLoader loads for three times as long as a lease lasts.
func TestG1SlowLoader(t *testing.T) {
	p := newProof(t)
	s := patient(1800 * time.Millisecond)
	s.Lease = 600 * time.Millisecond
	p.board.rows[0].version.Store(7)
	p.start(4, s)
	p.wantSame(p.call(calls{ID: "0", Callers: 8}), 7)
	p.wantLoads("0", 1)
}

// TestG1LoaderKilled kills the process that loads. The others are served when
// its lease has lapsed, by one of them.
func TestG1LoaderKilled(t *testing.T) {
	const lease, promised = 500 * time.Millisecond, 250 * time.Millisecond
	p := newProof(t)
	s := patient(time.Minute)
	s.Lease, s.Load.Bad, s.Load.N = lease, "slow", 1
	p.board.rows[0].version.Store(7)
	p.start(4, s)
	holder, others := p.workers[0], p.workers[1:]
	p.begin(calls{ID: "0", Callers: 1}, holder)
	p.loading("0")
	p.begin(calls{ID: "0", Callers: 8}, others...)
	p.awaited("0")
	killed := holder.kill()
	all := p.hear(others...)
	p.wantSame(all, 7)
	p.wantLoads("0", 2)
	for _, o := range all {
		if d := time.Unix(0, o.Ended).Sub(killed); d > lease+promised+slack {
			t.Errorf("a caller was served %v after the loader's death, want at most %v", d, lease+promised)
		}
	}
}

// TestG2LoaderStopped stops the process that loads for longer than its lease
// lasts. When it goes on, what it loaded is not stored over what was loaded since.
func TestG2LoaderStopped(t *testing.T) {
	p := newProof(t)
	s := patient(600 * time.Millisecond)
	s.Lease = 500 * time.Millisecond
	row := &p.board.rows[0]
	row.version.Store(1)
	p.start(2, s)
	stopped, other := p.workers[0], p.workers[1]
	p.begin(calls{ID: "0", Callers: 1}, stopped)
	p.loading("0")
	stopped.stop()
	row.version.Store(2)
	p.wantSame([]outcome{p.one(other, calls{ID: "0"})}, 2)
	stopped.cont()
	p.hear(stopped)
	if got := p.stats(stopped).StoresRefused; got != 1 {
		t.Errorf("%d stores were refused to the process that was stopped, want 1", got)
	}
	p.wantSame(p.call(calls{ID: "0", Callers: 4}), 2)
	p.wantLoads("0", 2)
}
