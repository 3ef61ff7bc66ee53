package proxy_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/proxy"
	"github.com/getorprime/getorprime/internal/redistest"
)

// TestFaultsUnderLoad changes the network under many callers; what it looks
// for is races, leaks and a proxy that does not recover.
func TestFaultsUnderLoad(t *testing.T) {
	ctx := context.Background()
	s := start(t)
	var callers sync.WaitGroup
	stop := make(chan struct{})
	for i := range 8 {
		callers.Go(func() {
			c := client(t, s.Addr(), func(o *redis.Options) { o.ReadTimeout = 20 * time.Millisecond })
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				_ = c.Set(ctx, fmt.Sprint("k", i), n, time.Minute).Err()
			}
		})
	}
	faults := []proxy.Fault{
		proxy.Pass(), proxy.DropReply(), proxy.Delay(time.Millisecond),
		proxy.Late(time.Millisecond), proxy.Duplicate(time.Millisecond),
	}
	var n atomic.Int64
	s.OnCommand(func([][]byte) proxy.Fault { return faults[n.Add(1)%int64(len(faults))] })
	for range 10 {
		s.SetDelay(time.Millisecond, 0)
		redistest.Eventually(t, bound, more(&n, 10), "commands over a slow line")
		s.BlackHole()
		if err := s.Heal(); err != nil {
			t.Fatal(err)
		}
		s.Cut()
		s.SetDelay(0, 0)
		if err := s.Heal(); err != nil {
			t.Fatal(err)
		}
		redistest.Eventually(t, bound, more(&n, 10), "commands after Heal")
	}
	close(stop)
	callers.Wait()
	s.OnCommand(nil)
	redistest.Eventually(t, bound, func() bool { return s.through.Ping(ctx).Err() == nil }, "answer at last")
}

// more returns a condition: n has grown by d.
func more(n *atomic.Int64, d int64) func() bool {
	goal := n.Load() + d
	return func() bool { return n.Load() >= goal }
}

func TestClose(t *testing.T) {
	redistest.NoLeaks(t)
	ctx := context.Background()
	s := start(t)
	sub := s.through.Subscribe(ctx, "c")
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	s.OnCommand(on("INCR", proxy.Duplicate(time.Hour)))
	if got, err := s.through.Incr(ctx, "n").Result(); got != 1 || err != nil {
		t.Fatalf("INCR = %d, %v, want 1", got, err)
	}
	s.SetDelay(time.Hour, time.Hour)
	waiting := make(chan error, 1)
	go func() { waiting <- s.through.Incr(ctx, "n").Err() }()

	begin := time.Now()
	s.Close()
	s.Close()
	if took := time.Since(begin); took > bound/2 {
		t.Errorf("Close took %v", took)
	}
	if err := <-waiting; err == nil {
		t.Error("a delayed command was answered after Close")
	}
	if got := s.direct.Get(ctx, "n").Val(); got != "1" {
		t.Errorf("n = %s, want 1: a delivery happened after Close", got)
	}
	if err := s.Heal(); err != nil {
		t.Errorf("Heal after Close: %v", err)
	}
	if _, err := net.Dial("tcp", s.Addr()); err == nil {
		t.Error("a closed proxy accepts connections")
	}
}

func TestNewErrors(t *testing.T) {
	p, err := proxy.New("127.0.0.1:1")
	if err != nil {
		t.Fatalf("a server that does not run: %v, want none yet", err)
	}
	defer p.Close()
	if err := client(t, p.Addr(), nil).Ping(context.Background()).Err(); err == nil {
		t.Error("an answer without a server")
	}
}
