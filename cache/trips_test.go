package cache_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/internal/redistest"
)

// warm opens a keyspace on a client whose connection is made and whose server's
// time and scripts are known.
func warm(t *testing.T, server *redistest.Server, load func() string) (*redis.Client, *cache.Keyspace[string]) {
	t.Helper()
	client := server.Client(t)
	// A subscription's heartbeat would be counted too.
	c := open(t, client, &cache.Options{DisablePubSub: true})
	k := space(t, c, "k:", func(context.Context, string) (string, error) { return load(), nil }, nil)
	for _, id := range []string{"warm", "warmer"} {
		want(t, "warm-up", "v")(k.GetOrPrime(t.Context(), id))
		want(t, "warm-up", "v")(k.Refresh(t.Context(), id))
		if err := k.Set(t.Context(), id, "v"); err != nil {
			t.Fatal(err)
		}
		if err := k.Invalidate(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	return client, k
}

// words returns, of each line of MONITOR, the command in lower case, with a dot
// before those that scripts call.
func words(lines []string) (all []string) {
	for _, line := range lines {
		_, rest, _ := strings.Cut(line, `"`)
		name, _, _ := strings.Cut(rest, `"`)
		name = strings.ToLower(name)
		if redistest.FromScript(line) {
			name = "." + name
		}
		all = append(all, name)
	}
	return all
}

// TestRoundTrips counts what a call costs: as reads of the server's sockets, and
// as the commands the server saw, those inside scripts included.
func TestRoundTrips(t *testing.T) {
	server := redistest.Start(t)
	client, k := warm(t, server, func() string { return "v" })
	get := func(id string) func() { return func() { want(t, id, "v")(k.GetOrPrime(t.Context(), id)) } }
	fill := []string{"evalsha", ".time", ".getrange", ".set"}
	tests := []struct {
		name     string
		call     func(id string) func()
		before   func(id string)
		reads    int64
		commands []string
	}{
		{"miss", get, nil, 3, append([]string{"get", "set"}, fill...)},
		{"hit", get, func(id string) { get(id)() }, 1, []string{"get"}},
		{"peek at nothing", func(id string) func() { return func() { _, _ = k.Peek(t.Context(), id) } }, nil, 1, []string{"get"}},
		{
			"set", func(id string) func() { return func() { _ = k.Set(t.Context(), id, "v") } }, nil, 2,
			append([]string{"evalsha", ".time", ".getrange", ".set"}, fill...),
		},
		{
			"invalidate", func(id string) func() { return func() { _ = k.Invalidate(t.Context(), id) } }, nil, 1,
			[]string{"evalsha", ".del", ".publish"},
		},
		{
			"refresh of nothing", func(id string) func() { return func() { _, _ = k.Refresh(t.Context(), id) } }, nil, 2,
			append([]string{"evalsha", ".time", ".getrange", ".set"}, fill...),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ids := []string{tt.name + " 1", tt.name + " 2"}
			if tt.before != nil {
				tt.before(ids[0])
				tt.before(ids[1])
			}
			if got := redistest.SocketReads(t, client, tt.call(ids[0])); got != tt.reads {
				t.Errorf("%d round trips, want %d", got, tt.reads)
			}
			got := words(redistest.Monitor(t, server.Addr(), tt.call(ids[1])))
			// FILL, which ends with SET, puts times right where the clock was not known exactly.
			if n := len(tt.commands); len(got) == n+1 && tt.commands[n-1] == ".set" && got[n] == ".setrange" {
				got = got[:n]
			}
			if !slices.Equal(got, tt.commands) {
				t.Errorf("the server saw\n%q, want\n%q", got, tt.commands)
			}
		})
	}
}

// A thousand hits are a thousand GETs and nothing else, whoever calls.
func TestHitsAreGets(t *testing.T) {
	server := redistest.Start(t)
	_, k := warm(t, server, func() string { return "v" })
	want(t, "loaded", "v")(k.GetOrPrime(t.Context(), "a"))
	lines := redistest.Monitor(t, server.Addr(), func() {
		for range 1000 {
			want(t, "hit", "v")(k.GetOrPrime(t.Context(), "a"))
		}
	})
	gets := 0
	for _, word := range words(lines) {
		if word == "get" {
			gets++
		} else {
			t.Errorf("the server saw %q among hits", word)
		}
	}
	if gets != 1000 {
		t.Errorf("%d GETs for 1000 hits", gets)
	}
}
