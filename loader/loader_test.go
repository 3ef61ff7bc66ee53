package loader_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/loadctl"
	"github.com/getorprime/getorprime/loader"
)

func TestNotFoundOn(t *testing.T) {
	other := errors.New("other")
	tests := []struct {
		name         string
		err          error
		on           []error
		wantNotFound bool
	}{
		{"no error", nil, []error{sql.ErrNoRows}, false},
		{"listed", sql.ErrNoRows, []error{other, sql.ErrNoRows}, true},
		{"listed and wrapped", fmt.Errorf("select: %w", sql.ErrNoRows), []error{sql.ErrNoRows}, true},
		{"not listed", other, []error{sql.ErrNoRows}, false},
		{"empty list", other, nil, false},
		{"nil in the list", other, []error{nil}, false},
		{"not found already", loader.ErrNotFound, []error{other}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := loader.NotFoundOn(func(_ context.Context, id string) (string, error) {
				return "value of " + id, tt.err
			}, tt.on...)
			v, err := f(t.Context(), "7")
			if v != "value of 7" {
				t.Errorf("value = %q, want the loader's", v)
			}
			if !errors.Is(err, tt.err) {
				t.Errorf("error = %v, want one that is %v", err, tt.err)
			}
			if got := errors.Is(err, loader.ErrNotFound); got != tt.wantNotFound {
				t.Errorf("error = %v is ErrNotFound: %v, want %v", err, got, tt.wantNotFound)
			}
		})
	}
}

func TestOutsideALoad(t *testing.T) {
	ctx := t.Context()
	loader.SetTTL(ctx, -1)
	loader.NoStore(ctx)
	if v, ok := loader.Previous[string](ctx); ok || v != "" {
		t.Errorf("Previous outside a load = %q, %v; want nothing", v, ok)
	}
}

func TestSetTTLAndNoStore(t *testing.T) {
	var c loadctl.Control
	ctx := context.WithValue(t.Context(), loadctl.Key{}, &c)
	loader.SetTTL(ctx, time.Minute)
	loader.NoStore(ctx)
	ttl, noStore, err := c.Outcome()
	if ttl != time.Minute || !noStore || err != nil {
		t.Errorf("Outcome = %v, %v, %v; want 1m, true and no error", ttl, noStore, err)
	}
	loader.SetTTL(ctx, 0)
	if _, _, err := c.Outcome(); err == nil || !strings.Contains(err.Error(), "must be positive") {
		t.Errorf("misuse after SetTTL(0) = %v, want one that says so", err)
	}
	c.Seal()
	loader.SetTTL(ctx, time.Hour)
	if ttl, _, _ := c.Outcome(); ttl != time.Minute {
		t.Errorf("TTL = %v after the load had ended, want 1m", ttl)
	}
}

type named interface{ Name() string }

type cat struct{ name string }

func (c cat) Name() string { return c.name }

// previousIn asks for the previous value as a V and returns the answer as text.
func previousIn[V any](ctx context.Context) string {
	v, ok := loader.Previous[V](ctx)
	return fmt.Sprintf("%v %v", v, ok)
}

func TestPrevious(t *testing.T) {
	tests := []struct {
		name   string
		old    any
		has    bool
		ask    func(context.Context) string
		want   string
		misuse string
	}{
		{name: "none", ask: previousIn[string], want: " false"},
		{name: "value", old: "old", has: true, ask: previousIn[string], want: "old true"},
		{name: "zero value", old: 0, has: true, ask: previousIn[int], want: "0 true"},
		{name: "nil pointer", old: (*int)(nil), has: true, ask: previousIn[*int], want: "<nil> true"},
		{name: "nil interface", old: nil, has: true, ask: previousIn[named], want: "<nil> true"},
		{name: "as an interface", old: cat{"Tom"}, has: true, ask: previousIn[named], want: "{Tom} true"},
		{name: "as any", old: 7, has: true, ask: previousIn[any], want: "7 true"},
		{name: "another type", old: 7, has: true, ask: previousIn[string], want: " false", misuse: "loader.Previous[string]: the previous value is a int"},
		{name: "another interface", old: 7, has: true, ask: previousIn[named], want: "<nil> false", misuse: "loader.Previous[loader_test.named]: the previous value is a int"},
		{name: "nil for a concrete type", old: nil, has: true, ask: previousIn[string], want: " false", misuse: "loader.Previous[string]: the previous value is a <nil>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &loadctl.Control{Previous: func() (any, bool) { return tt.old, tt.has }}
			if got := tt.ask(context.WithValue(t.Context(), loadctl.Key{}, c)); got != tt.want {
				t.Errorf("Previous = %s, want %s", got, tt.want)
			}
			_, _, err := c.Outcome()
			if got := text(err); got != tt.misuse {
				t.Errorf("misuse = %q, want %q", got, tt.misuse)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestErrors(t *testing.T) {
	cause := errors.New("cause")
	tests := []struct {
		name string
		err  error
		text string
		is   error
	}{
		{"panic with text", &loader.PanicError{Value: "oops", Stack: []byte("stack")}, "loader: panic: oops", nil},
		{"panic with an error", &loader.PanicError{Value: cause, Stack: []byte("stack")}, "loader: panic: cause", cause},
		{"Goexit", &loader.PanicError{Value: loader.ErrGoexit}, "loader: panic: loader: runtime.Goexit called", loader.ErrGoexit},
		{"remote failure", &loader.RemoteError{Message: "no route"}, "loader: failed in another process: no route", nil},
		{"remote panic", &loader.RemoteError{Message: "oops", Panic: true}, "loader: panic in another process: oops", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.err.Error(); got != tt.text {
				t.Errorf("Error = %q, want %q", got, tt.text)
			}
			if got := errors.Unwrap(tt.err); got != tt.is {
				t.Errorf("Unwrap = %v, want %v", got, tt.is)
			}
		})
	}
}
