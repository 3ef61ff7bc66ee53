//go:build unix

package cache_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/internal/proxy"
)

// Checker A: many processes call on a handful of keys while others invalidate,
// set, refresh, delete and flush, processes are stopped past their leases, and
// the network loses, delays and repeats what it may.
//
// The database is memory shared by the processes: per row the newest version,
// and the newest whose invalidation was acknowledged. A writer first raises the
// version, then invalidates, and only when told that this went well notes it as
// acknowledged. A caller notes what is acknowledged, calls, and must be given
// that version or a newer one; "not found" only if a version since then has no
// record. Half of the processes fail when Redis cannot be asked, the others load
// without it, and are judged alike.

// stormProcesses is how many processes a storm takes.
const stormProcesses = 8

// stormBudget is the Redis budget of processes that can do without.
const stormBudget = 50*time.Millisecond + slack/10

// local reports whether a process loads without Redis when that is out of reach.
func (s *setup) local() bool { return s.Mix != nil && s.Process%2 == 1 }

// hot is the mix for the code as it is: short loads, hot rows, everything goes
// wrong now and then.
func hot() mix {
	return mix{
		Keys: 6, Callers: 8,
		Invalidate: 100, Delete: 60, Flush: 5, Set: 60, Refresh: 60, Peek: 100, Hurried: 200,
		Load: 3 * time.Millisecond, Long: 80 * time.Millisecond, LongLoad: 300, Failing: 50, Unstored: 50,
		SlowReply: 500, Slow: 10 * time.Millisecond,
		Proxied: 4, Within: 30 * time.Millisecond,
		Leasing: trouble{Drop: 100, Late: 200, Delay: 100},
		Ending:  trouble{Drop: 200, Late: 200, Duplicate: 300, Delay: 200},
		Others:  trouble{Drop: 10, Late: 10, Duplicate: 30, Delay: 20},
		Stops:   true, Cuts: true,
	}
}

// TestG2NothingStale runs checker A on the code as it is. With PROOF=full it
// judges a million calls.
func TestG2NothingStale(t *testing.T) {
	sum := nothingStale(t, hot())
	if n := sum.Stats.StaleHits + sum.Stats.RefreshedEarly; n > 0 {
		t.Errorf("%d stale hits and early refreshes without a policy for them", n)
	}
}

// TestG2NothingStaleWithWindows is the same with stale windows, early refresh and
// soft timeouts: a value may be old, but never one that was invalidated.
func TestG2NothingStaleWithWindows(t *testing.T) {
	m := hot()
	m.TTL, m.StaleFor, m.Soft = 20*time.Millisecond, 100*time.Millisecond, 5*time.Millisecond
	sum := nothingStale(t, m)
	for what, n := range map[string]int64{
		"stale hits": sum.Stats.StaleHits, "refreshes": sum.Stats.Refreshed, "early refreshes": sum.Stats.RefreshedEarly,
	} {
		if n == 0 {
			t.Errorf("no %s: the windows were never used", what)
		}
	}
}

// nothingStale runs a storm that has to show no stale read.
func nothingStale(t *testing.T, m mix) *tally {
	t.Helper()
	want := int64(200_000)
	switch {
	case os.Getenv("PROOF") == "full":
		want = 1_000_000
	case testing.Short():
		want = 30_000
	}
	sum := runStorm(t, m, "", storm{Calls: want, For: 20 * time.Minute})
	if sum.Calls < want {
		t.Errorf("judged %d calls, want %d", sum.Calls, want)
	}
	if sum.Stale > 0 {
		t.Errorf("%d calls were given what had been invalidated before", sum.Stale)
	}
	var failed int64
	for _, n := range sum.Errors {
		failed += n
	}
	if failed*5 > sum.Calls {
		t.Errorf("%d of %d calls and writes failed, which leaves too little to judge", failed, sum.Calls)
	}
	for what, n := range map[string]int64{
		"writes": sum.Writes, "flushes": sum.Flushes, "sets": sum.Sets, "refreshes": sum.Refreshes, "not found": sum.NotFound, "loads without Redis": sum.Stats.Degraded,
		"fills refused": sum.Stats.StoresRefused, "leases lost": sum.Stats.LeasesLost,
	} {
		if n == 0 {
			t.Errorf("no %s: the storm was too mild", what)
		}
	}
	return sum
}

// mutants are the rules of G2, each weakened, with what has to change in the mix
// to show it soon, and why.
var mutants = []struct {
	name   string
	change func(*mix)
}{
	// An older load of the same process has to overlap a newer one, which an
	// Invalidate of that process allows.
	{mutantToken, func(m *mix) { m.Load = 10 * time.Millisecond }},
	{mutantUnchecked, nil},
	{mutantPlainSet, nil},
	// The second delivery has to find the key deleted and not leased anew, while
	// the load under the first still runs: callers that rest, nearly as many
	// deletions as reads, deliveries later than a new connection takes, loads
	// longer than that whose leases last, and no other trouble that would keep
	// connections busy.
	{mutantResend, func(m *mix) {
		m.Keys, m.Pause = 16, 40*time.Millisecond
		m.Load, m.Within, m.Lease = 150*time.Millisecond+slack/10, 100*time.Millisecond+slack/10, time.Second
		m.Invalidate, m.Delete = 500, 4000
		m.Proxied, m.Leasing = stormProcesses, trouble{Late: 3000}
		m.Ending, m.Others, m.Stops, m.Cuts = trouble{}, trouble{}, false, false
	}},
	{mutantAny, nil},
	// The reply to FILL has to travel while another process invalidates and a
	// caller joins.
	{mutantStored, func(m *mix) { m.SlowReply = 5000 }},
}

// TestG2Mutants runs checker A on code with one rule weakened. Each must be
// caught, and by nothing that the code as it is does in the same mix.
func TestG2Mutants(t *testing.T) {
	for _, m := range mutants {
		x := hot()
		if m.change != nil {
			m.change(&x)
		}
		t.Run(m.name, func(t *testing.T) {
			sum := runStorm(t, x, m.name, storm{Calls: 1e9, StopAt: 1, For: 2 * time.Minute})
			if sum.Stale == 0 {
				t.Errorf("the mutant was not caught in %d calls", sum.Calls)
			}
		})
		if m.change == nil || testing.Short() {
			continue // TestG2NothingStale has the same mix, or nearly
		}
		t.Run("without "+m.name, func(t *testing.T) {
			if sum := runStorm(t, x, "", storm{Calls: 1e9, For: 15 * time.Second}); sum.Stale > 0 {
				t.Errorf("%d calls were given what had been invalidated before", sum.Stale)
			}
		})
	}
}

// runStorm runs a storm and reports what happened in it.
func runStorm(t *testing.T, m mix, mutant string, o storm) *tally {
	t.Helper()
	p := newProof(t)
	n := newNetwork(t, p, &m)
	for i := range stormProcesses {
		s := setup{
			Lease: cmp.Or(m.Lease, time.Duration(20+4*i)*time.Millisecond), TTL: cmp.Or(m.TTL, 300*time.Millisecond), LoadTimeout: 300*time.Millisecond + slack,
			Cooldown: 5 * time.Millisecond, CoolMax: 20 * time.Millisecond, StaleFor: m.StaleFor, Soft: m.Soft, Mix: &m, Mutant: mutant, Process: i,
			Tampered: mutant != "" || i%2 == 0, // the others have a client as most users do
		}
		if i < m.Proxied {
			s.Addr = n.Addr()
		}
		if s.local() {
			s.Budget = stormBudget
		}
		p.launch(stormProcesses, s)
	}
	for _, w := range p.workers {
		p.await(w, replyBound)
	}
	n.begin()
	began := time.Now()
	for _, w := range p.workers {
		w.tell(order{Do: "storm", Storm: &o})
	}
	end := harass(p, n, &m)
	sum := &tally{Errors: map[string]int64{}}
	for _, w := range p.workers {
		r := p.await(w, o.For+replyBound)
		sum.add(r.Tally)
		add(&sum.Stats, &r.Tally.Stats)
	}
	stops := end()
	t.Logf("%d calls in %v: %d stale; %d loads, %d writes, %d flushes, %d sets, %d refreshes, %d stops", sum.Calls,
		time.Since(began).Round(time.Millisecond), sum.Stale, p.loads(m.Keys), sum.Writes, sum.Flushes, sum.Sets, sum.Refreshes, stops)
	t.Logf("errors %v; network %v", sum.Errors, n)
	t.Logf("%+v", sum.Stats)
	if len(sum.Violations) > 0 {
		v := sum.Violations[0]
		t.Logf("STALE: process %d, %s of row %d got version %d, want %d or newer\n%s",
			v.Process, v.Call, v.Row, v.Got, v.Want, p.board.history(v.Row, v.Began-100e6, v.Ended))
	}
	return sum
}

// harass stops processes past their leases and cuts connections until end is called.
func harass(p *proof, n *network, m *mix) (end func() (stops int)) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	var stops int
	if m.Stops {
		wg.Go(func() {
			for sleep(done, 100*time.Millisecond+upTo(200*time.Millisecond)) {
				w := p.workers[rand.IntN(len(p.workers))]
				w.stop()
				sleep(done, 40*time.Millisecond+upTo(110*time.Millisecond))
				w.cont()
				stops++
			}
		})
	}
	if m.Cuts {
		wg.Go(func() {
			for sleep(done, 500*time.Millisecond+upTo(time.Second)) {
				n.hole(done)
				n.cut()
			}
		})
	}
	return func() int {
		close(done)
		wg.Wait()
		return stops
	}
}

// sleep passes time in the parent, which plays fate. It reports false once done.
func sleep(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-done:
		return false
	}
}

// network is a proxy that makes trouble, and counts it.
type network struct {
	*proxy.Proxy
	p       *proof
	m       *mix
	scripts dictionary
	mu      sync.Mutex // guards counts
	counts  map[string]int
}

func newNetwork(t *testing.T, p *proof, m *mix) *network {
	t.Helper()
	scripts, err := readScripts()
	if err != nil {
		t.Fatal(err)
	}
	x, err := proxy.New(p.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return &network{Proxy: x, p: p, m: m, scripts: scripts, counts: map[string]int{}}
}

// begin ends the calm in which the processes connected.
func (n *network) begin() { n.OnCommand(n.fault) }

// hole is silence that lasts longer than half of the processes have patience.
func (n *network) hole(done <-chan struct{}) {
	n.BlackHole()
	sleep(done, stormBudget+upTo(4*stormBudget))
	n.count("hole")
}

// cut cuts all connections, and mends the network.
func (n *network) cut() {
	n.Cut()
	if err := n.Heal(); err != nil {
		n.p.Errorf("healing the network: %v", err)
	}
	n.count("cut")
}

// fault draws what becomes of a command. One that can create a lease is never
// delivered twice: no network does that, TCP sees to it.
func (n *network) fault(cmd [][]byte) proxy.Fault {
	kind := n.scripts.ofBytes(cmd)
	trouble, draw := n.m.Others, rand.IntN(10_000)
	switch {
	case leasing(kind):
		trouble = n.m.Leasing
		trouble.Duplicate = 0
	case kind != cmdGet && kind != cmdOther:
		trouble = n.m.Ending
	}
	d := upTo(n.m.Within)
	for _, f := range []struct {
		name  string
		share int
		fault proxy.Fault
	}{
		{"drop", trouble.Drop, proxy.DropReply()},
		{"late", trouble.Late, proxy.Late(d)},
		{"duplicate", trouble.Duplicate, proxy.Duplicate(d)},
		{"delay", trouble.Delay, proxy.Delay(d)},
	} {
		if draw < f.share {
			n.count(f.name + " " + kind)
			return f.fault
		}
		draw -= f.share
	}
	return proxy.Pass()
}

func (n *network) count(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts[what]++
}

// String lists what the network did.
func (n *network) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return fmt.Sprint(n.counts)
}

// add adds the statistics s to sum.
func add(sum, s *cache.Stats) {
	to, from := reflect.ValueOf(sum).Elem(), reflect.ValueOf(s).Elem()
	for i := range to.NumField() {
		to.Field(i).SetInt(to.Field(i).Int() + from.Field(i).Int())
	}
}
