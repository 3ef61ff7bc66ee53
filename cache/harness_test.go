package cache_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/internal/proxy"
	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/loader"
)

// bound is how long a test on a real server waits for what should happen soon.
const bound = 20 * time.Second

// open returns a cache on client that is closed when the test ends. Unless opts
// say so, its Redis budget is one that a busy machine does not exhaust.
func open(tb testing.TB, client redis.UniversalClient, opts *cache.Options) *cache.Cache {
	tb.Helper()
	o := cache.Options{RedisBudget: bound}
	if opts != nil {
		o = *opts
		if o.RedisBudget == 0 {
			o.RedisBudget = bound
		}
	}
	c, err := cache.New(client, &o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return c
}

// space registers a keyspace.
func space[V any](tb testing.TB, c *cache.Cache, prefix string, load loader.Func[V], p *cache.Policy) *cache.Keyspace[V] {
	tb.Helper()
	k, err := cache.Register(c, prefix, load, p)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// openSpace opens a cache with one keyspace, "k:".
func openSpace[V any](tb testing.TB, client redis.UniversalClient, load loader.Func[V], p *cache.Policy) (*cache.Cache, *cache.Keyspace[V]) {
	tb.Helper()
	c := open(tb, client, nil)
	return c, space(tb, c, "k:", load, p)
}

// source is where values come from: a number that a test changes, and a count of
// the loads that read it.
type source struct{ now, loads atomic.Int64 }

func (s *source) load(context.Context, string) (int64, error) {
	s.loads.Add(1)
	return s.now.Load(), nil
}

// wantLoads reports a count of loads that is not the one wanted.
func (s *source) wantLoads(tb testing.TB, want int64) {
	tb.Helper()
	if got := s.loads.Load(); got != want {
		tb.Errorf("%d loads, want %d", got, want)
	}
}

// gated is a loader that says when it has read the source, and returns what it
// read when it is let go.
type gated struct {
	source
	entered chan struct{} // receives once per load
	leave   chan struct{} // a load ends per value sent; close it to end all
}

func newGated() *gated {
	return &gated{entered: make(chan struct{}, 1000), leave: make(chan struct{})}
}

func (g *gated) load(ctx context.Context, id string) (int64, error) {
	v, _ := g.source.load(ctx, id)
	g.entered <- struct{}{}
	select {
	case <-g.leave:
		return v, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// got is what one call came to.
type got[V any] struct {
	value V
	err   error
}

// calling makes a call in a goroutine and returns where its outcome will be.
func calling[V any](f func() (V, error)) <-chan got[V] {
	done := make(chan got[V], 1)
	go func() {
		v, err := f()
		done <- got[V]{v, err}
	}()
	return done
}

// crowd runs f n times at once and waits for all.
func crowd(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// want fails the test unless a call came to value and no error.
func want[V comparable](tb testing.TB, what string, value V) func(V, error) {
	return func(v V, err error) {
		tb.Helper()
		if err != nil || v != value {
			tb.Errorf("%s: got %v, %v; want %v", what, v, err, value)
		}
	}
}

// waitsFor waits until as many calls of c have missed.
func waitsFor(tb testing.TB, misses int64, caches ...*cache.Cache) {
	tb.Helper()
	redistest.Eventually(tb, bound, func() bool {
		var n int64
		for _, c := range caches {
			n += c.Stats().Misses
		}
		return n >= misses
	}, fmt.Sprintf("%d calls wait", misses))
}

// newProxy puts a faulty network before the server at addr.
func newProxy(tb testing.TB, addr string) (*proxy.Proxy, *redis.Client) {
	tb.Helper()
	p, err := proxy.New(addr)
	if err != nil {
		tb.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: p.Addr()})
	tb.Cleanup(func() { client.Close(); p.Close() })
	return p, client
}

// bubble is a synctest bubble with an embedded Redis in it, which lives by the
// bubble's clock.
type bubble struct {
	*testing.T
	redis     *miniredis.Miniredis
	policyTTL time.Duration // for loaders that set one
}

// inBubble runs f in a bubble.
func inBubble(t *testing.T, f func(b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{T: t, redis: miniredis.NewMiniRedis()}
		b.redis.ClockTTL(true)
		t.Cleanup(b.redis.Close)
		f(b)
	})
}

// client returns a new client of the bubble's Redis. Its pool is never waited
// for: go-redis keeps timers for that which may not leave a bubble.
func (b *bubble) client() *redis.Client { return b.slowly(nil) }

// slowly returns a client whose packets take as long as slow says to get there.
func (b *bubble) slowly(slow func(packet string) time.Duration) *redis.Client {
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:0", PoolSize: 2000,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			conn, err := b.redis.Dial()
			if slow != nil && err == nil {
				conn = &slowConn{Conn: conn, slow: slow}
			}
			return conn, err
		},
	})
	b.Cleanup(func() { client.Close() })
	return client
}

// slowConn is a connection on which some packets travel. They arrive even if it is
// closed meanwhile.
type slowConn struct {
	net.Conn
	slow       func(packet string) time.Duration
	travelling sync.WaitGroup
}

func (c *slowConn) Write(b []byte) (int, error) {
	d := c.slow(string(b))
	if d == 0 {
		return c.Conn.Write(b)
	}
	packet := slices.Clone(b)
	c.travelling.Go(func() {
		time.Sleep(d)
		_ = c.SetWriteDeadline(time.Time{}) // that was for handing it over
		_, _ = c.Conn.Write(packet)
	})
	return len(b), nil
}

func (c *slowConn) Close() error {
	_ = c.SetReadDeadline(time.Unix(0, 1))
	go func() {
		c.travelling.Wait()
		c.Conn.Close()
	}()
	return nil
}

// ttl returns the time to live of a key, which must have one.
func (b *bubble) ttl(key string) time.Duration {
	b.Helper()
	d := b.redis.TTL(key)
	if !b.redis.Exists(key) || d <= 0 {
		b.Errorf("key %q: exists %v, TTL %v; want one above 0", key, b.redis.Exists(key), d)
	}
	return d
}
