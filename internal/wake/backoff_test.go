package wake_test

import (
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/wake"
)

const (
	ms  = time.Millisecond
	mid = 0.5 // the draw that leaves a delay as it is
)

func TestBackoffSchedule(t *testing.T) {
	tests := []struct {
		name   string
		expect time.Duration
		live   bool
		draw   float64
		left   time.Duration // of every question
		want   []time.Duration
	}{
		{"nothing known", 0, false, mid, 0, []time.Duration{5 * ms, 8 * ms, 12800 * time.Microsecond}},
		{"negative expectation is none", -time.Second, false, mid, 0, []time.Duration{5 * ms, 8 * ms}},
		{"nine tenths of the load", 50 * ms, false, mid, 0, []time.Duration{45 * ms, 72 * ms, 100 * ms, 100 * ms}},
		{"lowest draw", 50 * ms, false, 0, 0, []time.Duration{33750 * time.Microsecond, 54 * ms, 75 * ms}},
		{"highest draw", 50 * ms, false, 1, 0, []time.Duration{56250 * time.Microsecond, 90 * ms, 125 * ms}},
		{"long load, no messages", 10 * time.Second, false, mid, 2 * time.Second, []time.Duration{100 * ms, 100 * ms}},
		{"long load, live", 800 * ms, true, mid, 2 * time.Second, []time.Duration{720 * ms, 250 * ms, 250 * ms}},
		{"very long load, live", time.Hour, true, mid, time.Minute, []time.Duration{time.Second, 250 * ms}},
		{"long load, live, lease unknown", 10 * time.Second, true, mid, 0, []time.Duration{250 * ms, 250 * ms}},
		{"growing, live", 100 * ms, true, mid, 2 * time.Second, []time.Duration{90 * ms, 144 * ms, 230400 * time.Microsecond, 250 * ms}},
		{"lease ends first", 50 * ms, false, mid, 20 * ms, []time.Duration{20 * ms, 21 * ms, 21 * ms}},
		{"lease ends first, highest draw", 50 * ms, true, 1, 20 * ms, []time.Duration{21 * ms, 21 * ms, 21 * ms}},
		{"lease all but over", 50 * ms, true, mid, time.Microsecond, []time.Duration{ms, ms + time.Microsecond}},
		{"tiny load", time.Nanosecond, false, mid, 0, []time.Duration{ms, 1600 * time.Microsecond}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := wake.Backoff{Expect: tt.expect, Live: tt.live, Rand: func() float64 { return tt.draw }}
			for i, want := range tt.want {
				// A nanosecond for the rounding of products.
				if got := b.Next(tt.left); (got - want).Abs() > time.Nanosecond {
					t.Errorf("delay %d = %v, want %v", i, got, want)
				}
			}
		})
	}
}

func TestBackoffFollowsLive(t *testing.T) {
	b := wake.Backoff{Expect: 500 * ms, Live: true, Rand: func() float64 { return mid }}
	var got [3]time.Duration
	got[0] = b.Next(time.Second)
	b.Live = false
	got[1] = b.Next(time.Second)
	b.Live = true
	got[2] = b.Next(time.Second)
	if want := [3]time.Duration{450 * ms, 100 * ms, 160 * ms}; got != want {
		t.Errorf("delays = %v, want %v", got, want)
	}
}

func TestBackoffJitterSpreads(t *testing.T) {
	const draws = 1000
	lowest, highest := time.Hour, time.Duration(0)
	for range draws {
		b := wake.Backoff{Expect: 100 * ms}
		d := b.Next(0)
		lowest, highest = min(lowest, d), max(highest, d)
	}
	if lowest < 67500*time.Microsecond || highest > 112500*time.Microsecond {
		t.Errorf("delays from %v to %v, want within 90 ms ± 25 %%", lowest, highest)
	}
	if highest-lowest < 40*ms {
		t.Errorf("delays spread over %v, want most of 45 ms", highest-lowest)
	}
}
