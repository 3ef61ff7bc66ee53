package lock_test

import (
	"fmt"
	"net/rpc"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// fleet is one Redis and worker processes on it.
type fleet struct {
	*testing.T
	server  *redistest.Server
	client  *redis.Client
	workers []*member
}

// member is one worker process, as the test sees it.
type member struct{ *redistest.Worker }

// newFleet starts Redis and n workers, which are connected when it returns.
func newFleet(t *testing.T, n int, ttl time.Duration) *fleet {
	t.Helper()
	server := redistest.Start(t)
	f := &fleet{T: t, server: server, client: server.Client(t)}
	for range n {
		f.workers = append(f.workers, &member{redistest.StartWorker(t)})
	}
	var opened []*rpc.Call
	for i, m := range f.workers {
		opened = append(opened, m.Go("Open", Setup{ID: i, Addr: server.Addr(), TTL: ttl}, new(bool)))
	}
	for i, m := range f.workers {
		m.Await(opened[i])
	}
	return f
}

// all has every worker begin to do the same, whose reply is what reply returns.
func (f *fleet) all(method string, arg any, reply func(i int) any) (calls []*rpc.Call) {
	for i, m := range f.workers {
		calls = append(calls, m.Go(method, arg, reply(i)))
	}
	return calls
}

// here returns a locker in the test's own process.
func (f *fleet) here(ttl time.Duration) *lock.Locker {
	f.Helper()
	return open(f, f.client, &lock.Options{TTL: ttl})
}

// acquire has a worker acquire a lock that has to be had, and name the lease like
// the lock.
func (m *member) acquire(f *fleet, name string, opts lock.AcquireOptions) Got {
	f.Helper()
	var got Got
	m.Call("Acquire", Want{name, name, opts}, &got)
	if got.Kind != "" {
		f.Fatalf("a worker acquiring %q: %s", name, got.Error)
	}
	return got
}

// asked is something that a worker was told and has not done yet.
type asked struct {
	*member
	f    *fleet
	call *rpc.Call
	got  Got
}

// begin has a worker begin to do something.
func (m *member) begin(f *fleet, method string, arg any) *asked {
	a := &asked{member: m, f: f}
	a.call = m.Go(method, arg, &a.got)
	return a
}

// await waits until it is done.
func (a *asked) await() Got {
	a.f.Helper()
	a.Await(a.call)
	return a.got
}

// ask has a worker begin to acquire a lock that others hold, and returns when it
// is noted as waiting.
func (m *member) ask(f *fleet, name string, opts lock.AcquireOptions) *asked {
	f.Helper()
	key := "lock:{" + name + "}:w"
	before := f.client.ZCard(f.Context(), key).Val()
	a := m.begin(f, "Acquire", Want{name, name, opts})
	redistest.Eventually(f, bound, func() bool { return f.client.ZCard(f.Context(), key).Val() > before }, "a worker is noted as waiting")
	return a
}

// tell has a worker do one thing with a lease.
func (m *member) tell(method, id string) (got Got) {
	m.Call(method, id, &got)
	return got
}

// places names a subtest.
func places(n int) string { return fmt.Sprintf("%d places", n) }

// wantKind reports an outcome of another kind than the one wanted.
func (f *fleet) wantKind(what string, got Got, kind string) {
	f.Helper()
	if got.Kind != kind {
		f.Errorf("%s: %q (%s), want %q", what, got.Kind, got.Error, kind)
	}
}

// noted waits until Redis knows that somebody waits for a lock.
func (f *fleet) noted(name string) {
	f.Helper()
	redistest.Eventually(f, bound, func() bool {
		return f.client.ZCard(f.Context(), "lock:{"+name+"}:w").Val() > 0
	}, "somebody is noted as waiting")
}
