package cacheotel_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/cache/cachetest"
	"github.com/getorprime/getorprime/loader"
)

// TestCallersLinkToTheLoadTheyShare has twenty callers with spans of their own
// share one load.
func TestCallersLinkToTheLoadTheyShare(t *testing.T) {
	const callers = 20
	tel := newTelemetry(t)
	c, _ := cachetest.New(t, tel.options())
	leave := make(chan struct{})
	k := register(t, c, func(ctx context.Context, _ string) (string, error) {
		_, query := tel.tracer.Start(ctx, "query")
		defer query.End()
		<-leave
		return "v", nil
	}, nil)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			ctx, span := tel.tracer.Start(t.Context(), "caller")
			defer span.End()
			if got, err := k.GetOrPrime(ctx, secret); got != "v" || err != nil {
				t.Errorf("got %q, %v; want v", got, err)
			}
		})
	}
	eventually(t, "all wait", func() bool { return c.Stats().Misses == callers })
	close(leave)
	all.Wait()

	load := tel.theLoad()
	if got, want := load.Attributes(), attribute.String("prefix", "k:"); len(got) != 1 || got[0] != want {
		t.Errorf("attributes of the load: %v, want %v", got, want)
	}
	if load.Status().Code != codes.Unset {
		t.Errorf("status of the load: %v, want unset", load.Status())
	}
	starters, linked := 0, 0
	for _, s := range tel.ended("caller") {
		switch {
		case s.SpanContext().Equal(load.Parent()) && len(s.Links()) == 0:
			starters++
		case len(s.Links()) == 1 && s.Links()[0].SpanContext.Equal(load.SpanContext()):
			linked++
		}
	}
	if starters != 1 || linked != callers-1 {
		t.Errorf("%d parents and %d linked callers, want 1 and %d", starters, linked, callers-1)
	}
	if query := tel.ended("query"); len(query) != 1 || !query[0].Parent().Equal(load.SpanContext()) {
		t.Errorf("spans of the loader: %v, want one whose parent is the load", query)
	}
	tel.wantNoKey()
}

// TestHitsAreNotTraced checks that there is a span for a load and none for what
// was there already, nor a link to a load that has long ended.
func TestHitsAreNotTraced(t *testing.T) {
	tel := newTelemetry(t)
	c, _ := cachetest.New(t, tel.options())
	k := register(t, c, func(context.Context, string) (string, error) { return "v", nil }, nil)
	for range 3 {
		ctx, span := tel.tracer.Start(t.Context(), "caller")
		_, _ = k.GetOrPrime(ctx, secret)
		span.End()
	}
	load := tel.theLoad()
	for i, s := range tel.ended("caller") {
		if len(s.Links()) != 0 || s.SpanContext().Equal(load.Parent()) != (i == 0) {
			t.Errorf("call %d: %d links, parent of the load %v", i+1, len(s.Links()), load.Parent())
		}
	}
}

// TestABackgroundRefreshIsTraced checks that a refresh is a child of the caller
// that found the value stale.
func TestABackgroundRefreshIsTraced(t *testing.T) {
	tel := newTelemetry(t)
	c, clock := cachetest.New(t, tel.options())
	k := register(t, c, func(context.Context, string) (string, error) { return "v", nil },
		&cache.Policy{TTL: time.Hour, StaleWhileRevalidate: time.Hour, Jitter: -1, EarlyRefresh: -1})
	var callers []trace.SpanContext
	for range 2 {
		ctx, span := tel.tracer.Start(t.Context(), "caller")
		_, _ = k.GetOrPrime(ctx, secret)
		span.End()
		callers = append(callers, span.SpanContext())
		clock.Settle()
		clock.Advance(time.Hour)
	}
	loads := tel.ended("getorprime load")
	if len(loads) != 2 || !loads[0].Parent().Equal(callers[0]) || !loads[1].Parent().Equal(callers[1]) {
		t.Errorf("loads %v, want one below each of %v", loads, callers)
	}
}

func TestWithoutASpanTheLoadIsARoot(t *testing.T) {
	tel := newTelemetry(t)
	c, _ := cachetest.New(t, tel.options())
	k := register(t, c, func(context.Context, string) (string, error) { return "v", nil }, nil)
	if _, err := k.GetOrPrime(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if load := tel.theLoad(); load.Parent().IsValid() {
		t.Errorf("parent %v, want none", load.Parent())
	}
}

func TestHowALoadEnds(t *testing.T) {
	errDown := errors.New("database is down")
	tests := []struct {
		name     string
		load     loader.Func[string]
		status   codes.Code
		says     string // a part of the status' text and of the recorded error
		canceled bool
		stack    bool
	}{
		{name: "value", load: func(context.Context, string) (string, error) { return "v", nil }},
		{name: "not found", load: func(context.Context, string) (string, error) { return "", loader.ErrNotFound }},
		{name: "error", load: func(context.Context, string) (string, error) { return "", errDown }, status: codes.Error, says: errDown.Error()},
		{name: "panic", load: func(context.Context, string) (string, error) { panic("boom") }, status: codes.Error, says: "boom", stack: true},
		{name: "timeout", load: func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}, status: codes.Error, says: "timed out"},
		{name: "hung", load: func(context.Context, string) (string, error) {
			time.Sleep(time.Hour)
			return "v", nil
		}, status: codes.Error, says: "timed out"},
		{name: "abandoned", load: func(ctx context.Context, id string) (string, error) {
			ctx.Value(leaveKey{}).(context.CancelFunc)()
			<-ctx.Done()
			return "", ctx.Err()
		}, canceled: true},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tel := newTelemetry(t)
				ca, clock := cachetest.New(t, tel.options())
				k := register(t, ca, c.load, nil)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				_, _ = k.GetOrPrime(context.WithValue(ctx, leaveKey{}, cancel), "a")
				clock.Settle()
				time.Sleep(time.Hour) // until the hung loader has returned
				wantEnd(t, tel.theLoad(), c.status, c.says, c.canceled, c.stack)
			})
		})
	}
}

// leaveKey is where a loader finds the cancellation of its only caller.
type leaveKey struct{}

func wantEnd(t *testing.T, load sdktrace.ReadOnlySpan, status codes.Code, says string, canceled, stack bool) {
	t.Helper()
	if got := load.Status(); got.Code != status || !strings.Contains(got.Description, says) {
		t.Errorf("status %v %q, want %v with %q", got.Code, got.Description, status, says)
	}
	set := attribute.NewSet(load.Attributes()...)
	if _, got := set.Value("canceled"); got != canceled {
		t.Errorf("canceled is %v, want %v", got, canceled)
	}
	var recorded []string
	hasStack := false
	for _, e := range load.Events() {
		set := attribute.NewSet(e.Attributes...)
		recorded = append(recorded, e.Name+": "+text(set))
		_, hasStack = set.Value("exception.stacktrace")
	}
	if (len(recorded) == 1) != (says != "") || says != "" && !strings.Contains(recorded[0], says) || hasStack != stack {
		t.Errorf("recorded %q, want %q, stack %v", recorded, says, stack)
	}
}
