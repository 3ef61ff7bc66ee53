package cachetest

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/internal/testaccess"
)

// Clock is the clock of the embedded Redis. It goes by itself, as fast as the
// process's, and ahead of it by what it was advanced. It is safe for concurrent
// use.
type Clock struct {
	tb    testing.TB
	cache *cache.Cache
	redis *miniredis.Miniredis
	ahead atomic.Int64 // of the process's clock, in ns
}

// start starts the server and makes it go by this clock.
func (c *Clock) start() error {
	c.redis.ClockTTL(true)
	conn, err := c.redis.Dial() // there is no other way to start it without a port
	if err != nil {
		return fmt.Errorf("cachetest: start embedded redis: %w", err)
	}
	c.redis.Server().SetPreHook(c.tellTime)
	return conn.Close()
}

// tellTime answers TIME, which is all that the server's own clock is asked for,
// by clients and by scripts.
func (c *Clock) tellTime(peer *server.Peer, cmd string, args ...string) bool {
	if cmd != "TIME" || len(args) > 0 {
		return false
	}
	now := c.Now().UnixMicro()
	peer.WriteLen(2)
	peer.WriteBulk(strconv.FormatInt(now/1e6, 10))
	peer.WriteBulk(strconv.FormatInt(now%1e6, 10))
	return true
}

// Now returns the server's time. A loader may use it as the time of its data.
func (c *Clock) Now() time.Time {
	return time.Now().Add(time.Duration(c.ahead.Load()))
}

// Advance moves the server's time forward by d and counts all TTLs down by as
// much. Each call that starts after Advance has returned judges freshness by the
// new time: a value that was loaded with a TTL of d has expired. A negative d
// fails the test at once.
//
// It does not wait for anything. Where a call before it may have started a
// background refresh, call [Clock.Settle] first.
func (c *Clock) Advance(d time.Duration) {
	c.tb.Helper()
	if d < 0 {
		c.tb.Fatalf("cachetest: Advance(%v): time does not run backwards", d)
	}
	// A script that runs between the two writes a key which lives longer than its
	// header says, and the header counts. The other way round the key would go
	// too soon.
	c.redis.FastForward(d)
	c.ahead.Add(int64(d))
	testaccess.ForgetServerTime(c.cache)
}

// Settle waits until no load is under way in the cache, for a caller or in the
// background. After it a refreshed value is there to be read. A load that does
// not end within 10 s is an error of the test.
func (c *Clock) Settle() {
	c.tb.Helper()
	for until := time.Now().Add(patience); c.cache.Stats().FlightsNow > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			c.tb.Errorf("cachetest: Settle: %d loads still under way after %v", c.cache.Stats().FlightsNow, patience)
			return
		}
	}
}
