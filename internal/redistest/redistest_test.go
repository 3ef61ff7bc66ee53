package redistest_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redistest"
)

func TestStart(t *testing.T) {
	ctx := context.Background()
	s := redistest.Start(t, "--maxmemory", "9mb")
	client := s.Client(t)

	if got := client.ConfigGet(ctx, "maxmemory").Val()["maxmemory"]; got != "9437184" {
		t.Errorf("maxmemory = %q, want 9437184", got)
	}
	if got := client.ConfigGet(ctx, "save").Val()["save"]; got != "" {
		t.Errorf("save = %q, want none", got)
	}
	opts, err := redis.ParseURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := opts.Addr, s.Addr(); got != want {
		t.Errorf("URL names %q, want %q", got, want)
	}
}

func TestServersAreSeparate(t *testing.T) {
	ctx := context.Background()
	a, b := redistest.Start(t), redistest.Start(t)
	if err := a.Client(t).Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := b.Client(t).Exists(ctx, "k").Val(); got != 0 {
		t.Error("a key written to one server is in the other")
	}
}

func TestKillAndRestart(t *testing.T) {
	ctx := context.Background()
	s := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), DialerRetries: 1, MaxRetries: -1})
	defer client.Close()
	addr, pid := s.Addr(), s.Pid()
	if err := client.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}

	s.Kill()
	if err := client.Ping(ctx).Err(); err == nil {
		t.Error("a killed server answers")
	}
	s.Restart()
	if got := s.Addr(); got != addr {
		t.Errorf("address after restart = %s, want %s", got, addr)
	}
	if s.Pid() == pid {
		t.Error("same process after restart")
	}
	redistest.Eventually(t, 5*time.Second, func() bool { return client.Ping(ctx).Err() == nil }, "answer after restart")
	if got := client.Exists(ctx, "k").Val(); got != 0 {
		t.Error("a key survived the restart")
	}
}

func TestPauseAndResume(t *testing.T) {
	ctx := context.Background()
	s := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: s.Addr(), ReadTimeout: 50 * time.Millisecond, MaxRetries: -1})
	defer client.Close()
	if err := client.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	s.Pause()
	if err := client.Ping(ctx).Err(); err == nil {
		t.Error("a paused server answers")
	}
	s.Resume()
	redistest.Eventually(t, 5*time.Second, func() bool { return client.Ping(ctx).Err() == nil }, "answer after resume")
}

// recorder is a test of its own, whose failures and end are the test's.
type recorder struct {
	testing.TB
	cleanups []func()
	failures []string
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

// run runs f, which may end early, and returns the failures.
func (r *recorder) run(f func(testing.TB)) []string {
	done := make(chan struct{})
	go func() { defer close(done); f(r) }()
	<-done
	return r.failures
}

func (r *recorder) end() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}

func TestMissingServerFails(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	inner := &recorder{TB: t}
	got := inner.run(func(tb testing.TB) { redistest.Start(tb) })
	if len(got) != 1 || !strings.Contains(got[0], "install redis-server") {
		t.Errorf("failures = %q, want one that tells how to install it", got)
	}
}

func TestBadArgumentFails(t *testing.T) {
	inner := &recorder{TB: t}
	got := inner.run(func(tb testing.TB) { redistest.Start(tb, "--no-such-setting", "1") })
	if len(got) != 1 || !strings.Contains(got[0], "no-such-setting") {
		t.Errorf("failures = %q, want one with the server's words", got)
	}
}

func TestServerEndsWithItsTest(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*redistest.Server)
	}{
		{"running", func(*redistest.Server) {}},
		{"paused", (*redistest.Server).Pause},
		{"killed", (*redistest.Server).Kill},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner := &recorder{TB: t}
			s := redistest.Start(inner)
			c.do(s)
			inner.end()
			if err := signal0(s.Pid()); err == nil {
				t.Errorf("process %d outlived its test", s.Pid())
			}
		})
	}
}

func signal0(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Signal(syscall.Signal(0))
}
