package redistest

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// observeBound is how long a server may take to report what it saw.
const observeBound = 10 * time.Second

// Monitor returns the commands that the server at addr ran while f ran, as
// MONITOR prints them:
//
//	1339518083.107412 [0 127.0.0.1:60866] "evalsha" "…"
//	1339518083.107502 [0 lua] "get" "k"
//
// The commands that clients send when they connect are among them, and so are
// the calls of scripts, which [FromScript] recognizes: without those, and with
// no pipelines, a line is a round trip.
func Monitor(tb testing.TB, addr string, f func()) []string {
	tb.Helper()
	conn, err := net.DialTimeout("tcp", addr, observeBound)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close()
	lines := bufio.NewReader(conn)
	if ok, err := exchange(conn, lines, "MONITOR"); err != nil || ok != "OK" {
		tb.Fatalf("MONITOR: %q, %v", ok, err)
	}
	f()
	mark := rand.Text()
	if err := sendMark(addr, mark); err != nil {
		tb.Fatal(err)
	}
	seen, err := readUntil(conn, lines, mark)
	if err != nil {
		tb.Fatalf("read MONITOR: %v", err)
	}
	return seen
}

// FromScript reports whether a line of [Monitor] is a call made by a script.
func FromScript(line string) bool {
	_, source, _ := strings.Cut(line, " ")
	_, source, _ = strings.Cut(source, " ")
	return strings.HasPrefix(source, "lua]")
}

// exchange sends an inline command and returns the line of its reply.
func exchange(conn net.Conn, lines *bufio.Reader, cmd string) (string, error) {
	if err := conn.SetDeadline(time.Now().Add(observeBound)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(conn, "%s\r\n", cmd); err != nil {
		return "", err
	}
	return readLine(lines)
}

// sendMark has the server run a command that marks the end of what f did.
func sendMark(addr, mark string) error {
	conn, err := net.DialTimeout("tcp", addr, observeBound)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = exchange(conn, bufio.NewReader(conn), "ECHO "+mark)
	return err
}

func readUntil(conn net.Conn, lines *bufio.Reader, mark string) ([]string, error) {
	// f may have taken longer than the deadline set before it.
	if err := conn.SetDeadline(time.Now().Add(observeBound)); err != nil {
		return nil, err
	}
	var seen []string
	for {
		line, err := readLine(lines)
		if err != nil {
			return nil, err
		}
		if strings.Contains(line, mark) {
			return seen, nil
		}
		seen = append(seen, line)
	}
}

// readLine returns a status reply without its type byte and line end.
func readLine(lines *bufio.Reader) (string, error) {
	line, err := lines.ReadString('\n')
	return strings.TrimPrefix(strings.TrimSuffix(line, "\r\n"), "+"), err
}

// SocketReads returns how often the server that client is connected to read
// from a client's socket while f ran: one per round trip, whether it carried
// one command, a script or a short pipeline. A command longer than the
// server's buffer of 16 KB takes several reads, and each connection made
// meanwhile adds those of its set-up, so connect before; go-redis keeps
// connections for pipelines apart from those for single commands.
func SocketReads(tb testing.TB, client *redis.Client, f func()) int64 {
	tb.Helper()
	opts := *client.Options()
	opts.PoolSize, opts.MinIdleConns, opts.MaxRetries = 1, 0, -1
	observer := redis.NewClient(&opts)
	defer observer.Close()
	before := totalReads(tb, observer)
	f()
	const own = 1 // reading the second INFO itself
	return totalReads(tb, observer) - before - own
}

func totalReads(tb testing.TB, client *redis.Client) int64 {
	tb.Helper()
	info, err := client.Info(context.Background(), "stats").Result()
	if err != nil {
		tb.Fatal(err)
	}
	_, after, _ := strings.Cut(info, "total_reads_processed:")
	number, _, _ := strings.Cut(after, "\r\n")
	reads, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		tb.Fatalf("INFO stats without total_reads_processed: %q", info)
	}
	return reads
}
