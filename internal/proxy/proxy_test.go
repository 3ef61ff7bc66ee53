package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/proxy"
	"github.com/getorprime/getorprime/internal/redistest"
)

const bound = 30 * time.Second

// setup is a server, a proxy before it, a client of each.
type setup struct {
	*proxy.Proxy
	server  *redistest.Server
	direct  *redis.Client // to the server
	through *redis.Client // by the proxy, without retries
}

func start(t *testing.T) *setup {
	t.Helper()
	server := redistest.Start(t)
	p, err := proxy.New(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return &setup{p, server, client(t, server.Addr(), nil), client(t, p.Addr(), nil)}
}

// patience is for 64 MB on a busy machine under the race detector.
const patience = 2 * time.Minute

// client returns a client that tries everything once, changed by change.
func client(t *testing.T, addr string, change func(*redis.Options)) *redis.Client {
	t.Helper()
	opts := &redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1, ReadTimeout: patience, WriteTimeout: patience}
	if change != nil {
		change(opts)
	}
	c := redis.NewClient(opts)
	t.Cleanup(func() { c.Close() })
	return c
}

// on returns a hook that gives a fault to the first command called name.
func on(name string, fault proxy.Fault) func([][]byte) proxy.Fault {
	var done atomic.Bool
	return func(cmd [][]byte) proxy.Fault {
		if strings.EqualFold(string(cmd[0]), name) && done.CompareAndSwap(false, true) {
			return fault
		}
		return proxy.Pass()
	}
}

func TestPassesCommandsOn(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	bytes := make([]byte, 256)
	for i := range bytes {
		bytes[i] = byte(i)
	}
	for _, c := range []struct{ name, value string }{
		{"text", "value"},
		{"empty", ""},
		{"every byte", string(bytes)},
		{"line ends", "*1\r\n$4\r\nPING\r\n"},
		{"64 MB", strings.Repeat(string(bytes), 64<<20/256)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := s.through.Set(ctx, "k", c.value, 0).Err(); err != nil {
				t.Fatal(err)
			}
			if got := s.direct.StrLen(ctx, "k").Val(); got != int64(len(c.value)) {
				t.Errorf("the server has %d bytes, want the %d sent", got, len(c.value))
			}
			if got, err := s.through.Get(ctx, "k").Result(); got != c.value || err != nil {
				t.Errorf("read back %d bytes, %v, want the %d sent", len(got), err, len(c.value))
			}
		})
	}
}

func TestPipeline(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	pipe := s.through.Pipeline()
	var replies []*redis.IntCmd
	for range 10_000 {
		replies = append(replies, pipe.Incr(ctx, "n"))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	for i, r := range replies {
		if got := r.Val(); got != int64(i+1) {
			t.Fatalf("reply %d = %d", i, got)
		}
	}
}

func TestSubscription(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	s := start(t)
	sub := s.through.Subscribe(ctx, "c")
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		want := fmt.Sprint("message ", i)
		if err := s.direct.Publish(ctx, "c", want).Err(); err != nil {
			t.Fatal(err)
		}
		if msg, err := sub.ReceiveMessage(ctx); err != nil || msg.Payload != want {
			t.Fatalf("received %v, %v, want %q", msg, err, want)
		}
	}
}

func TestInlineCommand(t *testing.T) {
	s := start(t)
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(bound))
	if _, err := conn.Write([]byte("\r\nECHO hello\r\n")); err != nil {
		t.Fatal(err)
	}
	const want = "$5\r\nhello\r\n"
	got := make([]byte, len(want))
	if _, err := conn.Read(got); err != nil || string(got) != want {
		t.Errorf("reply = %q, %v, want %q", got, err, want)
	}
}

func TestHookSeesCommands(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	if err := s.through.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var seen []string
	s.OnCommand(func(cmd [][]byte) proxy.Fault {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprintf("%q", cmd))
		return proxy.Pass()
	})
	s.through.Set(ctx, "k", "a\x00\r\nb", 0)
	s.through.Get(ctx, "k")
	s.OnCommand(nil)
	s.through.Get(ctx, "unseen")

	want := []string{`["set" "k" "a\x00\r\nb"]`, `["get" "k"]`}
	mu.Lock()
	defer mu.Unlock()
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("the hook saw %q, want %q", seen, want)
	}
}

func TestDelayEachWay(t *testing.T) {
	const d = 50 * time.Millisecond
	for _, c := range []struct {
		name               string
		toServer, toClient time.Duration
		want               time.Duration
	}{
		{"to the server", d, 0, d},
		{"to the client", 0, d, d},
		{"both", d, d, 2 * d},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := context.Background()
			s := start(t)
			s.through.Ping(ctx)
			s.SetDelay(c.toServer, c.toClient)
			begin := time.Now()
			if err := s.through.Ping(ctx).Err(); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(begin); got < c.want {
				t.Errorf("a round trip took %v, want at least %v", got, c.want)
			}
		})
	}
}

// TestDelayIsNotPaidByPiece sends much in one go over a slow line.
func TestDelayIsNotPaidByPiece(t *testing.T) {
	const d, commands = 50 * time.Millisecond, 1000
	ctx := context.Background()
	s := start(t)
	s.SetDelay(d, d)
	begin := time.Now()
	pipe := s.through.Pipeline()
	for range commands {
		pipe.Incr(ctx, "n")
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	if got := time.Since(begin); got > commands*d/4 {
		t.Errorf("%d commands took %v, want about %v", commands, got, 2*d)
	}
}

func TestCutAndHeal(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	sub := s.through.Subscribe(ctx, "c")
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	addr := s.Addr()

	s.Cut()
	if _, err := sub.ReceiveTimeout(ctx, bound); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a subscriber got %v, want the end of its connection", err)
	}
	if _, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial after Cut: %v, want refused", err)
	}
	s.Cut()

	for range 2 {
		if err := s.Heal(); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Addr(); got != addr {
		t.Errorf("address = %s, want %s as before", got, addr)
	}
	if err := s.through.Ping(ctx).Err(); err != nil {
		t.Errorf("after Heal: %v", err)
	}
}

func TestBlackHole(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*setup)
	}{
		{"server running", func(*setup) {}},
		{"server killed", func(s *setup) { s.server.Kill() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := context.Background()
			s := start(t)
			impatient := client(t, s.Addr(), func(o *redis.Options) { o.ReadTimeout, o.PoolSize = 100*time.Millisecond, 1 })
			if err := impatient.Ping(ctx).Err(); err != nil {
				t.Fatal(err)
			}
			s.BlackHole()
			c.do(s)
			var timeout net.Error
			if err := impatient.Incr(ctx, "n").Err(); !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("in the black hole: %v, want a timeout", err)
			}
			if s.direct.Exists(ctx, "n").Val() != 0 {
				t.Error("the command reached the server")
			}
		})
	}
}

func TestBlackHoleHeals(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	patient := client(t, s.Addr(), func(o *redis.Options) { o.PoolSize = 1 })
	if err := patient.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{}, 1)
	s.BlackHole()
	lost := make(chan error, 1)
	go func() { seen <- struct{}{}; lost <- patient.Incr(ctx, "n").Err() }()
	<-seen
	impatient := client(t, s.Addr(), func(o *redis.Options) { o.ReadTimeout = 50 * time.Millisecond })
	if err := impatient.Ping(ctx).Err(); err == nil {
		t.Error("an answer out of the black hole")
	}
	if err := s.Heal(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-lost:
		if err == nil {
			t.Error("a command lost in the black hole was answered")
		}
	case <-time.After(bound):
		t.Error("the connection that lost a command was not closed")
	}
	redistest.Eventually(t, bound, func() bool { return impatient.Ping(ctx).Err() == nil }, "answer after Heal")
}

func TestServerDown(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	s.server.Kill()
	if err := s.through.Ping(ctx).Err(); err == nil {
		t.Error("an answer without a server")
	}
	s.server.Restart()
	redistest.Eventually(t, bound, func() bool { return s.through.Ping(ctx).Err() == nil }, "answer after the restart")
}
