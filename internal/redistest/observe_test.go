package redistest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/redistest"
)

const twoGets = `redis.call('GET', KEYS[1]); return redis.call('GET', KEYS[1])`

func TestMonitor(t *testing.T) {
	ctx := context.Background()
	s := redistest.Start(t)
	client := s.Client(t)
	client.Get(ctx, "before")
	lines := redistest.Monitor(t, s.Addr(), func() {
		client.Set(ctx, "k", "a\nb", 0)
		client.Eval(ctx, twoGets, []string{"k"})
	})
	client.Get(ctx, "after")

	if len(lines) != 4 {
		t.Fatalf("saw %d commands, want SET, EVAL and two GET:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	for i, want := range []struct {
		command string
		script  bool
	}{{`"set" "k" "a\nb"`, false}, {`"eval"`, false}, {`"GET" "k"`, true}, {`"GET" "k"`, true}} {
		if !strings.Contains(lines[i], "] "+want.command) {
			t.Errorf("line %d = %q, want the command %s", i, lines[i], want.command)
		}
		if got := redistest.FromScript(lines[i]); got != want.script {
			t.Errorf("FromScript(%q) = %t, want %t", lines[i], got, want.script)
		}
	}
}

func TestMonitorOfNothing(t *testing.T) {
	s := redistest.Start(t)
	if got := redistest.Monitor(t, s.Addr(), func() {}); len(got) != 0 {
		t.Errorf("saw %q, want nothing", got)
	}
}

func TestSocketReads(t *testing.T) {
	ctx := context.Background()
	s := redistest.Start(t)
	client := s.Client(t)
	pipeline := func() {
		pipe := client.Pipeline()
		pipe.Get(ctx, "k")
		pipe.Get(ctx, "k")
		_, _ = pipe.Exec(ctx)
	}
	client.Ping(ctx) // connects
	pipeline()       // pipelines have connections of their own
	for _, c := range []struct {
		name string
		f    func()
		want int64
	}{
		{"nothing", func() {}, 0},
		{"one command", func() { client.Get(ctx, "k") }, 1},
		{"three commands", func() { client.Get(ctx, "k"); client.Get(ctx, "k"); client.Get(ctx, "k") }, 3},
		{"a script that calls", func() { client.Eval(ctx, twoGets, []string{"k"}) }, 1},
		{"a pipeline", pipeline, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := redistest.SocketReads(t, client, c.f); got != c.want {
				t.Errorf("socket reads = %d, want %d", got, c.want)
			}
		})
	}
}

func TestCluster(t *testing.T) {
	ctx := context.Background()
	c := redistest.StartCluster(t)
	if got := len(c.Addrs()); got != 3 {
		t.Fatalf("%d nodes, want 3", got)
	}
	client := c.Client(t)
	keys := []string{"a", "b", "c", "d", "{tag}1", "{tag}2"}
	for _, key := range keys {
		if err := client.Set(ctx, key, key, time.Minute).Err(); err != nil {
			t.Errorf("SET %s: %v", key, err)
		}
	}
	var owners []string
	for _, key := range keys {
		node, err := client.MasterForKey(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		owners = append(owners, node.Options().Addr)
		if got, err := client.Get(ctx, key).Result(); got != key || err != nil {
			t.Errorf("GET %s = %q, %v", key, got, err)
		}
	}
	slices.Sort(owners)
	if got := len(slices.Compact(owners)); got != 3 {
		t.Errorf("keys went to %d nodes, want 3", got)
	}

	c.Nodes()[1].Restart()
	redistest.Eventually(t, 30*time.Second, func() bool {
		return !slices.ContainsFunc(keys, func(key string) bool { return client.Set(ctx, key, key, 0).Err() != nil })
	}, "service of all slots after a restart")
}

func TestNoLeaks(t *testing.T) {
	for _, c := range []struct {
		name   string
		leak   bool
		failed int
	}{{"clean", false, 0}, {"a goroutine stays", true, 1}} {
		t.Run(c.name, func(t *testing.T) {
			inner := &recorder{TB: t}
			redistest.NoLeaks(inner)
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() { defer close(stopped); <-stop }()
			if !c.leak {
				close(stop)
			}
			inner.end()
			if c.leak {
				close(stop)
			}
			<-stopped
			if got := len(inner.failures); got != c.failed {
				t.Errorf("%d failures, want %d: %q", got, c.failed, inner.failures)
			}
			if c.leak && !strings.Contains(strings.Join(inner.failures, ""), "TestNoLeaks") {
				t.Errorf("the failure does not show the goroutine: %q", inner.failures)
			}
		})
	}
}

func TestEventually(t *testing.T) {
	n := 0
	redistest.Eventually(t, time.Minute, func() bool { n++; return n == 3 }, "third call")
	if n != 3 {
		t.Errorf("asked %d times, want 3", n)
	}
	inner := &recorder{TB: t}
	got := inner.run(func(tb testing.TB) {
		redistest.Eventually(tb, time.Millisecond, func() bool { return false }, "the impossible")
	})
	if len(got) != 1 || !strings.Contains(got[0], "the impossible") {
		t.Errorf("failures = %q, want one that names the condition", got)
	}
}
