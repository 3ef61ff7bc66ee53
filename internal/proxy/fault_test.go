package proxy_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/proxy"
	"github.com/getorprime/getorprime/internal/redistest"
)

func TestDropReply(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	s.OnCommand(on("INCR", proxy.DropReply()))
	if got, err := s.through.Incr(ctx, "n").Result(); err == nil {
		t.Errorf("INCR = %d, want an error", got)
	}
	if got := s.direct.Get(ctx, "n").Val(); got != "1" {
		t.Errorf("n = %q, want 1: the server runs the command", got)
	}
	if got, err := s.through.Incr(ctx, "n").Result(); got != 2 || err != nil {
		t.Errorf("next INCR = %d, %v, want 2", got, err)
	}
}

func TestDropReplyInAPipeline(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	s.OnCommand(on("DECR", proxy.DropReply()))
	pipe := s.through.Pipeline()
	pipe.Incr(ctx, "before")
	dropped := pipe.Decr(ctx, "dropped")
	after := pipe.Incr(ctx, "after")
	_, _ = pipe.Exec(ctx)
	for _, c := range []*redis.IntCmd{dropped, after} {
		if c.Err() == nil {
			t.Errorf("%v, want an error", c)
		}
	}
	for key, want := range map[string]int64{"before": 1, "dropped": 1, "after": 0} {
		if got := s.direct.Exists(ctx, key).Val(); got != want {
			t.Errorf("EXISTS %s = %d, want %d", key, got, want)
		}
	}
}

// TestDropReplyOfAPausedServer has the connection closed before the server
// runs the command, which it does later.
func TestDropReplyOfAPausedServer(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	s.through.Ping(ctx)
	s.OnCommand(on("INCR", proxy.DropReply()))
	s.server.Pause()
	if err := s.through.Incr(ctx, "n").Err(); err == nil {
		t.Error("INCR was answered")
	}
	s.server.Resume()
	redistest.Eventually(t, bound, func() bool { return s.direct.Get(ctx, "n").Val() == "1" }, "execution of the command")
}

func TestLate(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	const d = 100 * time.Millisecond
	s.OnCommand(on("SET", proxy.Late(d)))
	begin := time.Now()
	if err := s.through.Set(ctx, "k", "late", 0).Err(); err == nil {
		t.Error("SET was answered")
	}
	if took := time.Since(begin); took < d {
		if got := s.direct.Exists(ctx, "k").Val(); got != 0 && time.Since(begin) < d {
			t.Errorf("the command arrived after less than %v", d)
		}
	}
	redistest.Eventually(t, bound, func() bool { return s.Delivered() == 1 }, "late delivery")
	if got := s.direct.Get(ctx, "k").Val(); got != "late" {
		t.Errorf("k = %q, want late", got)
	}
}

// TestLateOverwrites shows the interleaving that Late is made for: the client
// gives up, someone writes, the old command arrives.
func TestLateOverwrites(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	s.OnCommand(on("SET", proxy.Late(time.Second)))
	_ = s.through.Set(ctx, "k", "old", 0).Err()
	if err := s.through.Set(ctx, "k", "new", 0).Err(); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, bound, func() bool { return s.direct.Get(ctx, "k").Val() == "old" }, "overwriting by the late command")
}

// TestLateAfterOthers checks that what was sent before on the connection is
// forwarded.
func TestLateAfterOthers(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	s.OnCommand(on("DECR", proxy.Late(0)))
	pipe := s.through.Pipeline()
	pipe.Incr(ctx, "before")
	pipe.Decr(ctx, "late")
	_, _ = pipe.Exec(ctx)
	for _, key := range []string{"before", "late"} {
		redistest.Eventually(t, bound, func() bool { return s.direct.Exists(ctx, key).Val() == 1 }, key)
	}
}

func TestSideDeliveryKeepsTheConnectionsState(t *testing.T) {
	ctx := context.Background()
	server := redistest.Start(t, "--requirepass", "secret")
	p, err := proxy.New(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for name, fault := range map[string]proxy.Fault{"late": proxy.Late(0), "twice": proxy.Duplicate(0)} {
		t.Run(name, func(t *testing.T) {
			for _, protocol := range []int{2, 3} {
				in3 := func(o *redis.Options) { o.Password, o.DB, o.Protocol = "secret", 3, protocol }
				through, direct := client(t, p.Addr(), in3), client(t, server.Addr(), in3)
				direct.FlushDB(ctx)
				before := p.Delivered()
				p.OnCommand(on("SET", fault))
				_ = through.Set(ctx, "k", "v", 0).Err()
				redistest.Eventually(t, bound, func() bool { return p.Delivered() == before+1 }, "delivery")
				if got := direct.Get(ctx, "k").Val(); got != "v" {
					t.Errorf("RESP%d: k in database 3 = %q, want v", protocol, got)
				}
			}
		})
	}
}

func TestDuplicate(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	s.OnCommand(on("INCR", proxy.Duplicate(50*time.Millisecond)))
	if got, err := s.through.Incr(ctx, "n").Result(); got != 1 || err != nil {
		t.Errorf("INCR = %d, %v, want 1", got, err)
	}
	redistest.Eventually(t, bound, func() bool { return s.Delivered() == 1 }, "second delivery")
	if got := s.direct.Get(ctx, "n").Val(); got != "2" {
		t.Errorf("n = %s, want 2", got)
	}
	if got, err := s.through.Incr(ctx, "n").Result(); got != 3 || err != nil {
		t.Errorf("INCR on the same connection = %d, %v, want 3", got, err)
	}
}

func TestDelayKeepsOrder(t *testing.T) {
	const d = 50 * time.Millisecond
	ctx := context.Background()
	s := start(t)
	s.OnCommand(on("SET", proxy.Delay(d)))
	pipe := s.through.Pipeline()
	pipe.Set(ctx, "k", "v", 0)
	read := pipe.Get(ctx, "k")
	begin := time.Now()
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	if got := read.Val(); got != "v" {
		t.Errorf("GET after the delayed SET = %q, want v", got)
	}
	if took := time.Since(begin); took < d {
		t.Errorf("took %v, want at least %v", took, d)
	}
}

// TestDelayHoldsOneConnection checks that other connections are not held.
func TestDelayHoldsOneConnection(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	s.OnCommand(on("SET", proxy.Delay(time.Hour)))
	held, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); s.through.Set(held, "k", "v", 0) }()
	other := client(t, s.Addr(), nil)
	if err := other.Ping(ctx).Err(); err != nil {
		t.Error(err)
	}
	cancel()
	s.Cut()
	<-done
}
