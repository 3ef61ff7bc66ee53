package wake_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/internal/wake"
)

func BenchmarkParseMessage(b *testing.B) {
	payload := string(wireMessages["failed"].AppendTo(nil))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wake.ParseMessage(payload); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWatch is what a miss pays for being wakeable.
func BenchmarkWatch(b *testing.B) {
	bus := wake.NewBus(nil, "", &wake.BusOptions{DisablePubSub: true})
	defer bus.Close()
	b.ReportAllocs()
	for b.Loop() {
		bus.Watch("user:7").Stop()
	}
}

// BenchmarkUntilAnswered is a wait that is over at the first question.
func BenchmarkUntilAnswered(b *testing.B) {
	bus := wake.NewBus(nil, "", &wake.BusOptions{DisablePubSub: true})
	defer bus.Close()
	w := bus.Watch("user:7")
	defer w.Stop()
	ctx := context.Background()
	try := func(context.Context) (time.Duration, bool, error) { return 0, true, nil }
	b.ReportAllocs()
	for b.Loop() {
		_, _ = wake.Until(ctx, w, &wake.Backoff{}, try)
	}
}

// BenchmarkWakeUp is PUBLISH sent to waiter running, over a real server; compare it
// with BenchmarkPing, one round trip.
func BenchmarkWakeUp(b *testing.B) {
	s := redistest.Start(b)
	c := s.Client(b)
	bus := newBus(b, c, nil)
	w := bus.Watch("user:7")
	awaitLive(b, bus)
	awaitWake(b, w, "subscription")
	payload := wake.Message{Kind: wake.Stored, Topic: "user:7"}.AppendTo(nil)
	var publisher sync.WaitGroup
	next := make(chan struct{})
	publisher.Go(func() {
		for range next {
			c.Publish(b.Context(), channel, payload)
		}
	})
	for b.Loop() {
		next <- struct{}{}
		<-w.C()
	}
	close(next)
	publisher.Wait()
}

func BenchmarkPing(b *testing.B) {
	c := redistest.Start(b).Client(b)
	for b.Loop() {
		c.Ping(b.Context())
	}
}
