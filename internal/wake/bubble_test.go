package wake_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/internal/wake"
)

// inBubble runs f with a fake server and a bus on it, in a synctest bubble.
func inBubble(t *testing.T, opts *wake.BusOptions, f func(t *testing.T, s *fakeServer, b *wake.Bus)) {
	synctest.Test(t, func(t *testing.T) {
		s := new(fakeServer)
		b := wake.NewBus(s.client(t), "ch", opts)
		t.Cleanup(b.Close)
		f(t, s, b)
	})
}

// received reports whether a signal waits in w.
func received(w *wake.Watch) bool {
	synctest.Wait()
	select {
	case <-w.C():
		return true
	default:
		return false
	}
}

func TestBusListensFromTheFirstWatch(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *fakeServer, b *wake.Bus) {
		synctest.Wait()
		if dials, _ := s.counts(); dials != 0 || b.Live() {
			t.Errorf("before a watch: %d dials, live %v; want none", dials, b.Live())
		}
		first := b.Watch("k")
		if !received(first) {
			t.Error("a watch was not told that the subscription stands")
		}
		second := b.Watch("k")
		if received(second) {
			t.Error("a watch on a standing subscription was woken for nothing")
		}
		if dials, _ := s.counts(); dials != 1 || !b.Live() {
			t.Errorf("two watches: %d dials, live %v; want 1, true", dials, b.Live())
		}
	})
}

func TestMessageWakesItsTopicOnly(t *testing.T) {
	var heard []wake.Message
	opts := &wake.BusOptions{OnMessage: func(m wake.Message) { heard = append(heard, m) }}
	inBubble(t, opts, func(t *testing.T, s *fakeServer, b *wake.Bus) {
		k1, k2, other := b.Watch("k"), b.Watch("k"), b.Watch("other")
		for _, w := range []*wake.Watch{k1, k2, other} {
			received(w) // the subscription
		}
		m := wake.Message{Kind: wake.Stored, Topic: "k"}
		s.publish("ch", string(m.AppendTo(nil)))
		s.publish("ch", "not a message of ours")
		if !received(k1) || !received(k2) || received(other) {
			t.Error("want both watches of the topic woken, and no other")
		}
		if len(heard) != 1 || heard[0] != m {
			t.Errorf("OnMessage heard %v, want %v once", heard, m)
		}
		if _, failed := k1.Failure(); failed {
			t.Error("Failure after a stored message, want none")
		}
	})
}

func TestFailureOutlivesLaterMessages(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *fakeServer, b *wake.Bus) {
		w := b.Watch("k")
		synctest.Wait()
		want := wake.Message{Kind: wake.Panicked, Token: countingToken, Topic: "k", Text: "boom"}
		for _, m := range []wake.Message{
			{Kind: wake.Failed, Topic: "k", Text: "an earlier one"},
			want,
			{Kind: wake.Released, Topic: "k"},
			{Kind: wake.Failed, Topic: "other", Text: "not ours"},
		} {
			s.publish("ch", string(m.AppendTo(nil)))
		}
		synctest.Wait()
		if got, ok := w.Failure(); !ok || got != want {
			t.Errorf("Failure = %+v, %v; want %+v", got, ok, want)
		}
		later := b.Watch("k")
		if m, ok := later.Failure(); ok {
			t.Errorf("a watch begun later has failure %+v, want none", m)
		}
	})
}

func TestStoppedWatchIsNotWoken(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *fakeServer, b *wake.Bus) {
		ws := []*wake.Watch{b.Watch("k"), b.Watch("k"), b.Watch("k")}
		for _, w := range ws {
			received(w)
		}
		m := wake.Message{Kind: wake.Stored, Topic: "k"}
		for i, stop := range []int{1, 2, 0} { // middle, then the head, then the last
			ws[stop].Stop()
			ws[stop].Stop()
			if got, want := b.Watching(), 2-i; got != want {
				t.Errorf("watching %d, want %d", got, want)
			}
			s.publish("ch", string(m.AppendTo(nil)))
			for j, w := range ws {
				stopped := j == stop || (i > 0 && j == 1) || i == 2
				if got := received(w); got == stopped {
					t.Errorf("after stop %d, watch %d woken = %v", i, j, got)
				}
			}
		}
	})
}

func TestBlackHoleIsNoticedWithinAHeartbeat(t *testing.T) {
	var gaps atomic.Int32
	opts := &wake.BusOptions{Heartbeat: time.Second, OnGap: func() { gaps.Add(1) }}
	inBubble(t, opts, func(t *testing.T, s *fakeServer, b *wake.Bus) {
		w := b.Watch("k")
		time.Sleep(10*time.Second + ms)
		if !b.Live() || !received(w) || gaps.Load() != 1 {
			t.Fatalf("live %v, gaps %d; want a live bus after one gap", b.Live(), gaps.Load())
		}
		s.set(func() { s.hole = true })
		time.Sleep(300 * ms)
		if !b.Live() {
			t.Error("not live 300 ms into the silence, want live: the last answer is fresh")
		}
		time.Sleep(700 * ms)
		if b.Live() {
			t.Error("live after a heartbeat of silence")
		}
		s.set(func() { s.hole = false })
		time.Sleep(10 * time.Second)
		if !b.Live() || !received(w) || gaps.Load() != 3 {
			t.Errorf("live %v, gaps %d; want a live bus after loss and recovery", b.Live(), gaps.Load())
		}
		if dials, subscribed := s.counts(); subscribed != 1 {
			t.Errorf("%d connections subscribed of %d made, want 1", subscribed, dials)
		}
	})
}

func TestDeadConnectionIsNotLive(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *fakeServer, b *wake.Bus) {
		w := b.Watch("k")
		time.Sleep(10 * time.Second)
		received(w)
		before, _ := s.counts()
		s.die()
		synctest.Wait()
		if b.Live() {
			t.Error("live on a connection known to be closed")
		}
		time.Sleep(time.Minute)
		dials, _ := s.counts()
		if n := dials - before; n < 20 || n > 200 {
			t.Errorf("%d dials in a minute, want about one in two seconds", n)
		}
		s.set(func() { s.away = false })
		time.Sleep(5 * time.Second)
		if !b.Live() || !received(w) {
			t.Error("not live, or the watch not told, once the server was back")
		}
		s.die()
		s.set(func() { s.away = false })
		time.Sleep(100 * ms)
		if !b.Live() {
			t.Error("not live 100 ms after one short loss: earlier losses must not count")
		}
	})
}

func TestMessageThroughABusyLineKeepsItAlive(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *fakeServer, b *wake.Bus) {
		b.Watch("k")
		m := string(wake.Message{Kind: wake.Stored, Topic: "x"}.AppendTo(nil))
		for range 1000 {
			time.Sleep(10 * ms)
			s.publish("ch", m)
		}
		if dials, _ := s.counts(); dials != 1 || !b.Live() {
			t.Errorf("%d dials, live %v; want the first connection kept", dials, b.Live())
		}
	})
}

func TestIdleBusHoldsNoConnection(t *testing.T) {
	opts := &wake.BusOptions{IdleTimeout: 5 * time.Second}
	inBubble(t, opts, func(t *testing.T, s *fakeServer, b *wake.Bus) {
		w := b.Watch("k")
		time.Sleep(time.Minute)
		if _, subscribed := s.counts(); subscribed != 1 {
			t.Errorf("%d subscriptions while one watches, want 1", subscribed)
		}
		w.Stop()
		time.Sleep(4 * time.Second)
		b.Watch("j").Stop() // starts the time over
		time.Sleep(4 * time.Second)
		if _, subscribed := s.counts(); subscribed != 1 {
			t.Errorf("%d subscriptions before the idle timeout, want 1", subscribed)
		}
		time.Sleep(3 * time.Second)
		if _, subscribed := s.counts(); subscribed != 0 || b.Live() {
			t.Errorf("idle: %d subscriptions, live %v; want none", subscribed, b.Live())
		}
		again := b.Watch("k")
		if !received(again) || !b.Live() {
			t.Error("a watch after the idle time was not served")
		}
	})
}

func TestNegativeIdleTimeoutKeepsListening(t *testing.T) {
	opts := &wake.BusOptions{IdleTimeout: -1}
	inBubble(t, opts, func(t *testing.T, s *fakeServer, b *wake.Bus) {
		b.Watch("k").Stop()
		time.Sleep(time.Hour)
		if dials, _ := s.counts(); dials != 1 || !b.Live() {
			t.Errorf("%d dials, live %v; want the first subscription kept", dials, b.Live())
		}
	})
}

func TestRefusedSubscribeIsRetriedRarely(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *fakeServer, b *wake.Bus) {
		s.set(func() { s.deny = true })
		w := b.Watch("k")
		time.Sleep(10 * time.Minute)
		if dials, _ := s.counts(); dials < 10 || dials > 50 || b.Live() || received(w) {
			t.Errorf("%d dials in 10 minutes, live %v; want about 20, and no wake-up", dials, b.Live())
		}
		s.set(func() { s.deny = false })
		time.Sleep(time.Minute)
		if !received(w) || !b.Live() {
			t.Error("not live after the permission came back")
		}
	})
}

func TestCloseDuringAHandshakeIsBounded(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *fakeServer, b *wake.Bus) {
		s.set(func() { s.hole = true })
		b.Watch("k")
		synctest.Wait() // in the handshake
		begin := time.Now()
		b.Close()
		if got := time.Since(begin); got > 10*time.Second {
			t.Errorf("Close took %v", got)
		} else {
			t.Logf("Close took %v", got)
		}
	})
}

func TestClosedBusWakesNobody(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *fakeServer, b *wake.Bus) {
		before := []*wake.Watch{b.Watch("k"), b.Watch("k"), b.Watch("j")}
		synctest.Wait()
		b.Close()
		b.Close()
		after := b.Watch("k")
		synctest.Wait() // for the server to see the end of the connection
		if _, subscribed := s.counts(); subscribed != 0 || b.Watching() != 0 || b.Live() {
			t.Errorf("after Close: %d subscriptions, %d watches, live %v", subscribed, b.Watching(), b.Live())
		}
		for _, w := range append(before, after) {
			w.Stop()
		}
		if b.Watching() != 0 {
			t.Errorf("watching %d, want 0", b.Watching())
		}
	})
}

// A signal that came before a question is covered by the question's answer; with the
// subscription live, polls are rare.
func TestUntilOnALiveBus(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, _ *fakeServer, b *wake.Bus) {
		w := b.Watch("k")
		synctest.Wait() // a signal waits: the subscription stands
		begin := time.Now()
		var asked []time.Duration
		backoff := &wake.Backoff{Expect: time.Minute, Rand: func() float64 { return mid }}
		woken, err := wake.Until(t.Context(), w, backoff,
			func(context.Context) (time.Duration, bool, error) {
				asked = append(asked, time.Since(begin))
				return 0, len(asked) == 3, nil
			})
		if err != nil || woken != wake.ByPoll {
			t.Errorf("Until = %v, %v; want poll, nil", woken, err)
		}
		if want := []time.Duration{0, 250 * ms, 500 * ms}; !slices.Equal(asked, want) {
			t.Errorf("asked at %v, want %v", asked, want)
		}
	})
}
