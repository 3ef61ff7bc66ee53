package command_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/command"
	"github.com/getorprime/getorprime/internal/redistest"
)

type key struct{}

const lib = `-- a library
local k = KEYS[1]

local function twice(n)
  return 2 * n
end

local function four(n)
  return twice(twice(n))
end

local function unused()
  return k
end`

func TestScriptGetsWhatItNames(t *testing.T) {
	sc := command.NewScript(lib, "return four(tonumber(ARGV[1]))")
	for _, part := range []string{"function twice", "function four"} {
		if !strings.Contains(sc.Src, part) {
			t.Errorf("the script lacks %q:\n%s", part, sc.Src)
		}
	}
	for _, part := range []string{"unused", "local k"} {
		if strings.Contains(sc.Src, part) {
			t.Errorf("the script has %q, which it does not need:\n%s", part, sc.Src)
		}
	}
}

func TestScriptIsSentWhereItIsUnknown(t *testing.T) {
	client := redistest.Start(t).Client(t)
	s := command.NewSender(client, time.Minute)
	sc := command.NewScript(lib, "return four(tonumber(ARGV[1]))")
	made := 0
	fresh := func() []any { made++; return []any{made} }
	for i, want := range []int64{8, 12} { // NOSCRIPT takes the first arguments
		cmd, err := sc.RunFresh(t.Context(), s, nil, fresh)
		if n, _ := cmd.Int64(); err != nil || n != want {
			t.Errorf("run %d: %d, %v; want %d", i, n, err, want)
		}
	}
	client.ScriptFlush(t.Context())
	cmd, err := sc.Run(t.Context(), s, []any{"key"}, 5)
	if n, _ := cmd.Int64(); err != nil || n != 20 {
		t.Errorf("after SCRIPT FLUSH: %d, %v; want 20", n, err)
	}
}

// TestDetachedGoesOn is about what has to be sent though its caller is gone.
func TestDetachedGoesOn(t *testing.T) {
	client := redistest.Start(t).Client(t)
	s := command.NewSender(client, time.Minute)
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
	ping := func(ctx context.Context) error { return s.Send(ctx, command.Once{Cmd: redis.NewCmd(ctx, "ping")}) }
	cancel()
	if err := ping(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("under a cancelled context: %v", err)
	}
	detached := command.Detached(command.WithBudget(ctx, time.Minute), time.Hour)
	if err := ping(detached); err != nil || detached.Value(key{}) != "v" {
		t.Errorf("detached: %v, value %v", err, detached.Value(key{}))
	}
	if err := ping(command.Detached(command.WithBudget(ctx, 0), time.Hour)); !errors.Is(err, command.ErrBudget) {
		t.Errorf("detached with nothing left: %v, want ErrBudget", err)
	}
	if err := ping(command.Apart(command.WithBudget(ctx, 0), time.Hour)); err != nil {
		t.Errorf("apart, with a budget of its own: %v", err)
	}
	if !command.Insists(command.Insisting(ctx, time.Second)) || command.Insists(detached) {
		t.Error("Insists does not tell")
	}
}

func TestRetry(t *testing.T) {
	refused := errors.New("connection refused")
	tests := []struct {
		name  string
		errs  []error // of the attempts; nil from then on
		tries int
	}{
		{"works", nil, 1},
		{"works the second time", []error{refused}, 2},
		{"never works", []error{refused, refused, refused, refused, refused}, 4},
		{"an answer", []error{redis.Nil}, 1},
		{"spent", []error{command.ErrBudget}, 1},
		{"cancelled", []error{context.Canceled}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tries := 0
			err := command.Retry(t.Context(), func() error {
				tries++
				if tries <= len(tt.errs) {
					return tt.errs[tries-1]
				}
				return nil
			})
			if tries != tt.tries || (err == nil) != (tries > len(tt.errs)) {
				t.Errorf("%d attempts, %v; want %d", tries, err, tt.tries)
			}
		})
	}
}

func TestIsFull(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"none", nil, false},
		{"Redis 7", errors.New("OOM command not allowed when used memory > 'maxmemory'."), true},
		{"Redis 7, in a script", errors.New("OOM command not allowed when used memory > 'maxmemory'. script: 5f2c, on @user_script:58."), true},
		{"Redis 6.2, in a script", errors.New("ERR Error running script (call to f_5f2c): @user_script:58: @user_script: 58: -OOM command not allowed when used memory > 'maxmemory'. "), true},
		{"wrapped", fmt.Errorf("acquire: %w", errors.New("OOM command not allowed when used memory > 'maxmemory'.")), true},
		{"another", errors.New("READONLY You can't write against a read only replica."), false},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			if got := command.IsFull(c.err); got != c.want {
				t.Errorf("IsFull(%v) = %v, want %v", c.err, got, c.want)
			}
		})
	}
}

func TestIsWrongType(t *testing.T) {
	const text = "Operation against a key holding the wrong kind of value"
	for _, s := range []string{"WRONGTYPE " + text, "ERR Error running script (call to f_5f2c): @user_script:32: @user_script: 32: -WRONGTYPE " + text} {
		if !command.IsWrongType(errors.New(s)) {
			t.Errorf("IsWrongType(%q) = false", s)
		}
	}
	if command.IsWrongType(nil) || command.IsWrongType(errors.New("NOSCRIPT")) {
		t.Error("IsWrongType is true of other errors")
	}
}
