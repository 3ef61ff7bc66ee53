package cache_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/cache"
)

// problems returns the lines of an error, each of which is one problem.
func problems(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

// wantProblems fails the test unless each line of err contains the part wanted
// of it, in this order.
func wantProblems(tb testing.TB, err error, parts ...string) {
	tb.Helper()
	lines := problems(err)
	ok := len(lines) == len(parts)
	for i := range min(len(lines), len(parts)) {
		ok = ok && strings.Contains(lines[i], parts[i])
	}
	if !ok {
		tb.Errorf("got %d problems:\n%s\nwant %d with %q", len(lines), strings.Join(lines, "\n"), len(parts), parts)
	}
}

func TestBadOptions(t *testing.T) {
	tests := []struct {
		name string
		opts cache.Options
		want []string
	}{
		{"defaults", cache.Options{}, nil},
		{"budget", cache.Options{RedisBudget: -time.Second}, []string{"cache: Options.RedisBudget is -1s: must be"}},
		{"budget too short", cache.Options{RedisBudget: time.Microsecond}, []string{"Options.RedisBudget is 1µs: must be at least 1ms"}},
		{"lease too short", cache.Options{LeaseTTL: time.Millisecond}, []string{"Options.LeaseTTL is 1ms: must be from 10ms"}},
		{"lease too long", cache.Options{LeaseTTL: time.Hour}, []string{"Options.LeaseTTL is 1h0m0s"}},
		{"loads", cache.Options{MaxConcurrentLoads: -1}, []string{"Options.MaxConcurrentLoads is -1: must not be negative"}},
		{"name", cache.Options{Name: "a\"b"}, []string{`Options.Name is "a\"b": must be printable`}},
		{"name with a newline", cache.Options{Name: "a\nb"}, []string{"Options.Name is"}},
		{"name with spaces", cache.Options{Name: "my cache"}, nil},
		{"defaults of policies", cache.Options{Defaults: &cache.Policy{TTL: -1}}, []string{"Options.Defaults.TTL is -1ns"}},
		{"all at once", cache.Options{
			RedisBudget: -1, LeaseTTL: -1, MaxConcurrentLoads: -1, Name: "ü",
			Defaults: &cache.Policy{TTL: -1, Version: "|"},
		}, []string{"Options.RedisBudget", "Options.LeaseTTL", "Options.MaxConcurrentLoads", "Options.Name", "Options.Defaults.TTL", "Options.Defaults.Version"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := cache.New(rdb, &tt.opts)
			wantProblems(t, err, tt.want...)
		})
	}
}

func TestBadPolicies(t *testing.T) {
	tests := []struct {
		name   string
		policy cache.Policy
		want   []string
	}{
		{"defaults", cache.Policy{}, nil},
		{"TTL", cache.Policy{TTL: -time.Second}, []string{`cache: Policy of keyspace "p:".TTL is -1s: must be at least 1ms`}},
		{"TTL below a millisecond", cache.Policy{TTL: time.Microsecond}, []string{"TTL is 1µs"}},
		{"jitter off", cache.Policy{Jitter: -1}, nil},
		{"jitter too large", cache.Policy{Jitter: 0.51}, []string{"Jitter is 0.51: must be from 0 to 0.5"}},
		{"jitter negative", cache.Policy{Jitter: -0.1}, []string{"Jitter is -0.1"}},
		{"not-found off", cache.Policy{NotFoundTTL: -1}, nil},
		{"not-found negative", cache.Policy{NotFoundTTL: -2}, []string{"NotFoundTTL is -2ns"}},
		{"cool-down", cache.Policy{ErrorCooldown: -1}, []string{"ErrorCooldown is -1ns"}},
		{"longest cool-down", cache.Policy{ErrorCooldown: time.Minute}, []string{"ErrorCooldownMax is 5s: must be at least ErrorCooldown, which is 1m0s"}},
		{"load timeout", cache.Policy{LoadTimeout: -1}, []string{"LoadTimeout is -1ns"}},
		{"wait timeout", cache.Policy{WaitTimeout: -1}, []string{"WaitTimeout is -1ns"}},
		{"loads", cache.Policy{MaxConcurrentLoads: -1}, []string{"MaxConcurrentLoads is -1: must be positive"}},
		{"version", cache.Policy{Version: "a|b"}, []string{`Version is "a|b": must not contain`}},
		{"old versions", cache.Policy{Version: "2", OldVersions: []string{"1", "|", "2"}}, []string{`OldVersions[1] is "|"`, `OldVersions[2] is "2": must differ from Version`}},
		{"all at once", cache.Policy{
			TTL: -1, Jitter: 2, NotFoundTTL: -2, ErrorCooldown: -1, LoadTimeout: -1, WaitTimeout: -1, MaxConcurrentLoads: -1, Version: "|",
		}, []string{"TTL", "Jitter", "NotFoundTTL", "ErrorCooldown", "LoadTimeout", "WaitTimeout", "MaxConcurrentLoads", "Version"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := open(t, rdb, nil)
			_, err := cache.Register(c, "p:", constant("v"), &tt.policy)
			wantProblems(t, err, tt.want...)
			if err == nil {
				return
			}
			if _, err := cache.Register(c, "p:", constant("v"), nil); err != nil {
				t.Errorf("after a refused Register: %v", err)
			}
		})
	}
}

func TestClientsThatAreRefused(t *testing.T) {
	local := "127.0.0.1:1"
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": local}})
	cached := redis.NewClient(&redis.Options{Addr: local, Protocol: 3, ClientSideCacheConfig: &redis.ClientSideCacheConfig{}})
	cluster := func(o redis.ClusterOptions) *redis.ClusterClient {
		o.Addrs = []string{local}
		c := redis.NewClusterClient(&o)
		t.Cleanup(func() { c.Close() })
		return c
	}
	t.Cleanup(func() { ring.Close(); cached.Close() })
	tests := []struct {
		name    string
		client  redis.UniversalClient
		replica bool
		want    []string
	}{
		{"nil", nil, false, []string{"client is nil: pass a *redis.Client"}},
		{"ring", ring, false, []string{"*redis.Ring", "use a *redis.ClusterClient"}},
		{"client-side cache", cached, false, []string{"ClientSideCacheConfig", "unset it"}},
		{"replica reads", cluster(redis.ClusterOptions{ReadOnly: true}), false, []string{"replicas", "AllowReplicaReads"}},
		{"replica reads by latency", cluster(redis.ClusterOptions{RouteByLatency: true}), false, []string{"replicas", "AllowReplicaReads"}},
		{"replica reads at random", cluster(redis.ClusterOptions{RouteRandomly: true}), false, []string{"replicas", "AllowReplicaReads"}},
		{"replica reads accepted", cluster(redis.ClusterOptions{ReadOnly: true}), true, nil},
		{"cluster", cluster(redis.ClusterOptions{}), false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := cache.New(tt.client, &cache.Options{AllowReplicaReads: tt.replica})
			if (err == nil) != (tt.want == nil) {
				t.Fatalf("got %v, want an error with %q", err, tt.want)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want it to say %q", err, part)
				}
			}
		})
	}
	_, err := cache.New(nil, &cache.Options{LeaseTTL: -1})
	wantProblems(t, err, "client is nil", "LeaseTTL")
}

func TestTypedNilClients(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{"client": (*redis.Client)(nil), "cluster": (*redis.ClusterClient)(nil), "ring": (*redis.Ring)(nil)} {
		if _, err := cache.New(client, nil); err == nil || !strings.Contains(err.Error(), "cache: client is") {
			t.Errorf("nil %s: got %v, want an error about the client", name, err)
		}
	}
}

// TestDefaultsOfPolicies has a keyspace take what it leaves unset from
// Options.Defaults, and neither is changed.
func TestDefaultsOfPolicies(t *testing.T) {
	inBubble(t, func(b *bubble) {
		defaults := &cache.Policy{TTL: time.Hour, Jitter: -1, Version: "3", OldVersions: []string{"2"}}
		c := open(b, b.client(), &cache.Options{Defaults: defaults})
		own := &cache.Policy{TTL: time.Second}
		inherits := space(b, c, "i:", constant("v"), nil)
		overrides := space(b, c, "o:", constant("v"), own)
		for id, k := range map[string]*cache.Keyspace[string]{"i": inherits, "o": overrides} {
			want(b, id, "v")(k.GetOrPrime(b.Context(), "a"))
		}
		if got := b.ttl("3|i:a"); got != time.Hour {
			b.Errorf("inherited TTL %v, want 1h", got)
		}
		if got := b.ttl("3|o:a"); got != time.Second {
			b.Errorf("own TTL %v, want 1s", got)
		}
		if own.Version != "" || own.LoadTimeout != 0 || defaults.LoadTimeout != 0 || !slices.Equal(defaults.OldVersions, []string{"2"}) {
			b.Errorf("the user's policies were changed: %+v, %+v", own, defaults)
		}
	})
}

// TestOptionsAreNotRead after New has returned.
func TestOptionsAreNotRead(t *testing.T) {
	opts := &cache.Options{Namespace: "n:", RedisBudget: bound}
	policy := &cache.Policy{OldVersions: []string{"1"}}
	c := open(t, rdb, opts)
	k := space(t, c, "k:", constant("v"), policy)
	opts.Namespace, policy.OldVersions[0], policy.TTL = "m:", "|", -1
	want(t, "call", "v")(k.GetOrPrime(t.Context(), "options"))
	if n, err := rdb.Exists(context.Background(), "n:k:options").Result(); n != 1 || err != nil {
		t.Errorf("the key under the first namespace: %d, %v; want 1", n, err)
	}
	if err := k.Invalidate(t.Context(), "options"); err != nil {
		t.Error(err)
	}
}

func TestOneOptionsValueForAll(t *testing.T) {
	opts := &cache.Options{Namespace: "shared:", RedisBudget: bound, Defaults: &cache.Policy{TTL: time.Minute}}
	crowd(20, func(i int) {
		c := open(t, rdb, opts)
		if _, err := cache.Register(c, "k:", constant("v"), opts.Defaults); err != nil {
			t.Error(err)
		}
	})
}

func TestClosedCache(t *testing.T) {
	inBubble(t, func(b *bubble) {
		c, k := openSpace(b, b.client(), constant("v"), nil)
		want(b, "before", "v")(k.GetOrPrime(b.Context(), "a"))
		if err := c.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
		_, get := k.GetOrPrime(b.Context(), "a")
		_, peek := k.Peek(b.Context(), "a")
		_, refresh := k.Refresh(b.Context(), "a")
		_, load := k.GetOrLoad(b.Context(), "a", constant("v"))
		_, fetch := k.Fetch(b.Context(), "a")
		_, untyped := cache.GetOrPrime[string](b.Context(), c, "k:a")
		errs := map[string]error{"get": get, "peek": peek, "refresh": refresh, "load": load, "fetch": fetch, "untyped": untyped, "set": k.Set(b.Context(), "a", "w")}
		for what, err := range errs {
			if !errors.Is(err, cache.ErrClosed) {
				b.Errorf("%s: got %v, want ErrClosed", what, err)
			}
		}
	})
}
