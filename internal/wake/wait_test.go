package wake_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/internal/wake"
)

// TestWaitPolls sleeps once, for as long as the schedule says, and goes on with the
// schedule in the next sleep.
func TestWaitPolls(t *testing.T) {
	tests := []struct {
		name   string
		expect time.Duration
		left   time.Duration
		want   []time.Duration
	}{
		{"nothing expected", 0, 0, []time.Duration{5 * ms, 8 * ms, 12800 * time.Microsecond}},
		{"as long as expected", 100 * ms, 0, []time.Duration{90 * ms, 100 * ms, 100 * ms}},
		{"the lease ends first", 100 * ms, 30 * ms, []time.Duration{30 * ms, 31 * ms, 31 * ms}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, b := deafWatch(t), &wake.Backoff{Expect: tt.expect, Rand: func() float64 { return mid }}
				for i, want := range tt.want {
					begin := time.Now()
					woken, err := w.Wait(t.Context(), b, tt.left)
					if took := time.Since(begin); woken != wake.ByPoll || err != nil || (took-want).Abs() > time.Nanosecond {
						t.Errorf("sleep %d = %v, %v after %v; want poll, nil after %v", i, woken, err, took, want)
					}
				}
			})
		})
	}
}

// TestWaitIsWokenByAMessage counts one that came before the sleep, too.
func TestWaitIsWokenByAMessage(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, s *fakeServer, b *wake.Bus) {
		w := b.Watch("k")
		synctest.Wait() // the subscription stands, which is a signal
		m := string(wake.Message{Kind: wake.Released, Topic: "k"}.AppendTo(nil))
		backoff := &wake.Backoff{Expect: time.Hour, Rand: func() float64 { return mid }}
		for _, tt := range []struct {
			name  string
			ahead int           // messages before the sleep
			later time.Duration // when one comes in the sleep; 0: none
			wait  time.Duration // how long the sleep takes
			woken wake.Woken
		}{
			{"before the sleep", 2, 0, 0, wake.ByMessage},
			{"none", 0, 0, 250 * ms, wake.ByPoll},
			{"in the sleep", 0, 40 * ms, 40 * ms, wake.ByMessage},
			{"after the poll", 0, time.Hour, 250 * ms, wake.ByPoll},
		} {
			for range tt.ahead {
				s.publish("ch", m)
			}
			synctest.Wait()
			if tt.later > 0 {
				defer time.AfterFunc(tt.later, func() { s.publish("ch", m) }).Stop()
			}
			begin := time.Now()
			woken, err := w.Wait(t.Context(), backoff, 0)
			if took := time.Since(begin); woken != tt.woken || err != nil || took != tt.wait {
				t.Errorf("%s: %v, %v after %v; want %v after %v", tt.name, woken, err, took, tt.woken, tt.wait)
			}
		}
	})
}

// TestWaitEndsWithItsContext says why.
func TestWaitEndsWithItsContext(t *testing.T) {
	because := errors.New("client left")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*ms, func() { cancel(because) })
		begin := time.Now()
		_, err := deafWatch(t).Wait(ctx, &wake.Backoff{Expect: time.Hour}, 0)
		if took := time.Since(begin); !errors.Is(err, context.Canceled) || !errors.Is(err, because) || took != 3*ms {
			t.Errorf("%v after %v, want the context's error and its cause after 3ms", err, took)
		}
		if _, err := deafWatch(t).Wait(ctx, &wake.Backoff{}, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("under an ended context: %v", err)
		}
	})
}
