//go:build unix

package cache_test

import (
	"strings"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/redistest"
)

// promised is how much later than the end of a load, or of what stands for it,
// its waiters may learn of it.
const promised = 100 * time.Millisecond

// wantWithin fails unless every caller was answered within d.
func (p *proof) wantWithin(all []outcome, d time.Duration) {
	p.Helper()
	for _, o := range all {
		if o.took() > d+slack {
			p.Errorf("a caller was answered %q after %v, want at most %v", o.Error, o.took(), d)
		}
	}
}

// TestG5FailureIsShared has 4 processes with 10 callers each ask, again and
// again, for what cannot be loaded.
func TestG5FailureIsShared(t *testing.T) {
	const load, cooldown = 100 * time.Millisecond, 500 * time.Millisecond
	p := newProof(t)
	s := patient(load)
	s.Load.Bad, s.Cooldown, s.CoolMax = "fail", cooldown, cooldown
	p.start(4, s)
	began := time.Now()
	for time.Since(began) < 4*cooldown {
		all := p.call(calls{ID: "0", Callers: 10})
		p.wantWithin(all, load+promised)
		for _, o := range all {
			if o.Kind != "loader" && o.Kind != "remote" || !strings.Contains(o.Error, "the database is down") {
				t.Fatalf("a caller got %d, %q (%s), want the loader's error", o.Value, o.Error, o.Kind)
			}
		}
	}
	loads, lasted := p.board.rows[0].loads.Load(), time.Since(began)
	if most := 1 + int64(lasted/cooldown); loads < 2 || loads > most {
		t.Errorf("%d loads in %v, want from 2 to %d: one per cool-down of %v", loads, lasted, most, cooldown)
	}
	p.wantApart(cooldown)
}

// wantApart fails unless the loads of row 0 began at least d apart.
func (p *proof) wantApart(d time.Duration) {
	p.Helper()
	began := p.board.began(0)
	for i := 1; i < len(began); i++ {
		if got := time.Duration(began[i] - began[i-1]); got < d {
			p.Errorf("load %d began %v after the one before, want at least %v", i, got, d)
		}
	}
}

// TestG4BadLoaders has the first load misbehave. Everybody who waits learns of it
// at once, in whichever process, and the key can be loaded again.
func TestG4BadLoaders(t *testing.T) {
	const load, timeout, cooldown = 100 * time.Millisecond, 300 * time.Millisecond, 50 * time.Millisecond
	for _, c := range []struct {
		bad          string
		after        time.Duration // when it shows
		here, remote string        // the kinds of error
		text         string
		hung         int
	}{
		{"fail", load, "loader", "remote", "attempt 1: the database is down", 0},
		{"panic", load, "panic", "remote panic", "attempt 1: no such column", 0},
		{"goexit", load, "panic", "remote panic", "Goexit", 0},
		{"hang", timeout, "load timeout", "remote", "timed out", 1},
		{"reenter", load, "reentrant", "remote", "its own key", 0},
	} {
		t.Run(c.bad, func(t *testing.T) {
			p := newProof(t)
			s := patient(load)
			s.Load.Bad, s.Load.N, s.LoadTimeout, s.Cooldown = c.bad, 1, timeout, cooldown
			p.board.rows[0].version.Store(7)
			p.start(3, s)
			all := p.call(calls{ID: "0", Callers: 5})
			p.wantLoads("0", 1)
			p.wantWithin(all, c.after+promised)
			seen := map[string]int{}
			for _, o := range all {
				seen[o.Kind]++
				if !strings.Contains(o.Error, c.text) {
					t.Errorf("a caller got %d, %q, want an error that says %q", o.Value, o.Error, c.text)
				}
			}
			if seen[c.here] != 5 || seen[c.remote] != 10 {
				t.Errorf("the callers got %v, want 5 times %q and 10 times %q", seen, c.here, c.remote)
			}
			if got := p.stats(p.workers...).HungNow; got != c.hung {
				t.Errorf("%d loaders hang, want %d", got, c.hung)
			}
			p.recovers("0", 7)
		})
	}
}

// recovers fails unless the row can be loaded soon, once.
func (p *proof) recovers(id string, want uint64) {
	p.Helper()
	var all []outcome
	redistest.Eventually(p, replyBound, func() bool {
		all = p.call(calls{ID: id, Callers: 1})
		return all[0].Error == ""
	}, "the cool-down is over and the row can be loaded")
	p.wantSame(p.call(calls{ID: id, Callers: 1}), want)
	p.wantLoads(id, 2)
}

// TestG4NilPointer loads nil without an error: that is a value.
func TestG4NilPointer(t *testing.T) {
	p := newProof(t)
	p.start(3, patient(100*time.Millisecond))
	for range 2 {
		for _, o := range p.call(calls{ID: "0", Do: "pointer", Callers: 5}) {
			if !o.Nil || o.Error != "" {
				t.Errorf("a caller got %+v, want nil and no error", o)
			}
		}
	}
	p.wantLoads("0", 1)
}
