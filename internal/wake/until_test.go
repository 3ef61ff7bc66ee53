package wake_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/internal/wake"
)

// answerAfter returns a try that is done once d has passed, and the count of its
// calls.
func answerAfter(d, left time.Duration) (try func(context.Context) (time.Duration, bool, error), calls *int) {
	begin, calls := time.Now(), new(int)
	return func(context.Context) (time.Duration, bool, error) {
		*calls++
		return left, time.Since(begin) >= d, nil
	}, calls
}

// deafWatch is a watch that no message reaches.
func deafWatch(t *testing.T) *wake.Watch {
	bus := wake.NewBus(nil, "", &wake.BusOptions{DisablePubSub: true})
	t.Cleanup(bus.Close)
	w := bus.Watch("k")
	t.Cleanup(w.Stop)
	return w
}

func TestUntilPolls(t *testing.T) {
	tests := []struct {
		name         string
		expect, took time.Duration
		left         time.Duration
		woken        wake.Woken
		calls        int
		late         time.Duration // answer existed → Until returned
	}{
		{"answered at once", 0, 0, 0, wake.ByNothing, 1, 0},
		{"load as long as expected", 100 * ms, 90 * ms, 2 * time.Second, wake.ByPoll, 2, 0},
		{"nothing expected", 0, 20 * ms, 0, wake.ByPoll, 4, 5800 * time.Microsecond},
		{"load longer than expected", 100 * ms, 120 * ms, 2 * time.Second, wake.ByPoll, 3, 70 * ms},
		{"holder dies with its lease", time.Minute, 31 * ms, 30 * ms, wake.ByPoll, 3, 30 * ms},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				try, calls := answerAfter(tt.took, tt.left)
				b := &wake.Backoff{Expect: tt.expect, Rand: func() float64 { return mid }}
				woken, err := wake.Until(t.Context(), deafWatch(t), b, try)
				if err != nil || woken != tt.woken {
					t.Errorf("Until = %v, %v; want %v, nil", woken, err, tt.woken)
				}
				if *calls != tt.calls {
					t.Errorf("tries = %d, want %d", *calls, tt.calls)
				}
				if late := time.Since(begin) - tt.took; late != tt.late {
					t.Errorf("late by %v, want %v", late, tt.late)
				}
			})
		})
	}
}

func TestUntilReturnsTheErrorOfTry(t *testing.T) {
	broken := errors.New("redis is away")
	woken, err := wake.Until(t.Context(), deafWatch(t), &wake.Backoff{},
		func(context.Context) (time.Duration, bool, error) { return 0, false, broken })
	if !errors.Is(err, broken) || woken != wake.ByNothing {
		t.Errorf("Until = %v, %v; want nothing, %v", woken, err, broken)
	}
}

func TestUntilEndsWithItsContext(t *testing.T) {
	because := errors.New("client left")
	tests := []struct {
		name string
		make func(context.Context) (context.Context, context.CancelFunc)
		at   time.Duration
		want []error
	}{
		{"deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 40*ms)
		}, 40 * ms, []error{context.DeadlineExceeded}},
		{"cause", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(30*ms, func() { cancel(because) })
			return ctx, func() { cancel(nil) }
		}, 30 * ms, []error{context.Canceled, because}},
		{"ended before", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 0)
		}, 0, []error{context.DeadlineExceeded}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				try, _ := answerAfter(time.Hour, 0)
				ctx, cancel := tt.make(t.Context())
				defer cancel()
				_, err := wake.Until(ctx, deafWatch(t), &wake.Backoff{Expect: time.Minute}, try)
				for _, want := range tt.want {
					if !errors.Is(err, want) {
						t.Errorf("error = %v, want %v in it", err, want)
					}
				}
				if got := time.Since(begin); got != tt.at {
					t.Errorf("returned after %v, want %v", got, tt.at)
				}
			})
		})
	}
}

func TestUntilDoesNotTryUnderAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	try, calls := answerAfter(0, 0)
	if _, err := wake.Until(ctx, deafWatch(t), &wake.Backoff{}, try); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want %v", err, context.Canceled)
	}
	if *calls != 0 {
		t.Errorf("tries = %d, want 0", *calls)
	}
}

func TestWokenString(t *testing.T) {
	for woken, want := range map[wake.Woken]string{
		wake.ByNothing: "nothing", wake.ByMessage: "message", wake.ByPoll: "poll",
	} {
		if got := woken.String(); got != want {
			t.Errorf("String = %q, want %q", got, want)
		}
	}
}
