package entry_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/entry"
)

// ahead is how far the server's clock is ahead of the process's in these tests.
const ahead = 7 * time.Hour

// exchange is a command and its reply: the server read its clock after reqTime,
// and the reply came after another repTime.
func exchange(c *entry.Clock, offset, reqTime, repTime time.Duration) {
	sent := time.Now()
	time.Sleep(reqTime)
	server := time.Now().Add(offset)
	time.Sleep(repTime)
	c.Observe(server, 0, sent)
}

// wantClock checks that c is at most tolerance away from a server that is
// offset ahead.
func wantClock(t *testing.T, c *entry.Clock, offset, tolerance time.Duration) {
	t.Helper()
	ms, known := c.Now()
	if !known {
		t.Fatal("the clock is unknown")
	}
	off := time.UnixMilli(ms).Sub(time.Now().Add(offset))
	if off > tolerance || off < -tolerance-time.Millisecond { // rounded down
		t.Errorf("the clock is %v off, want at most %v", off, tolerance)
	}
}

var clockCases = []struct {
	name string
	run  func(*testing.T, *entry.Clock)
}{
	{"unknown at first", func(t *testing.T, c *entry.Clock) {
		if _, known := c.Now(); known || !c.Due() {
			t.Errorf("known %v, due %v; want neither known nor in no need", known, c.Due())
		}
	}},
	{"half a round trip", func(t *testing.T, c *entry.Clock) {
		exchange(c, ahead, 40*time.Millisecond, 0)
		wantClock(t, c, ahead, 20*time.Millisecond)
		if c.Due() {
			t.Error("due at once")
		}
	}},
	{"goes on by itself", func(t *testing.T, c *entry.Clock) {
		exchange(c, ahead, 0, 0)
		time.Sleep(20 * time.Second)
		wantClock(t, c, ahead, 0)
	}},
	{"slow requests and slow replies meet in the middle", func(t *testing.T, c *entry.Clock) {
		exchange(c, ahead, 100*time.Millisecond, 2*time.Millisecond)
		exchange(c, ahead, 2*time.Millisecond, 100*time.Millisecond)
		wantClock(t, c, ahead, 2*time.Millisecond)
	}},
	{"a worse exchange spoils nothing", func(t *testing.T, c *entry.Clock) {
		exchange(c, ahead, time.Millisecond, time.Millisecond)
		exchange(c, ahead, 3*time.Second, 0)
		wantClock(t, c, ahead, 2*time.Millisecond)
	}},
	{"contradiction, forward", func(t *testing.T, c *entry.Clock) {
		exchange(c, ahead, time.Millisecond, time.Millisecond)
		exchange(c, ahead+time.Minute, 5*time.Millisecond, 0)
		wantClock(t, c, ahead+time.Minute, 5*time.Millisecond)
	}},
	{"contradiction, back", func(t *testing.T, c *entry.Clock) {
		exchange(c, ahead, time.Millisecond, time.Millisecond)
		exchange(c, -ahead, 0, 5*time.Millisecond)
		wantClock(t, c, -ahead, 5*time.Millisecond)
	}},
	{"drift is followed", func(t *testing.T, c *entry.Clock) {
		offset := ahead
		for range 100 { // 100 ppm fast
			exchange(c, offset, 0, 0)
			time.Sleep(time.Second)
			offset += 100 * time.Microsecond
		}
		wantClock(t, c, offset, time.Millisecond)
	}},
	{"due again", func(t *testing.T, c *entry.Clock) {
		exchange(c, ahead, 0, 0)
		time.Sleep(30 * time.Second)
		if c.Due() {
			t.Error("due after 30 s")
		}
		time.Sleep(time.Millisecond)
		if !c.Due() {
			t.Error("not due after more than 30 s")
		}
		exchange(c, ahead, 0, 0)
		if c.Due() {
			t.Error("due after an exchange")
		}
	}},
	{"forgotten", func(t *testing.T, c *entry.Clock) {
		exchange(c, ahead, 0, 0)
		c.Forget()
		if _, known := c.Now(); known || !c.Due() {
			t.Error("known after it was forgotten")
		}
		// What was forgotten bounds nothing.
		exchange(c, 0, time.Second, 0)
		wantClock(t, c, 0, 500*time.Millisecond)
	}},
	{"a reply from before it was forgotten", func(t *testing.T, c *entry.Clock) {
		sent := time.Now()
		server := sent.Add(ahead)
		time.Sleep(time.Millisecond)
		c.Forget()
		c.Observe(server, 0, sent)
		if _, known := c.Now(); known {
			t.Error("known by the old primary's reply")
		}
		exchange(c, 0, 0, 0)
		c.Observe(server, 0, sent)
		wantClock(t, c, 0, 0)
	}},
	{"own clock off", func(t *testing.T, c *entry.Clock) {
		c.Shift(30 * time.Second)
		exchange(c, ahead, 2*time.Millisecond, 2*time.Millisecond)
		wantClock(t, c, ahead, 2*time.Millisecond)
	}},
}

func TestRule12Clock(t *testing.T) {
	for _, c := range clockCases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.run(t, entry.NewClock()) })
		})
	}
}

// testRule12ForgottenMeanwhile is about a read during which another call's
// trouble makes the clock unknown: what is read has the server's time all the
// same, or nobody could tell whether it is fresh.
func testRule12ForgottenMeanwhile(t *testing.T, b *backend) {
	var p *place
	p = hooked(t, b, func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		err := next(ctx, cmd)
		if cmd.Name() == "get" {
			p.store.ClockOf(ctx, p.key).Forget()
		}
		return err
	})
	p.seed(goneValue)
	p.knowTime()
	before := p.now()
	got, err := p.store.Get(t.Context(), p.key)
	p.must(err)
	if got.Now < before || !got.Known || got.HardUntil > got.Now {
		t.Errorf("read at %d, hard expiry at %d, the server's time is %d", got.Now, got.HardUntil, before)
	}
}

// testRule12Forgets is about trouble after which the primary may be another.
func testRule12Forgets(t *testing.T, b *backend) {
	broken := false
	p := hooked(t, b, func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if broken {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return next(ctx, cmd)
	})
	p.knowTime()
	broken = true
	if _, err := p.store.Get(t.Context(), p.key); err == nil {
		t.Fatal("no error")
	}
	if _, known := p.store.ClockOf(t.Context(), p.key).Now(); known {
		t.Error("the clock is known after the connection broke")
	}
}
