package redisembed_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redisembed"
	"github.com/getorprime/getorprime/internal/redisstat"
	"github.com/getorprime/getorprime/internal/redistest"
)

// start returns a client of a new embedded server.
func start(t *testing.T) *redis.Client {
	t.Helper()
	s, err := redisembed.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	client := s.Client()
	t.Cleanup(func() { client.Close() })
	return client
}

func TestKeysExpireByThemselves(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(context.Context, *redis.Client) error
	}{
		{"PX", func(ctx context.Context, c *redis.Client) error {
			return c.Set(ctx, "k", "v", 50*time.Millisecond).Err()
		}},
		{"PEXPIRE", func(ctx context.Context, c *redis.Client) error {
			c.Set(ctx, "k", "v", 0)
			return c.PExpire(ctx, "k", 50*time.Millisecond).Err()
		}},
		{"script", func(ctx context.Context, c *redis.Client) error {
			return c.Eval(ctx, "return redis.call('SET', KEYS[1], 'v', 'PX', 50)", []string{"k"}).Err()
		}},
		{"PX 1", func(ctx context.Context, c *redis.Client) error {
			return c.Set(ctx, "k", "v", time.Millisecond).Err()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := context.Background()
			client := start(t)
			if err := c.set(ctx, client); err != nil {
				t.Fatal(err)
			}
			redistest.Eventually(t, 5*time.Second, func() bool { return client.Exists(ctx, "k").Val() == 0 }, "expiry")
		})
	}
}

func TestKeysDoNotExpireEarly(t *testing.T) {
	for _, keys := range []int{1, 1000} {
		t.Run(fmt.Sprint(keys, " keys"), func(t *testing.T) {
			ctx := context.Background()
			client := start(t)
			for i := range keys {
				client.Set(ctx, fmt.Sprint("other:", i), "v", time.Hour)
			}
			const ttl = 200 * time.Millisecond
			begin := time.Now()
			client.Set(ctx, "k", "v", ttl)
			redistest.Eventually(t, 5*time.Second, func() bool { return client.Exists(ctx, "k").Val() == 0 }, "expiry")
			if got := time.Since(begin); got < ttl/2 {
				t.Errorf("expired after %v, want %v", got, ttl)
			}
		})
	}
}

func TestTimeIsTheRealClock(t *testing.T) {
	ctx := context.Background()
	client := start(t)
	before := time.Now().Truncate(time.Microsecond)
	first, err := client.Time(ctx).Result()
	if err != nil {
		t.Fatal(err)
	}
	if after := time.Now(); first.Before(before) || first.After(after) {
		t.Errorf("TIME = %v, want between %v and %v", first, before, after)
	}
	redistest.Eventually(t, 5*time.Second, func() bool { return client.Time(ctx).Val().After(first) }, "TIME to advance")
}

// TestNothingExpiresInAScript has a script outlive a key it looks at.
func TestNothingExpiresInAScript(t *testing.T) {
	const script = `
		local function ms() local t = redis.call('TIME'); return t[1] * 1000 + t[2] / 1000 end
		local begin = ms()
		redis.call('SET', KEYS[1], 'v', 'PX', 5)
		while ms() < begin + 20 do end
		return redis.call('EXISTS', KEYS[1])`
	ctx := context.Background()
	client, other := start(t), make(chan struct{})
	go func() { // someone else's commands must not move the script's time either
		defer close(other)
		for range 50 {
			client.Get(ctx, "other")
		}
	}()
	got, err := client.Eval(ctx, script, []string{"k"}).Int()
	<-other
	if got != 1 || err != nil {
		t.Errorf("EXISTS in the script = %d, %v, want 1", got, err)
	}
	redistest.Eventually(t, 5*time.Second, func() bool { return client.Exists(ctx, "k").Val() == 0 }, "expiry after the script")
}

func TestCommandStatistics(t *testing.T) {
	ctx := context.Background()
	client := start(t)
	client.Ping(ctx)
	client.Set(ctx, "k", "v", 0)
	client.Get(ctx, "k")
	client.Do(ctx, "NOSUCHCOMMAND")
	client.ScriptLoad(ctx, "return 1")
	client.Eval(ctx, "return {redis.call('GET', KEYS[1]), redis.call('GET', KEYS[1])}", []string{"k"})

	got, err := redisstat.CommandCount(ctx, client)
	const want = 1 + 1 + 1 + 2 // SET, GET, EVAL and its two GET
	if got != want || err != nil {
		t.Errorf("commands = %d, %v, want %d", got, err, want)
	}
}

func TestClose(t *testing.T) {
	redistest.NoLeaks(t)
	s, err := redisembed.Start()
	if err != nil {
		t.Fatal(err)
	}
	client := s.Client()
	defer client.Close()
	ctx := context.Background()
	sub := client.Subscribe(ctx, "c")
	defer sub.Close()
	if err := client.Set(ctx, "k", "v", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
	if err := client.Ping(ctx).Err(); err == nil {
		t.Error("a closed server answers")
	}
}
