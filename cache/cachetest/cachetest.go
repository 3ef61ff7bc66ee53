// Package cachetest lets you test code that uses package cache: a real cache on
// an embedded Redis, and a clock by which hours of TTL pass at once.
//
// # One test
//
//	func TestPriceIsReloadedDaily(t *testing.T) {
//		c, clock := cachetest.New(t, nil)
//		shop := NewShop(c, db) // your code: it registers its keyspaces on c
//
//		shop.Price(ctx, "tea") // loaded
//		clock.Advance(23 * time.Hour)
//		shop.Price(ctx, "tea") // still the value from the cache
//		clock.Advance(time.Hour)
//		shop.Price(ctx, "tea") // expired: loaded again
//	}
//
// Nothing else has to run: there is no port, no file and no process to start, so
// tests may be parallel and each has a server of its own. When the test ends the
// cache is closed, which waits for loads under way.
//
// # What the clock moves
//
// [Clock.Advance] moves the server: the TTLs it counts down and the time it
// tells. All that the cache keeps in Redis goes by that time, in every policy's
// field that says how long something is kept: TTL, StaleWhileRevalidate,
// StaleIfError, NotFoundTTL, ErrorCooldown, and what a loader asks for with
// loader.SetTTL.
//
// What goes on inside the process stays in real time: LoadTimeout, WaitTimeout,
// SoftTimeout, RedisBudget, the renewal of leases, contexts, and time.Now. A load
// that runs while the clock is advanced by more than its lease is like one whose
// process was suspended for that long: it may find its lease gone, and then its
// callers get the value but it is not stored. So let background refreshes end
// before you go on: [Clock.Settle] waits for them.
//
// Two defaults are a matter of chance. A TTL is shortened by up to a tenth
// (Policy.Jitter), so a value may expire before its TTL is over, never after it.
// A hit near its expiry may start a refresh (Policy.EarlyRefresh). Where a test
// counts loads close to the expiry it sets both to −1.
//
// # In a synctest bubble
//
// The server and its connections live in memory, so New also works inside a
// bubble of [testing/synctest]. There time.Sleep moves the server's time as well,
// and leases, timeouts and time.Now with it; Advance still moves the server's
// alone.
//
// # What is not here
//
// The server is miniredis, not Redis: it has no memory limit, no persistence and
// no cluster. It is not made for benchmarks.
package cachetest

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/cache"
)

// patience bounds what happens at once unless something is wrong.
const patience = 10 * time.Second

// New returns a cache on a new and empty embedded Redis, and the clock of that
// Redis. Options are those of [cache.New], nil for the defaults, but that
// RedisBudget is 10 s if it is not set: a test is not to fail because the machine
// is busy.
//
// The test fails at once if opts are wrong. Cache and server are closed when the
// test and its subtests end; a loader that has not returned 10 s later is an
// error of the test.
func New(tb testing.TB, opts *cache.Options) (*cache.Cache, *Clock) {
	tb.Helper()
	clock := &Clock{tb: tb, redis: miniredis.NewMiniRedis()}
	tb.Cleanup(clock.redis.Close)
	if err := clock.start(); err != nil {
		tb.Fatal(err)
	}
	client := newClient(clock.redis)
	tb.Cleanup(func() { _ = client.Close() })

	c, err := cache.New(client, withDefaults(opts))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { closeCache(tb, c) })
	clock.cache = c
	return c, clock
}

func withDefaults(opts *cache.Options) *cache.Options {
	var o cache.Options
	if opts != nil {
		o = *opts
	}
	if o.RedisBudget == 0 {
		o.RedisBudget = patience
	}
	return &o
}

// newClient returns a client that reaches the server through memory. Its pool is
// never waited for: go-redis keeps timers for that which must not leave a bubble.
func newClient(server *miniredis.Miniredis) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:     "127.0.0.1:0", // a name would be looked up
		PoolSize: 2000,
		Dialer:   func(context.Context, string, string) (net.Conn, error) { return server.Dial() },
	})
}

func closeCache(tb testing.TB, c *cache.Cache) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		tb.Error(fmt.Errorf("cachetest: closing the cache, with %d loads under way: %w", c.Stats().FlightsNow, err))
	}
}
