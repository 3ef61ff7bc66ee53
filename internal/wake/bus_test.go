package wake_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/internal/wake"
)

const channel = "test:wake"

// publishLua builds a message as the scripts of this module do: no struct library.
var publishLua = redis.NewScript(`
local n = #KEYS[1]
local size = string.char(math.floor(n / 16777216) % 256, math.floor(n / 65536) % 256, math.floor(n / 256) % 256, n % 256)
return redis.call('PUBLISH', ARGV[1], ARGV[2] .. ARGV[3] .. size .. KEYS[1] .. ARGV[4])`)

// publish sends m from a script and returns how many connections received it.
func publish(tb testing.TB, c redis.Scripter, m wake.Message) int {
	tb.Helper()
	n, err := publishLua.Run(tb.Context(), c, []string{m.Topic},
		channel, string(rune(m.Kind)), string(m.Token[:]), m.Text).Int()
	if err != nil {
		tb.Errorf("publish: %v", err)
	}
	return n
}

func newBus(tb testing.TB, c wake.Subscriber, opts *wake.BusOptions) *wake.Bus {
	b := wake.NewBus(c, channel, opts)
	tb.Cleanup(b.Close)
	return b
}

// awaitLive waits until b is live.
func awaitLive(tb testing.TB, b *wake.Bus) {
	tb.Helper()
	redistest.Eventually(tb, 10*time.Second, b.Live, "the bus is live")
}

// awaitWake waits for a signal to w.
func awaitWake(tb testing.TB, w *wake.Watch, what string) {
	tb.Helper()
	select {
	case <-w.C():
	case <-time.After(10 * time.Second):
		tb.Fatalf("no wake-up: %s", what)
	}
}

// clients are the protocols a subscription may speak.
func clients(s *redistest.Server) map[string]*redis.Options {
	return map[string]*redis.Options{
		"RESP2": {Addr: s.Addr(), Protocol: 2},
		"RESP3": {Addr: s.Addr(), Protocol: 3},
	}
}

func TestScriptWakesWaiter(t *testing.T) {
	s := redistest.Start(t)
	for name, opts := range clients(s) {
		t.Run(name, func(t *testing.T) {
			c := redis.NewClient(opts)
			defer c.Close()
			b := newBus(t, c, nil)
			w := b.Watch("k\x00é")
			awaitWake(t, w, "subscription")
			awaitLive(t, b)
			want := wake.Message{Kind: wake.Failed, Token: countingToken, Topic: "k\x00é", Text: "db is away"}
			if n := publish(t, c, want); n != 1 {
				t.Fatalf("%d connections received the message, want 1", n)
			}
			awaitWake(t, w, "message")
			if got, ok := w.Failure(); !ok || got != want {
				t.Errorf("Failure = %+v, %v; want %+v", got, ok, want)
			}
			b.Close()
		})
	}
}

// A waiter whose poll is far off is woken by the message. On a starved machine the poll
// may still come first, so there are several rounds, one of which must do.
func TestUntilIsWokenByMessage(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(t)
	b := newBus(t, c, nil)
	w := b.Watch("k")
	defer w.Stop()
	for range 10 {
		awaitLive(t, b)
		woken, took := wakeOnce(t, c, w)
		t.Logf("woken by %v, message to try: %v", woken, took)
		if woken == wake.ByMessage {
			return
		}
	}
	t.Error("no round was woken by its message")
}

// wakeOnce publishes to a waiting Until and returns what woke it, and the time from
// just before the publishing to the try.
func wakeOnce(t *testing.T, c *redis.Client, w *wake.Watch) (wake.Woken, time.Duration) {
	var sent atomic.Int64
	var took time.Duration
	begin, asked := time.Now(), make(chan struct{}, 1)
	var publisher sync.WaitGroup
	defer publisher.Wait()
	publisher.Go(func() {
		<-asked
		sent.Store(int64(time.Since(begin)))
		publish(t, c, wake.Message{Kind: wake.Stored, Topic: "k"})
	})
	woken, err := wake.Until(t.Context(), w, &wake.Backoff{Expect: time.Minute},
		func(context.Context) (time.Duration, bool, error) {
			if at := sent.Load(); at > 0 {
				took = time.Since(begin) - time.Duration(at)
				return 0, true, nil
			}
			select {
			case asked <- struct{}{}:
			default:
			}
			return time.Minute, false, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return woken, took
}

func TestStormOfWaiters(t *testing.T) {
	const waiters = 100
	s := redistest.Start(t)
	c := s.Client(t)
	b := newBus(t, c, nil)
	keep := b.Watch("keep")
	defer keep.Stop()
	awaitLive(t, b)

	stored := make(chan struct{})
	var waiting, done sync.WaitGroup
	waiting.Add(waiters)
	for i := range waiters {
		done.Go(func() {
			w := b.Watch(fmt.Sprint("k", i%10))
			defer w.Stop()
			once := sync.OnceFunc(waiting.Done)
			_, err := wake.Until(t.Context(), w, &wake.Backoff{Expect: time.Minute},
				func(context.Context) (time.Duration, bool, error) {
					defer once()
					select {
					case <-stored:
						return 0, true, nil
					default:
						return time.Minute, false, nil
					}
				})
			if err != nil {
				t.Errorf("waiter %d: %v", i, err)
			}
		})
	}
	waiting.Wait()
	close(stored)
	for i := range 10 {
		publish(t, c, wake.Message{Kind: wake.Stored, Topic: fmt.Sprint("k", i)})
	}
	done.Wait()
	if got := b.Watching(); got != 1 {
		t.Errorf("watching %d after the storm, want 1", got)
	}
}

// While watches come and go under a rain of messages, nothing is left behind.
func TestManyWatchesReturnToZero(t *testing.T) {
	const watches, workers = 10_000, 8
	s := redistest.Start(t)
	c := s.Client(t)
	if err := c.Ping(t.Context()).Err(); err != nil { // the client's own goroutines, if any
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	b := newBus(t, c, nil)
	var rain, work sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	rain.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			m := wake.Message{Kind: wake.Failed, Topic: fmt.Sprint("k", i%100), Text: "no"}
			_ = c.Publish(ctx, channel, m.AppendTo(nil)).Err()
		}
	})
	for worker := range workers {
		work.Go(func() {
			held := make([]*wake.Watch, 0, watches/workers)
			for i := range watches / workers {
				held = append(held, b.Watch(fmt.Sprint("k", (worker+i)%100)))
			}
			for i, w := range held {
				w.Failure()
				w.Stop()
				if i%2 == 0 {
					w.Stop()
				}
			}
		})
	}
	work.Wait()
	stop()
	rain.Wait()
	if got := b.Watching(); got != 0 {
		t.Errorf("watching %d, want 0", got)
	}
	b.Close()
	redistest.Eventually(t, 10*time.Second, func() bool { return runtime.NumGoroutine() <= before },
		"the goroutines of the bus have ended")
}

func TestDisabledPubSubNeverConnects(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(t)
	b := newBus(t, c, &wake.BusOptions{DisablePubSub: true})
	w := b.Watch("k")
	defer w.Stop()
	if n := publish(t, c, wake.Message{Kind: wake.Stored, Topic: "k"}); n != 0 {
		t.Errorf("%d connections received the message, want 0", n)
	}
	if b.Live() {
		t.Error("live without a subscription")
	}
}
