package examples_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/examples"
	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// bound is how long a test waits for what should happen soon.
const bound = 20 * time.Second

func TestMain(m *testing.M) { redistest.Main(m, newNode()) }

// node is what a process of a test does: it serves a shop, or writes a report.
type node struct {
	begun   chan struct{} // receives when an order is being packed, or a report written
	proceed chan struct{} // lets it go on, if it was to be slow
}

func newNode() *node {
	return &node{begun: make(chan struct{}, 1000), proceed: make(chan struct{})}
}

// Site is where a node works.
type Site struct {
	Redis string
	Dir   string // of the database or the report
	TTL   time.Duration
	Slow  bool // go on only when told to
	Month string
	Fail  bool
}

// locker lives until the process ends.
func (s *Site) locker() (*lock.Locker, error) {
	client := redis.NewClient(&redis.Options{Addr: s.Redis})
	return lock.New(client, &lock.Options{TTL: s.TTL, RedisBudget: bound})
}

// Serve serves a shop until the process ends, and returns its URL.
func (n *node) Serve(site Site, url *string) error {
	locker, err := site.locker()
	if err != nil {
		return err
	}
	stock, err := examples.OpenStock(context.Background(), site.Dir+"/stock.db")
	if err != nil {
		return err
	}
	shop := &examples.Shop{Stock: stock, Pack: func(context.Context, string) error { return n.alone(site, "packing") }}
	routes, err := shop.Routes(locker)
	if err != nil {
		return err
	}
	*url = httptest.NewServer(routes).URL
	return nil
}

// Report writes a report of one line.
func (n *node) Report(site Site, _ *struct{}) error {
	locker, err := site.locker()
	if err != nil {
		return err
	}
	return examples.MonthlyReport(context.Background(), locker, site.Month, func(context.Context) error {
		if site.Fail {
			return errors.New("no paper")
		}
		return errors.Join(n.alone(site, "writing"), appendLine(site.Dir+"/report", site.Month))
	})
}

// Begun returns when an order is being packed, or a report written.
func (n *node) Begun(struct{}, *struct{}) error { <-n.begun; return nil }

// Proceed lets it go on.
func (n *node) Proceed(struct{}, *struct{}) error { close(n.proceed); return nil }

// alone is work that fails if another process is at it too. Who is slow may well
// lose the lock, and leaves no trace.
func (n *node) alone(site Site, name string) error {
	n.begun <- struct{}{}
	if site.Slow {
		<-n.proceed
		return nil
	}
	file, err := os.OpenFile(site.Dir+"/"+name, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("two at once: %w", err)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// appending keeps lines of one process whole.
var appending sync.Mutex

func appendLine(name, line string) error {
	appending.Lock()
	defer appending.Unlock()
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, line)
	return errors.Join(err, file.Close())
}

// start starts a process that serves a shop.
func start(tb testing.TB, site Site) (w *redistest.Worker, url string) {
	tb.Helper()
	w = redistest.StartWorker(tb)
	w.Call("Serve", site, &url)
	return w, url
}
