package wake_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/internal/wake"
)

// keyExists is a try that is done when key exists.
func keyExists(c *redis.Client, key string) func(context.Context) (time.Duration, bool, error) {
	return func(ctx context.Context) (time.Duration, bool, error) {
		n, err := c.Exists(ctx, key).Result()
		return 0, n == 1, err
	}
}

func TestRestartOfServerWakesWatches(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(t)
	b := newBus(t, c, nil)
	w := b.Watch("k")
	defer w.Stop()
	awaitLive(t, b)
	awaitWake(t, w, "subscription")

	s.Kill()
	redistest.Eventually(t, 5*time.Second, func() bool { return !b.Live() }, "the loss is noticed")
	s.Restart()
	awaitWake(t, w, "subscription after the restart")
	awaitLive(t, b)
	if n := publish(t, c, wake.Message{Kind: wake.Stored, Topic: "k"}); n != 1 {
		t.Errorf("%d connections received the message, want 1", n)
	}
	awaitWake(t, w, "message after the restart")
}

func TestBusStartsWithoutRedis(t *testing.T) {
	s := redistest.Start(t)
	s.Kill()
	b := newBus(t, s.Client(t), nil)
	w := b.Watch("k")
	defer w.Stop()
	if b.Live() {
		t.Error("live without a server")
	}
	s.Restart()
	awaitWake(t, w, "subscription once the server is there")
	awaitLive(t, b)
}

func TestKilledConnectionIsReplaced(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(t)
	b := newBus(t, c, nil)
	w := b.Watch("k")
	defer w.Stop()
	awaitLive(t, b)
	awaitWake(t, w, "subscription")
	if err := c.Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	awaitWake(t, w, "subscription after the kill")
	awaitLive(t, b)
	redistest.Eventually(t, 5*time.Second, func() bool {
		return c.PubSubNumSub(t.Context(), channel).Val()[channel] == 1
	}, "exactly one connection is subscribed")
}

// A stopped server keeps its connections open and accepts bytes: only the missing
// answers tell.
func TestStoppedServerIsNoticedAndRecovers(t *testing.T) {
	const heartbeat = 300 * ms
	s := redistest.Start(t)
	c := s.Client(t)
	b := newBus(t, c, &wake.BusOptions{Heartbeat: heartbeat})
	w := b.Watch("k")
	defer w.Stop()
	awaitLive(t, b)

	s.Pause()
	begin := time.Now()
	redistest.Eventually(t, 10*time.Second, func() bool { return !b.Live() }, "the silence is noticed")
	t.Logf("silence noticed after %v, heartbeat %v", time.Since(begin), heartbeat)
	s.Resume()
	awaitLive(t, b)
	// The connection may have survived, so no wake-up need come before the message.
	redistest.Eventually(t, 10*time.Second, func() bool {
		publish(t, c, wake.Message{Kind: wake.Failed, Topic: "k"})
		_, failed := w.Failure()
		return failed
	}, "a message arrives after the silence")
}

func TestRefusedByACLPollingServes(t *testing.T) {
	for name, rules := range map[string][]string{
		"no SUBSCRIBE command": {"+@all", "-subscribe", "allchannels"},
		"no channels":          {"+@all", "resetchannels"},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			args := []any{"ACL", "SETUSER", "limited", "on", ">secret", "allkeys"}
			for _, rule := range rules {
				args = append(args, rule)
			}
			if err := s.Client(t).Do(t.Context(), args...).Err(); err != nil {
				t.Fatal(err)
			}
			c := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: "limited", Password: "secret"})
			defer c.Close()
			b := newBus(t, c, nil)
			defer b.Close()
			servedByPoll(t, c, b)
			if b.Live() {
				t.Error("live without the permission to subscribe")
			}
		})
	}
}

func TestLostMessagesPollingServes(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(t)
	// A starved machine must not lose the connection: that would wake the watch too.
	b := newBus(t, c, &wake.BusOptions{Heartbeat: time.Minute})
	keep := b.Watch("keep")
	defer keep.Stop()
	awaitLive(t, b)
	servedByPoll(t, c, b) // the key is set and nothing published
}

// servedByPoll waits for a key that is set 50 ms later without a message.
func servedByPoll(t *testing.T, c *redis.Client, b *wake.Bus) {
	t.Helper()
	w := b.Watch("k")
	defer w.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	setter := time.AfterFunc(50*ms, func() { c.Set(ctx, "k", "v", time.Minute) })
	defer setter.Stop()
	woken, err := wake.Until(ctx, w, &wake.Backoff{}, keyExists(c, "k"))
	if err != nil || woken != wake.ByPoll {
		t.Errorf("Until = %v, %v; want poll, nil", woken, err)
	}
}

// The server dies and comes back while a waiter polls through it.
func TestRestartInMidWait(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(t)
	b := newBus(t, c, nil)
	w := b.Watch("k")
	defer w.Stop()
	awaitLive(t, b)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	exists := keyExists(c, "k")
	result := make(chan error, 1)
	go func() {
		_, err := wake.Until(ctx, w, &wake.Backoff{}, func(ctx context.Context) (time.Duration, bool, error) {
			_, done, _ := exists(ctx) // an unreachable server is asked again
			return 0, done, nil
		})
		result <- err
	}()
	s.Restart()
	if err := c.Set(ctx, "k", "v", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Errorf("Until = %v, want the wait to end by a poll or the new subscription", err)
	}
}
