package cachetest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/loader"
)

var errBroken = errors.New("database is down")

// source is a database with one record in versions 1, 2, …: each load counts and
// reads the next.
type source struct {
	mu    sync.Mutex // guards what follows
	loads int
	err   error
}

func (s *source) load(context.Context, string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads++
	return fmt.Sprint("v", s.loads), s.err
}

// answers makes loads fail with err, or succeed if it is nil.
func (s *source) answers(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *source) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loads
}

// register makes a keyspace "k:" of which the test knows when values expire.
func register[V any](tb testing.TB, c *cache.Cache, load loader.Func[V], p cache.Policy) *cache.Keyspace[V] {
	tb.Helper()
	p.Jitter, p.EarlyRefresh = -1, -1
	k, err := cache.Register(c, "k:", load, &p)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// recorder is a testing.TB that fails without failing the test it is used in.
type recorder struct {
	testing.TB
	mu       sync.Mutex // guards what follows
	failures []string
	cleanups []func()
}

func (r *recorder) Helper() {}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) Error(args ...any) { r.fail(fmt.Sprint(args...)) }

func (r *recorder) Errorf(format string, args ...any) { r.fail(fmt.Sprintf(format, args...)) }

func (r *recorder) Fatal(args ...any) {
	r.fail(fmt.Sprint(args...))
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

func (r *recorder) fail(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, text)
}

// run runs f as a test of its own, clean-up included, and returns its failures.
func (r *recorder) run(f func()) []string {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
	return r.failures
}
