package lock_test

import (
	"net"
	"net/rpc"
	"sync"
	"testing"
)

// resource is a record behind a lock, which lives in the test's process and is
// never stopped. It refuses whoever comes with a smaller fence than it has seen,
// also who only reads: else one could write, with a fence that is still the
// greatest, after a later one has read what that write destroys.
type resource struct {
	lax bool // the mutant: it looks at no fence

	mu       sync.Mutex // guards what follows
	value    int64
	seen     int64
	reader   int     // who has read last
	accepted []int64 // the fences of writes
	refused  int
}

// Access is what a worker does with the resource.
type Access struct {
	Process int
	Fence   int64
	Value   int64 // to be written
}

// Answer is the resource's.
type Answer struct {
	Value   int64
	Refused bool
}

// admits reports whether a fence is good enough. It is called with mu held.
func (r *resource) admits(fence int64) bool {
	if fence < r.seen && !r.lax {
		r.refused++
		return false
	}
	r.seen = max(r.seen, fence)
	return true
}

// Read returns the record.
func (r *resource) Read(a Access, got *Answer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if got.Refused = !r.admits(a.Fence); !got.Refused {
		got.Value, r.reader = r.value, a.Process
	}
	return nil
}

// Write changes the record.
func (r *resource) Write(a Access, got *Answer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if got.Refused = !r.admits(a.Fence); !got.Refused {
		r.value = a.Value
		r.accepted = append(r.accepted, a.Fence)
	}
	return nil
}

// lastReader returns which process is likely to hold the lock.
func (r *resource) lastReader() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reader
}

// verdict is what the checker finds.
type verdict struct {
	writes  int // that were accepted
	refused int
	lost    int // writes that another one destroyed unseen
	falls   int // writes that were accepted after one with a greater fence
}

// check judges what was accepted. Each write added one to what its writer had
// read, so the record is the number of writes, less those that were lost.
func (r *resource) check() (v verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v.writes, v.refused, v.lost = len(r.accepted), r.refused, len(r.accepted)-int(r.value)
	var greatest int64
	for _, fence := range r.accepted {
		if fence < greatest {
			v.falls++
		}
		greatest = max(greatest, fence)
	}
	return v
}

// serve makes the resource be reached by workers, and returns its address.
func (r *resource) serve(tb testing.TB) string {
	tb.Helper()
	server := rpc.NewServer()
	if err := server.RegisterName("Resource", r); err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go server.ServeConn(conn)
		}
	}()
	return l.Addr().String()
}
