package monotime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/bench/monotime"
)

func TestSleepUntilIsNeverEarly(t *testing.T) {
	at := monotime.Now().Add(15 * time.Millisecond)
	if err := monotime.SleepUntil(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	if late := monotime.Now().Sub(at); late < 0 {
		t.Errorf("returned %v early", -late)
	}
}

func TestSleepUntilPast(t *testing.T) {
	if err := monotime.SleepUntil(t.Context(), monotime.Now()-1); err != nil {
		t.Errorf("got %v, want nil for an instant that has passed", err)
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for _, d := range []time.Duration{0, time.Hour} {
		if err := monotime.Sleep(ctx, d); !errors.Is(err, why) {
			t.Errorf("Sleep(%v) = %v, want the cause %v", d, err, why)
		}
	}
}

func TestArithmetic(t *testing.T) {
	now := monotime.Now()
	if got := now.Add(time.Second).Sub(now); got != time.Second {
		t.Errorf("got %v, want 1s", got)
	}
	if later := monotime.Now(); later < now {
		t.Errorf("the clock went back by %v", now.Sub(later))
	}
}
