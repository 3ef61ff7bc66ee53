package main

import (
	"context"
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// bound is how long a test waits for what should happen soon.
const bound = 20 * time.Second

// hold holds a lock until the test ends.
func hold(t *testing.T, client redis.UniversalClient, namespace, name string, opts *lock.AcquireOptions) *lock.Lease {
	t.Helper()
	locker, err := lock.New(client, &lock.Options{Namespace: namespace, RedisBudget: bound})
	if err != nil {
		t.Fatal(err)
	}
	h, err := locker.Acquire(t.Context(), name, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.Release(context.Background())
		_ = locker.Close(context.Background())
	})
	return h
}

// someLocks holds what TestLocks and its like list.
func someLocks(t *testing.T) *redistest.Server {
	t.Helper()
	server := redistest.Start(t)
	client := server.Client(t)
	hold(t, client, "", "backup", &lock.AcquireOptions{TTL: time.Hour, Info: "db3/4711 pg_dump"})
	hold(t, client, "", "mail:send", &lock.AcquireOptions{TTL: time.Hour, Holders: 2, Info: "web1/17"})
	hold(t, client, "", "mail:send", &lock.AcquireOptions{TTL: time.Hour, Holders: 2, Info: "web2/42 \x1b[31mred\n"})
	hold(t, client, "shop:", "stock", &lock.AcquireOptions{TTL: time.Hour, Info: "till"})
	if err := client.ZAdd(t.Context(), "lock:{backup}:w", redis.Z{Score: 1, Member: "a"}, redis.Z{Score: 2, Member: "b"}).Err(); err != nil {
		t.Fatal(err)
	}
	return server
}

var timeLeft = regexp.MustCompile(`\b(59m\d+(\.\d)?s|1h0m0s) *`)

func TestLocksGolden(t *testing.T) {
	t.Setenv("PRIME_REDIS_URL", someLocks(t).URL())
	tests := []struct {
		file string
		args []string
		env  string // PRIME_NAMESPACE
	}{
		{"locks.txt", nil, ""},
		{"locks-prefix.txt", []string{"mail:"}, ""},
		{"locks-namespace.txt", []string{"--namespace", "shop:"}, ""},
		{"locks-namespace.txt", nil, "shop:"},
		{"locks-none.txt", []string{"no*"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			t.Setenv("PRIME_NAMESPACE", tt.env)
			status, stdout, stderr := prime(t.Context(), append([]string{"locks"}, tt.args...)...)
			if status != exitOK || stderr != "" {
				t.Errorf("status %d, stderr %q; want 0 and nothing", status, stderr)
			}
			stdout = timeLeft.ReplaceAllString(stdout, "N  ")
			golden(t, tt.file, regexp.MustCompile(`LEFT +`).ReplaceAllString(stdout, "LEFT  "))
		})
	}
}

func TestLocksJSON(t *testing.T) {
	server := someLocks(t)
	status, stdout, stderr := prime(t.Context(), "locks", "--json", "--redis", server.URL())
	if status != exitOK || stderr != "" {
		t.Fatalf("status %d, stderr %q; want 0 and nothing", status, stderr)
	}
	var got struct {
		Locks []struct {
			Name    string
			Waiting int
			Holders []map[string]any
		}
	}
	decode(t, stdout, &got)
	var names []string
	for _, l := range got.Locks {
		names = append(names, l.Name)
		for _, h := range l.Holders {
			left, _ := h["left_ms"].(float64)
			if left <= 50*60*1000 || left > 60*60*1000 || h["state"] != "held" || h["info"] == "" || len(h) != 3 {
				t.Errorf("holder of %q: %v", l.Name, h)
			}
		}
	}
	if want := []string{"backup", "mail:send"}; !reflect.DeepEqual(names, want) {
		t.Fatalf("locks %q, want %q", names, want)
	}
	if got.Locks[0].Waiting != 2 || len(got.Locks[1].Holders) != 2 {
		t.Errorf("got %+v; want two who wait for backup, and two who hold mail:send", got.Locks)
	}
}

func TestNoLocksJSON(t *testing.T) {
	_, stdout, _ := prime(t.Context(), "locks", "--json", "--redis", redistest.Start(t).URL())
	if want := "{\"locks\":[]}\n"; stdout != want {
		t.Errorf("got %q, want %q", stdout, want)
	}
}

func TestLocksWithoutServer(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	status, stdout, stderr := prime(t.Context(), "locks", "--redis", server.URL())
	if status != exitFailure || stdout != "" || !strings.Contains(stderr, "Redis unavailable") {
		t.Errorf("status %d, stdout %q, stderr %q; want 1, nothing, and the reason", status, stdout, stderr)
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	lines := json.NewDecoder(strings.NewReader(text))
	if err := lines.Decode(into); err != nil {
		t.Fatal(err)
	}
	if lines.More() {
		t.Errorf("more than one object:\n%s", text)
	}
}
