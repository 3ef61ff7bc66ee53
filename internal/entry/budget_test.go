package entry_test

import (
	"context"
	"errors"
	"io"
	"net"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/command"
	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/redistest"
)

// late is how much longer than its budget a call may take on a slow machine: less
// than go-redis by itself would wait for one reply.
const late = 1500 * time.Millisecond

// commands are the store's calls, to be tried against a server in trouble.
var commands = map[string]func(context.Context, *entry.Store) error{
	"Get": func(ctx context.Context, s *entry.Store) error { _, err := s.Get(ctx, "k"); return err },
	"Fill": func(ctx context.Context, s *entry.Store) error {
		_, err := s.Fill(ctx, "k", tokA, content("v"), grace)
		return err
	},
	"Release": func(ctx context.Context, s *entry.Store) error { _, err := s.Release(ctx, "k", tokA); return err },
	"Acquire": func(ctx context.Context, s *entry.Store) error {
		_, err := s.Acquire(ctx, "k", &entry.Request{Lease: lease, Keep: keep})
		return err
	},
	"Invalidate": func(ctx context.Context, s *entry.Store) error { return s.Invalidate(ctx, "k") },
}

// TestBudgetOnStoppedServer is about servers that accept and never answer.
// go-redis by itself would wait for its ReadTimeout of 3 s, several times.
func TestBudgetOnStoppedServer(t *testing.T) {
	single := redistest.Start(t)
	nodes := redistest.StartCluster(t)
	clients := map[string]redis.UniversalClient{"client": single.Client(t), "cluster": nodes.Client(t)}
	stores := map[string]*entry.Store{}
	for name, c := range clients {
		stores[name] = entry.NewStore(c, "channel", time.Minute)
		if _, err := stores[name].Get(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
	}
	stores["fresh client"] = entry.NewStore(single.Client(t), "channel", time.Minute)
	stores["fresh cluster"] = entry.NewStore(nodes.Client(t), "channel", time.Minute)
	single.Pause()
	for _, n := range nodes.Nodes() {
		n.Pause()
	}
	for client, s := range stores {
		for name, run := range commands {
			t.Run(client+"/"+name, func(t *testing.T) {
				t.Parallel()
				boundsCalls(t, s, run)
			})
		}
	}
}

// boundsCalls checks that two calls together take no longer than their budget,
// and that a third ends at once.
func boundsCalls(t *testing.T, s *entry.Store, run func(context.Context, *entry.Store) error) {
	t.Helper()
	const budget = 250 * time.Millisecond
	ctx := command.Insisting(t.Context(), budget)
	start := time.Now()
	first, second := run(ctx, s), run(ctx, s)
	if took := time.Since(start); took > budget+late || took < budget/2 {
		t.Errorf("took %v, want about %v", took, budget)
	}
	if first == nil || second == nil {
		t.Errorf("errors = %v, %v; want both", first, second)
	}
	start = time.Now()
	if err := run(ctx, s); !errors.Is(err, command.ErrBudget) {
		t.Errorf("with no budget left: %v, want ErrBudget", err)
	}
	if took := time.Since(start); took > late/2 {
		t.Errorf("with no budget left a call took %v", took)
	}
}

// TestBudgetCounts is about the time between commands, which is the caller's.
func TestBudgetCounts(t *testing.T) {
	p := at(t, server(t), nil)
	ctx := command.WithBudget(t.Context(), 200*time.Millisecond)
	start := time.Now()
	redistest.Eventually(t, 5*time.Second, func() bool { return time.Since(start) > 300*time.Millisecond }, "the budget's time")
	for range 3 {
		if _, err := p.store.Get(ctx, p.key); err != nil {
			t.Fatalf("an unused budget ran out: %v", err)
		}
	}
}

// TestBudgetDerived is about contexts derived from one with a budget.
func TestBudgetDerived(t *testing.T) {
	p := at(t, server(t), nil)
	ctx, cancel := context.WithCancel(command.WithBudget(t.Context(), 0))
	defer cancel()
	if _, err := p.store.Get(ctx, p.key); !errors.Is(err, command.ErrBudget) {
		t.Errorf("under a context derived from a spent budget: %v, want ErrBudget", err)
	}
}

// TestCallersDeadline is about a deadline of the caller's that is earlier than
// the budget, or a context that has ended.
func TestCallersDeadline(t *testing.T) {
	s := redistest.Start(t)
	store := entry.NewStore(s.Client(t), "channel", time.Minute)
	s.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := store.Get(ctx, "k")
	if took := time.Since(start); took > 100*time.Millisecond+late {
		t.Errorf("a call with a deadline of 100 ms took %v", took)
	}
	if err == nil {
		t.Error("no error from a stopped server")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := store.Get(ended, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("under an ended context: %v, want Canceled", err)
	}
}

// TestOwnBudget is about a context without a budget: each command has the store's.
func TestOwnBudget(t *testing.T) {
	s := redistest.Start(t)
	store := entry.NewStore(s.Client(t), "channel", 100*time.Millisecond)
	s.Pause()
	start := time.Now()
	if _, err := store.Get(t.Context(), "k"); err == nil {
		t.Error("no error from a stopped server")
	}
	if took := time.Since(start); took > attemptsBound*100*time.Millisecond+late {
		t.Errorf("took %v with a budget of 100 ms a command", took)
	}
}

// attemptsBound is how often a command may be sent in all.
const attemptsBound = 4

// TestBudgetUnreachable is about a server that cannot be connected to.
// go-redis by itself would dial five times, and wait in between.
func TestBudgetUnreachable(t *testing.T) {
	dials := map[string]func(context.Context, string, string) (net.Conn, error){
		"refused": func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
		},
		"silent": func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}
	for name, dial := range dials {
		t.Run(name, func(t *testing.T) {
			c := redis.NewClient(&redis.Options{Addr: "192.0.2.1:6379", Dialer: dial})
			t.Cleanup(func() { c.Close() })
			s := entry.NewStore(c, "channel", time.Minute)
			const budget = 200 * time.Millisecond
			ctx := command.WithBudget(t.Context(), budget)
			start := time.Now()
			if _, err := s.Get(ctx, "k"); err == nil {
				t.Error("no error")
			}
			if took := time.Since(start); took > budget+late {
				t.Errorf("took %v, want at most %v", took, budget)
			}
		})
	}
}

// TestBudgetInPool is about waiting for a connection, which counts.
func TestBudgetInPool(t *testing.T) {
	s := redistest.Start(t)
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), PoolSize: 1})
	t.Cleanup(func() { c.Close() })
	conn := c.Conn() // takes the only connection
	t.Cleanup(func() { conn.Close() })
	if err := conn.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	store := entry.NewStore(c, "channel", time.Minute)
	ctx := command.WithBudget(t.Context(), 100*time.Millisecond)
	start := time.Now()
	if _, err := store.Get(ctx, "k"); err == nil {
		t.Error("no error without a connection")
	}
	if took := time.Since(start); took > 100*time.Millisecond+late {
		t.Errorf("took %v, want at most 100ms", took)
	}
}

// TestUserOptionsUntouched is about the client that the user goes on using.
func TestUserOptionsUntouched(t *testing.T) {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ReadTimeout: 3 * time.Second})
	t.Cleanup(func() { c.Close() })
	before := *c.Options()
	entry.NewStore(c, "channel", time.Millisecond)
	after := *c.Options()
	for i, v := range fields(before) {
		if got := fields(after)[i]; got != v {
			t.Errorf("%s changed from %v to %v", reflect.TypeFor[redis.Options]().Field(i).Name, v, got)
		}
	}
}

// fields returns the options that are numbers, strings and booleans.
func fields(o redis.Options) map[int]any {
	all := map[int]any{}
	v := reflect.ValueOf(o)
	for i := range v.NumField() {
		if f := v.Field(i); f.CanInterface() && f.Comparable() && f.Kind() != reflect.Func {
			all[i] = f.Interface()
		}
	}
	return all
}

// TestHooksRun is about the user's hooks, which run if the client obeys
// deadlines by itself.
func TestHooksRun(t *testing.T) {
	var calls atomic.Int64
	p := hooked(t, server(t), func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		calls.Add(1)
		return next(ctx, cmd)
	})
	if _, err := p.store.Get(t.Context(), p.key); err != nil {
		t.Fatal(err)
	}
	if calls.Load() == 0 {
		t.Error("no hook was run")
	}
}

// TestTroubleIsNoMiss is about replies that tell of the server's state: they are
// retried, then reported, and never taken for an absent key.
func TestTroubleIsNoMiss(t *testing.T) {
	b := server(t)
	tests := []struct {
		name    string
		err     error
		retried bool
	}{
		{"broken connection", io.EOF, true},
		{"READONLY", redisError("READONLY You can't write against a read only replica."), true},
		{"LOADING", redisError("LOADING Redis is loading the dataset in memory"), true},
		{"CLUSTERDOWN", redisError("CLUSTERDOWN The cluster is down"), true},
		{"NOAUTH", redisError("NOAUTH Authentication required."), false},
		{"NOPERM", redisError("NOPERM this user has no permissions"), false},
		{"OOM", redisError("OOM command not allowed when used memory > 'maxmemory'."), false},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			var failing, calls atomic.Int64
			p := hooked(t, b, func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
				calls.Add(1)
				if failing.Add(-1) >= 0 {
					cmd.SetErr(c.err)
					return c.err
				}
				return next(ctx, cmd)
			})
			p.seed(freshValue)
			p.knowTime()
			failing.Store(1)
			got, err := p.store.Get(t.Context(), p.key)
			if c.retried && (err != nil || string(got.Payload) != "v") || !c.retried && !errors.Is(err, c.err) {
				t.Errorf("after one error: %q, %v; retried %v", got.Payload, err, c.retried)
			}
			failing.Store(1000)
			calls.Store(0)
			if _, err := p.store.Get(t.Context(), p.key); !errors.Is(err, c.err) {
				t.Errorf("error = %v, want %v", err, c.err)
			}
			if n := calls.Load(); n > attemptsBound || (n > 1) != c.retried {
				t.Errorf("sent %d times, retried %v", n, c.retried)
			}
		})
	}
}

// redisError is an error reply.
type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}
