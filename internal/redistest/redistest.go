// Package redistest runs real Redis servers for tests.
//
// [Start] launches a redis-server process on a free loopback port, in a
// directory of its own, with persistence off, and returns once that very
// process answers. The server is stopped when the test ends, also after
// [Server.Pause]; on Linux it dies with the test binary, so a killed run
// leaves nothing behind. [StartCluster] does the same for a cluster of three
// masters, [StartSentinel] for a primary with a replica that takes over.
//
// # Processes that a test may kill
//
// [Main] lets a test binary be its own [Worker]: [StartWorker] runs it once more,
// as a process that can be paused and killed, and is called by net/rpc.
//
// # Observing a server
//
// [Monitor] returns the commands a server saw while a function ran,
// [SocketReads] how often it had to read from its sockets: the number of
// round trips, pipelines counted once. [NoLeaks] checks that a test gave its
// goroutines back, [Eventually] waits for a condition with a bound.
//
// A missing redis-server fails the test; it is never skipped.
package redistest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// startBound is how long a server may take until it answers.
const startBound = 15 * time.Second

// portAttempts is how many free ports are tried before a start fails:
// between choosing a port and binding it, another process may take it.
const portAttempts = 5

// Server is one redis-server process. Its methods may be called from any
// goroutine.
type Server struct {
	tb   testing.TB
	dir  string
	port int
	args []string

	first []string // what comes before all other arguments

	mu   sync.Mutex // guards proc
	proc *process
}

// Start runs redis-server on a free loopback port and returns once it answers.
// extraArgs are appended to the command line, as in "--maxmemory", "1mb". The
// server stops when the test ends. Start fails the test if redis-server is not
// installed or does not come up.
func Start(tb testing.TB, extraArgs ...string) *Server {
	tb.Helper()
	s := &Server{tb: tb, dir: tb.TempDir(), args: extraArgs}
	if err := s.startAnywhere(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Kill)
	return s
}

// startAnywhere tries a few free ports.
func (s *Server) startAnywhere() error {
	var err error
	for range portAttempts {
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.start(); err == nil || !addressInUse(err) {
			return err
		}
	}
	return err
}

// start runs the process on s.port and waits until it answers.
func (s *Server) start() error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("redis-server is not in PATH; install redis-server (Debian and Ubuntu: apt-get install redis-server, macOS: brew install redis): %w", err)
	}
	proc, err := startProcess(path, s.commandLine(), s.dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.proc = proc
	s.mu.Unlock()
	if err := s.awaitReady(proc); err != nil {
		proc.kill()
		return err
	}
	return nil
}

func (s *Server) commandLine() []string {
	args := append(slices.Clone(s.first), "--bind", "127.0.0.1", "--port", strconv.Itoa(s.port), "--dir", s.dir)
	if s.first == nil {
		args = append(args, "--save", "", "--appendonly", "no")
	}
	return append(args, s.args...)
}

// awaitReady returns once proc itself answers on the port.
func (s *Server) awaitReady(proc *process) error {
	bound := time.NewTimer(startBound)
	defer bound.Stop()
	retry := time.NewTicker(2 * time.Millisecond)
	defer retry.Stop()
	for !answersAs(s.Addr(), proc.pid()) {
		select {
		case <-proc.done:
			return fmt.Errorf("redis-server on port %d ended: %s", s.port, proc.output())
		case <-bound.C:
			return fmt.Errorf("redis-server on port %d gave no answer within %v: %s", s.port, startBound, proc.output())
		case <-retry.C:
		}
	}
	return nil
}

// answersAs reports whether the server at addr is the process pid: a port lost
// to another server answers just as well. A server that wants a password first
// is taken at its word.
func answersAs(addr string, pid int) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("INFO server\r\nQUIT\r\n")); err != nil {
		return false
	}
	// QUIT closes the connection, which ends the reply.
	reply, _ := io.ReadAll(conn)
	return bytes.Contains(reply, fmt.Appendf(nil, "process_id:%d\r\n", pid)) || bytes.HasPrefix(reply, []byte("-NOAUTH"))
}

// Addr returns the server's address as host:port. It stays the same over
// [Server.Restart].
func (s *Server) Addr() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
}

// URL returns the server's address as a redis:// URL.
func (s *Server) URL() string {
	return "redis://" + s.Addr()
}

// Client returns a new client with go-redis's default settings, closed when
// the test tb ends.
func (s *Server) Client(tb testing.TB) *redis.Client {
	tb.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	tb.Cleanup(func() { client.Close() })
	return client
}

// Pid returns the id of the server's current process.
func (s *Server) Pid() int {
	return s.current().pid()
}

// Kill ends the process with SIGKILL, as a crash would, and waits for its end.
// The data is lost. Killing it again does nothing.
func (s *Server) Kill() {
	s.current().kill()
}

// Restart ends the process if it still runs and starts an empty server on the
// same port.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Kill()
	deadline := time.Now().Add(startBound)
	for {
		err := s.start()
		if err == nil {
			return
		}
		if !addressInUse(err) || time.Now().After(deadline) {
			s.tb.Fatal(err)
		}
	}
}

// Pause stops the process with SIGSTOP: connections stay open, the kernel
// still accepts new ones, and nothing is answered until [Server.Resume].
func (s *Server) Pause() {
	s.tb.Helper()
	if err := s.current().pause(); err != nil {
		s.tb.Fatal(err)
	}
}

// Resume continues a process stopped by [Server.Pause].
func (s *Server) Resume() {
	s.tb.Helper()
	if err := s.current().resume(); err != nil {
		s.tb.Fatal(err)
	}
}

func (s *Server) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// freePort returns a loopback port that was free a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// addressInUse reports whether a server ended because its port was taken.
func addressInUse(err error) bool {
	return strings.Contains(err.Error(), "Address already in use")
}
