// Package redisembed runs a small Redis inside the process: the server a
// command uses when none is given.
//
// It is miniredis, with two things that a unit test does without: time that
// passes, and command statistics. miniredis counts TTLs down only when told
// to, or else on every access by every command; here they are counted down
// before a client's command runs, and never in the middle of a script, as in
// Redis. TIME is the real clock. INFO commandstats answers in the form of Redis.
//
// # Where it differs from Redis
//
// Counting down visits every key, so it is done when twenty times its cost has
// passed since it was last done: a twentieth of one processor at most. By so
// much can a key expire early: under a tenth of a millisecond with ten keys,
// about 7 ms with a thousand, 50 ms with ten thousand. There is no memory
// limit, no persistence, no CONFIG, no CLIENT LIST and no MONITOR. The
// conformance test beside this package lists what is the same in scripts, and
// what is not.
package redisembed

import (
	"fmt"
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
)

// Server is an embedded Redis. Its methods may be called from any goroutine.
type Server struct {
	redis *miniredis.Miniredis
	addr  string
	clock *clock
	stats *commandStats

	mu      sync.Mutex                // guards clients
	clients map[*server.Peer]struct{} // connected, as opposed to called from a script
}

// Start runs a server on a free loopback port. It fails if no port can be
// bound. The caller closes it.
func Start() (*Server, error) {
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		return nil, fmt.Errorf("start embedded redis: %w", err)
	}
	s := &Server{
		redis:   m,
		addr:    m.Addr(),
		clock:   newClock(m.FastForward),
		stats:   newCommandStats(m.Server()),
		clients: map[*server.Peer]struct{}{},
	}
	m.Server().SetPreHook(s.before)
	return s, nil
}

// Addr returns the server's address as host:port.
func (s *Server) Addr() string { return s.addr }

// Client returns a new client for the server, which the caller closes.
func (s *Server) Client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.addr})
}

// Close ends the server with all its connections and waits for its
// goroutines. The data is lost. Closing it again does nothing.
func (s *Server) Close() { s.redis.Close() }

// before runs before every command, those called from scripts included. It
// reports whether it has answered.
func (s *Server) before(peer *server.Peer, cmd string, args ...string) bool {
	// A script holds the lock that counting down takes; and in Redis, too,
	// nothing expires while a script runs.
	if s.isClient(peer) {
		s.clock.advance()
	}
	return s.stats.before(peer, cmd, args)
}

// isClient tells a client's connection from the peer that miniredis makes for
// each call from a script. The latter has its context from the start, a
// client gets it with its first command.
func (s *Server) isClient(peer *server.Peer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.clients[peer]; known {
		return true
	}
	if peer.Ctx != nil {
		return false
	}
	s.clients[peer] = struct{}{}
	peer.OnDisconnect(func() { s.forget(peer) })
	return true
}

func (s *Server) forget(peer *server.Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, peer)
}
