package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// sentinelName is what the sentinel calls its primary.
	sentinelName = "main"
	// sentinelBound is how long the three servers may take to agree.
	sentinelBound = 30 * time.Second
	// downAfter is the silence after which the sentinel takes a server for dead.
	downAfter = 500 * time.Millisecond
)

// Sentinel is a primary, a replica of it, and one sentinel that promotes the
// replica when the primary is silent for half a second.
type Sentinel struct {
	tb       testing.TB
	sentinel *Server

	// Primary and Replica are what they were at the start.
	Primary, Replica *Server
}

// StartSentinel runs the three servers and returns once the replica follows the
// primary and the sentinel knows both. They stop when the test ends.
func StartSentinel(tb testing.TB) *Sentinel {
	tb.Helper()
	s := &Sentinel{tb: tb, Primary: Start(tb, "--repl-diskless-sync-delay", "0")}
	s.Replica = Start(tb, "--replicaof", "127.0.0.1 "+strconv.Itoa(s.Primary.port))
	// A sentinel asks only every ten seconds, and should find everything the first time.
	Eventually(tb, sentinelBound, func() bool { return s.replicates("master_link_status:up") }, "a replica in step")
	s.sentinel = startSentinel(tb, s.Primary.port)
	Eventually(tb, sentinelBound, s.knowsReplica, "a sentinel that knows the replica")
	return s
}

// startSentinel runs a sentinel, which needs a file that it may rewrite.
func startSentinel(tb testing.TB, primary int) *Server {
	tb.Helper()
	conf := filepath.Join(tb.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor %[1]s 127.0.0.1 %[2]d 1\n"+
		"sentinel down-after-milliseconds %[1]s %[3]d\n"+
		"sentinel failover-timeout %[1]s 10000\n", sentinelName, primary, downAfter.Milliseconds())
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	s := &Server{tb: tb, dir: tb.TempDir(), first: []string{conf, "--sentinel"}}
	if err := s.startAnywhere(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Kill)
	return s
}

// knowsReplica reports whether the replica is in step with its primary and the
// sentinel sees that.
func (s *Sentinel) knowsReplica() bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	client := redis.NewSentinelClient(&redis.Options{Addr: s.sentinel.Addr()})
	defer client.Close()
	replicas, err := client.Replicas(ctx, sentinelName).Result()
	return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok" && replicas[0]["flags"] == "slave"
}

// Client returns a new client that asks the sentinel for the primary, with
// go-redis's default settings, closed when the test tb ends.
func (s *Sentinel) Client(tb testing.TB) *redis.Client {
	tb.Helper()
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: sentinelName, SentinelAddrs: []string{s.sentinel.Addr()}})
	tb.Cleanup(func() { client.Close() })
	return client
}

// URL returns the sentinel's address as a redis:// URL that names the primary.
func (s *Sentinel) URL() string { return s.sentinel.URL() + "?master_name=" + sentinelName }

// Sever pauses the replica and has the primary drop its connection: what is
// written from now on does not reach the replica until it is resumed.
func (s *Sentinel) Sever() {
	s.tb.Helper()
	s.Replica.Pause()
	client := redis.NewClient(&redis.Options{Addr: s.Primary.Addr()})
	defer client.Close()
	if err := client.ClientKillByFilter(context.Background(), "TYPE", "replica").Err(); err != nil {
		s.tb.Fatal(err)
	}
}

// Promoted reports whether the replica has been made the primary.
func (s *Sentinel) Promoted() bool { return s.replicates("role:master") }

// replicates reports whether the replica says so of itself.
func (s *Sentinel) replicates(state string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: s.Replica.Addr()})
	defer client.Close()
	info, err := client.Info(ctx, "replication").Result()
	return err == nil && strings.Contains(info, state+"\r\n")
}
