package cacheotel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/cache/cacheotel"
	"github.com/getorprime/getorprime/cache/cachetest"
	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/redisembed"
	"github.com/getorprime/getorprime/loader"
)

// TestEveryKindIsCountedOnce goes through all kinds of event, those to come too.
func TestEveryKindIsCountedOnce(t *testing.T) {
	tel := newTelemetry(t)
	calls := map[cache.Kind]bool{
		cache.Hit: true, cache.StaleHit: true, cache.NegativeHit: true, cache.CoolingHit: true, cache.Miss: true, cache.CallFailed: true,
	}
	wantCalls, wantEvents := map[string]int64{}, map[string]int64{}
	for k := cache.Kind(0); k.String() != "unknown"; k++ {
		for range 3 {
			tel.observer.Observe(t.Context(), cache.Event{Kind: k, Prefix: "p:", Key: secret})
		}
		if calls[k] {
			wantCalls[fmt.Sprintf("outcome=%s,prefix=p:", k)] = 3
		} else {
			wantEvents[fmt.Sprintf("event=%s,prefix=p:", k)] = 3
		}
	}
	if got := tel.sums("getorprime.calls"); !maps.Equal(got, wantCalls) {
		t.Errorf("calls: got %v, want %v", got, wantCalls)
	}
	if got := tel.sums("getorprime.events"); !maps.Equal(got, wantEvents) {
		t.Errorf("events: got %v, want %v", got, wantEvents)
	}
	tel.wantNoKey()
}

func TestEventsWithoutAKeyspace(t *testing.T) {
	tel := newTelemetry(t)
	tel.observer.Observe(t.Context(), cache.Event{Kind: cache.BreakerOpened})
	if got, want := tel.sums("getorprime.events"), map[string]int64{"event=breaker_opened": 1}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDurationsAreInSeconds(t *testing.T) {
	tests := []struct {
		event     cache.Event
		histogram string
		point     string
		want      float64
	}{
		{cache.Event{Kind: cache.Loaded, Duration: 250 * time.Millisecond}, "getorprime.load.duration", "outcome=loaded,prefix=p:", .25},
		{cache.Event{Kind: cache.NotFound, Duration: time.Second}, "getorprime.load.duration", "outcome=not_found,prefix=p:", 1},
		{cache.Event{Kind: cache.LoadFailed, Duration: 2 * time.Second}, "getorprime.load.duration", "outcome=load_failed,prefix=p:", 2},
		{cache.Event{Kind: cache.LoadPanicked, Duration: 3 * time.Second}, "getorprime.load.duration", "outcome=load_panicked,prefix=p:", 3},
		{cache.Event{Kind: cache.LoadCanceled, Duration: 4 * time.Second}, "getorprime.load.duration", "outcome=load_canceled,prefix=p:", 4},
		{cache.Event{Kind: cache.WokenMessage, Duration: 50 * time.Millisecond}, "getorprime.wait.duration", "outcome=woken_message,prefix=p:", .05},
		{cache.Event{Kind: cache.WokenPoll, Duration: 75 * time.Millisecond}, "getorprime.wait.duration", "outcome=woken_poll,prefix=p:", .075},
		{cache.Event{Kind: cache.WaitTimedOut, Duration: time.Minute}, "getorprime.wait.duration", "outcome=wait_timed_out,prefix=p:", 60},
		{cache.Event{Kind: cache.WokenMessage, Overhead: 2 * time.Millisecond}, "getorprime.wake.overhead", "outcome=woken_message,prefix=p:", .002},
		{cache.Event{Kind: cache.WokenPoll, Overhead: 40 * time.Millisecond}, "getorprime.wake.overhead", "outcome=woken_poll,prefix=p:", .04},
		{cache.Event{Kind: cache.StaleFallback, Duration: 3 * time.Hour, Err: errors.New("down")}, "getorprime.stale.age", "prefix=p:", 10800},
	}
	for _, c := range tests {
		t.Run(c.histogram+"/"+c.event.Kind.String(), func(t *testing.T) {
			tel := newTelemetry(t)
			c.event.Prefix = "p:"
			tel.observer.Observe(t.Context(), c.event)
			got := tel.histogram(c.histogram)
			if p := got[c.point]; len(got) != 1 || p.Count != 1 || p.Sum != c.want {
				t.Errorf("got %+v, want one point %q of %v s", got, c.point, c.want)
			}
		})
	}
}

func TestUnits(t *testing.T) {
	tel := newTelemetry(t)
	c, _ := cachetest.New(t, tel.options())
	defer tel.observer.Watch(c)()
	for k := cache.Kind(0); k.String() != "unknown"; k++ {
		tel.observer.Observe(t.Context(), cache.Event{Kind: k})
	}
	want := map[string]string{
		"getorprime.calls": "{call}", "getorprime.events": "{event}",
		"getorprime.load.duration": "s", "getorprime.wait.duration": "s", "getorprime.wake.overhead": "s", "getorprime.stale.age": "s",
		"getorprime.flights": "{flight}", "getorprime.leases": "{lease}", "getorprime.hung": "{load}",
	}
	got := map[string]string{}
	for name, m := range tel.collect() {
		got[name] = m.Unit
		if m.Description == "" {
			t.Errorf("%s has no description", name)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestMetricsAgreeWithStats has a cache do a bit of everything.
func TestMetricsAgreeWithStats(t *testing.T) {
	tel := newTelemetry(t)
	c, clock := cachetest.New(t, tel.options())
	var err error
	k := register(t, c, func(context.Context, string) (string, error) { return "v", err }, &cache.Policy{
		TTL: time.Hour, StaleWhileRevalidate: time.Hour, StaleIfError: 24 * time.Hour, Jitter: -1, EarlyRefresh: -1,
	})
	outcomes := []struct {
		err   error
		after time.Duration
	}{{nil, 0}, {nil, 0}, {nil, time.Hour}, {errors.New("down"), 3 * time.Hour}, {nil, time.Hour}, {loader.ErrNotFound, 3 * time.Hour}, {nil, 0}}
	for _, o := range outcomes {
		clock.Advance(o.after)
		err = o.err
		_, _ = k.GetOrPrime(t.Context(), secret)
		clock.Settle()
	}
	s := c.Stats()
	got := tel.sums("getorprime.calls")
	for outcome, want := range map[string]int64{"hit": s.Hits, "stale_hit": s.StaleHits, "negative_hit": s.NegativeHits, "miss": s.Misses} {
		if n := got["outcome="+outcome+",prefix=k:"]; n != want || want == 0 {
			t.Errorf("%d calls with %s, want %d and not 0", n, outcome, want)
		}
	}
	loads := tel.histogram("getorprime.load.duration")
	for outcome, want := range map[string]int64{"loaded": s.Loaded, "not_found": s.NotFound, "load_failed": s.LoadsFailed} {
		if n := loads["outcome="+outcome+",prefix=k:"].Count; int64(n) != want || want == 0 {
			t.Errorf("%d loads with %s, want %d and not 0", n, outcome, want)
		}
	}
	age := tel.histogram("getorprime.stale.age")["prefix=k:"]
	if int64(age.Count) != s.StaleFallbacks || age.Sum < 7200 || age.Sum > 7260 {
		t.Errorf("%d stale values, %v s in all; want one of 2 h", age.Count, age.Sum)
	}
	tel.wantNoKey()
}

func register[V any](tb testing.TB, c *cache.Cache, load loader.Func[V], p *cache.Policy) *cache.Keyspace[V] {
	tb.Helper()
	k, err := cache.Register(c, "k:", load, p)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// TestWaitingForAnotherProcess has two caches on one server: the second waits
// for the first one's load.
func TestWaitingForAnotherProcess(t *testing.T) {
	server, err := redisembed.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	tel := newTelemetry(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	load := func(context.Context, string) (string, error) {
		close(entered)
		<-leave
		return "v", nil
	}
	here, there := open(t, server, nil), open(t, server, tel.observer)
	first, second := register(t, here, load, nil), register(t, there, load, nil)
	done := make(chan error, 2)
	go func() { _, err := first.GetOrPrime(t.Context(), secret); done <- err }()
	<-entered
	go func() { _, err := second.GetOrPrime(t.Context(), secret); done <- err }()
	client := server.Client()
	t.Cleanup(func() { client.Close() })
	eventually(t, "the second waits", func() bool {
		b, _ := client.Get(t.Context(), "k:"+secret).Bytes()
		h, _, err := entry.Parse(b)
		return err == nil && h.Flags.Has(entry.Waiters)
	})
	close(leave)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	waits, overheads := tel.histogram("getorprime.wait.duration"), tel.histogram("getorprime.wake.overhead")
	if len(waits) != 1 || len(overheads) != 1 {
		t.Fatalf("waits %v, overheads %v; want one of each", waits, overheads)
	}
	for attrs, w := range waits {
		o := overheads[attrs]
		if w.Count != 1 || o.Count != 1 || w.Sum <= 0 || w.Sum > bound.Seconds() || o.Sum < 0 || o.Sum > w.Sum {
			t.Errorf("%s: waited %v s, of which %v s after the value was stored", attrs, w.Sum, o.Sum)
		}
	}
	tel.wantNoKey()
}

// open returns a cache on server that is closed when the test ends.
func open(t *testing.T, server *redisembed.Server, o cache.Observer) *cache.Cache {
	t.Helper()
	client := server.Client()
	t.Cleanup(func() { client.Close() })
	c, err := cache.New(client, &cache.Options{Observer: o, RedisBudget: bound})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestWatch(t *testing.T) {
	tel := newTelemetry(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	load := func(context.Context, string) (string, error) {
		entered <- struct{}{}
		<-leave
		return "v", nil
	}
	var stops []func()
	done := make(chan error, 3)
	for _, keys := range []int{1, 2} {
		c, _ := cachetest.New(t, tel.options())
		stops = append(stops, tel.observer.Watch(c))
		k := register(t, c, load, nil)
		for i := range keys {
			go func() { _, err := k.GetOrPrime(t.Context(), fmt.Sprint(secret, i)); done <- err }()
			<-entered
		}
	}
	wantLevels := func(what string, want map[string]int64) {
		t.Helper()
		got := map[string]int64{}
		for _, name := range []string{"flights", "leases", "hung"} {
			for attrs, n := range tel.sums("getorprime." + name) {
				got[name+attrs] = n
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	wantLevels("both", map[string]int64{"flights": 3, "leases": 3, "hung": 0})
	stops[0]()
	stops[0]()
	wantLevels("one", map[string]int64{"flights": 2, "leases": 2, "hung": 0})
	close(leave)
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	wantLevels("idle", map[string]int64{"flights": 0, "leases": 0, "hung": 0})
	stops[1]()
	wantLevels("none", map[string]int64{})
}

// TestLevelsGoUpAndDown checks the kind of the instruments: additive, and able
// to fall.
func TestLevelsGoUpAndDown(t *testing.T) {
	tel := newTelemetry(t)
	c, _ := cachetest.New(t, tel.options())
	defer tel.observer.Watch(c)()
	for _, name := range []string{"getorprime.flights", "getorprime.leases", "getorprime.hung"} {
		if sum, ok := tel.collect()[name].Data.(metricdata.Sum[int64]); !ok || sum.IsMonotonic {
			t.Errorf("%s is %T, want a sum that may fall", name, tel.collect()[name].Data)
		}
	}
}

func TestDefaultsAreTheGlobalProviders(t *testing.T) {
	o, err := cacheotel.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := cachetest.New(t, &cache.Options{Observer: o})
	k := register(t, c, func(context.Context, string) (string, error) { return "v", nil }, nil)
	if got, err := k.GetOrPrime(t.Context(), secret); got != "v" || err != nil {
		t.Errorf("got %q, %v; want v", got, err)
	}
}

func BenchmarkObserve(b *testing.B) {
	tel := newTelemetry(b)
	e := cache.Event{Kind: cache.Hit, Prefix: "k:", Key: secret}
	b.ReportAllocs()
	for b.Loop() {
		tel.observer.Observe(b.Context(), e)
	}
}
