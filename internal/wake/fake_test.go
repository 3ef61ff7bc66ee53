package wake_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// fakeServer answers the few commands of a subscription over in-memory pipes, so that
// a test can run it, and the network it stands for, inside a synctest bubble.
type fakeServer struct {
	wg sync.WaitGroup

	// mu guards what is below.
	mu    sync.Mutex
	away  bool                   // refuse connections
	hole  bool                   // swallow commands without an answer
	deny  bool                   // refuse SUBSCRIBE
	dials int                    // connections so far
	subs  map[*fakeConn]struct{} // subscribed connections
}

// fakeConn has a queue of replies as a socket has: a server that waited for its reader
// would stop reading itself, and client and server could block each other.
type fakeConn struct {
	net.Conn
	replies chan string
}

// client returns a client of the server; both end with the test.
func (s *fakeServer) client(t *testing.T) *redis.Client {
	s.subs = make(map[*fakeConn]struct{})
	c := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", Protocol: 2, DisableIdentity: true, Dialer: s.dial,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() {
		_ = c.Close()
		s.wg.Wait()
	})
	return c
}

func (s *fakeServer) dial(context.Context, string, string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials++
	if s.away {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	s.wg.Go(func() { s.serve(far) })
	return near, nil
}

func (s *fakeServer) serve(pipe net.Conn) {
	conn := &fakeConn{Conn: pipe, replies: make(chan string, 1024)}
	s.wg.Go(conn.send)
	defer close(conn.replies)
	defer conn.Close()
	defer func() { s.set(func() { delete(s.subs, conn) }) }()
	r := bufio.NewReader(conn)
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		if reply := s.answer(conn, args); reply != "" {
			conn.replies <- reply
		}
	}
}

func (c *fakeConn) send() {
	for reply := range c.replies {
		_, _ = io.WriteString(c, reply)
	}
}

func (s *fakeServer) answer(conn *fakeConn, args []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name := strings.ToLower(args[0]); {
	case s.hole:
		return ""
	case name == "hello":
		return "-ERR unknown command\r\n"
	case name == "subscribe" && s.deny:
		return "-NOPERM this user has no permissions\r\n"
	case name == "subscribe":
		s.subs[conn] = struct{}{}
		return fmt.Sprintf("*3\r\n$9\r\nsubscribe\r\n%s:1\r\n", bulk(args[1]))
	case name == "ping":
		return "*2\r\n$4\r\npong\r\n" + bulk(args[1])
	default:
		return "+OK\r\n"
	}
}

// die drops the subscribed connections and refuses new ones.
func (s *fakeServer) die() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = true
	for conn := range s.subs {
		_ = conn.Close()
	}
}

// publish sends payload to the subscribed connections and returns their number.
func (s *fakeServer) publish(channel, payload string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.subs {
		conn.replies <- "*3\r\n$7\r\nmessage\r\n" + bulk(channel) + bulk(payload)
	}
	return len(s.subs)
}

// set changes the server's state under its lock.
func (s *fakeServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *fakeServer) counts() (dials, subscribed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dials, len(s.subs)
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readCount(r)
	args := make([]string, 0, max(n, 0))
	for range n {
		size, err := readCount(r)
		if err != nil {
			return nil, err
		}
		arg := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(r, arg); err != nil {
			return nil, err
		}
		args = append(args, string(arg[:size]))
	}
	return args, err
}

// readCount reads a line such as "*3" or "$5".
func readCount(r *bufio.Reader) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
