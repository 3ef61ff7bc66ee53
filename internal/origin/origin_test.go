package origin_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/bench/monotime"
	"github.com/getorprime/getorprime/internal/origin"
)

func TestLoadTakesItsTimeAndIsRecorded(t *testing.T) {
	const delay = 20 * time.Millisecond
	o := origin.New(1, 0, delay)
	payload, err := o.Load(t.Context(), "a")
	if err != nil || len(payload) != origin.PayloadSize {
		t.Fatalf("Load = %d bytes, %v; want %d, nil", len(payload), err, origin.PayloadSize)
	}
	loads := o.Loads("a")
	if len(loads) != 1 {
		t.Fatalf("%d loads recorded, want 1", len(loads))
	}
	if took := loads[0].End.Sub(loads[0].Start); took < delay {
		t.Errorf("the load is recorded to have taken %v, want at least %v", took, delay)
	}
	if got, want := loads[0].Digest, origin.Digest(payload); got != want {
		t.Errorf("digest %s, want that of the payload, %s", got, want)
	}
}

func TestPayloads(t *testing.T) {
	load := func(o *origin.Origin) string {
		t.Helper()
		b, err := o.Load(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		return string(b[24:]) // before that are the version, and instants
	}
	first := origin.New(7, 3, 0)
	one, two := load(first), load(first)
	tests := []struct {
		name      string
		got, than string
		equal     bool
	}{
		{"two loads of one origin", two, one, false},
		{"same seed and stream", load(origin.New(7, 3, 0)), one, true},
		{"another stream", load(origin.New(7, 4, 0)), one, false},
		{"another seed", load(origin.New(8, 3, 0)), one, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if equal := tt.got == tt.than; equal != tt.equal {
				t.Errorf("equal payloads: %v, want %v", equal, tt.equal)
			}
		})
	}
}

func TestPayloadTellsOfItsLoad(t *testing.T) {
	o := origin.New(1, 0, time.Millisecond)
	o.Begin = func(string) uint64 { return 42 }
	before := monotime.Now()
	b, err := o.Load(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	s, ok := origin.Read(b)
	if !ok || s.Version != 42 || s.Began < before || s.Ended.Sub(s.Began) < time.Millisecond || s.Ended > monotime.Now() {
		t.Errorf("stamp %+v, %v", s, ok)
	}
	if s, ok := origin.Read(b[1:]); ok {
		t.Errorf("other bytes have the stamp %+v", s)
	}
}

func TestModes(t *testing.T) {
	o := origin.New(1, 0, 0)
	o.Set(0, origin.Fails)
	if _, err := o.Load(t.Context(), "a"); !errors.Is(err, origin.ErrDown) {
		t.Errorf("Load = %v, want ErrDown", err)
	}
	o.Set(0, origin.Panics)
	ended := 0
	o.End = func(string) { ended++ }
	defer func() {
		if recover() == nil || ended != 1 || o.Loads("a")[1].End == 0 {
			t.Errorf("want a panic after the load was noted as ended; ended %d times", ended)
		}
	}()
	_, _ = o.Load(t.Context(), "a")
}

func TestLoadsAreKeptByID(t *testing.T) {
	o := origin.New(1, 0, 0)
	for _, id := range []string{"a", "b", "a"} {
		if _, err := o.Load(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]int{"a": 2, "b": 1, "c": 0} {
		if got := len(o.Loads(id)); got != want {
			t.Errorf("%d loads of %s, want %d", got, id, want)
		}
	}
}

func TestCancelledLoadIsRecordedWithoutPayload(t *testing.T) {
	o := origin.New(1, 0, 0)
	o.Set(time.Hour, origin.Works)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := o.Load(ctx, "a"); !errors.Is(err, why) {
		t.Fatalf("Load = %v, want the cause %v", err, why)
	}
	loads := o.Loads("a")
	if len(loads) != 1 || loads[0].End == 0 || loads[0].Done() {
		t.Errorf("loads = %+v, want one that has ended without a payload", loads)
	}
}

func TestRunningLoadIsRecorded(t *testing.T) {
	o := origin.New(1, 0, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := o.Load(ctx, "a")
		ended <- err
	}()
	for deadline := time.Now().Add(10 * time.Second); len(o.Loads("a")) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the load was not recorded when it began")
		}
		runtime.Gosched()
	}
	if l := o.Loads("a")[0]; l.End != 0 || l.Done() {
		t.Errorf("load = %+v, want one without an end", l)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Load = %v, want context.Canceled", err)
	}
}
