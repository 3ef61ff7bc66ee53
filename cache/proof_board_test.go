//go:build unix

package cache_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// board is memory that all processes of a proof share: the simulated database,
// what is known of it, and a log. It holds nothing but atomics, since the
// processes have no other order between them.
type board struct {
	calls atomic.Int64 // judged so far
	halt  atomic.Bool
	rows  [maxRows]row
	next  atomic.Uint64 // the number of log records begun
	log   [1 << 14]record
}

const maxRows = 128

// row is one record of the database.
type row struct {
	version atomic.Uint64 // what a load reads
	acked   atomic.Uint64 // the newest version whose invalidation was acknowledged
	loads   atomic.Int64  // loads begun
	running atomic.Int64  // loads that have not returned
	writers atomic.Int64  // invalidations under way; -1: a Set
}

// share admits an invalidation beside others, unless a Set is under way.
func (r *row) share() bool {
	for {
		n := r.writers.Load()
		if n < 0 {
			return false
		}
		if r.writers.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (r *row) unshare() { r.writers.Add(-1) }

// own admits a Set if nobody else writes.
func (r *row) own() bool { return r.writers.CompareAndSwap(0, -1) }

func (r *row) disown() { r.writers.Store(0) }

// ack notes that version v was invalidated for all to see.
func (r *row) ack(v uint64) {
	for old := r.acked.Load(); old < v; old = r.acked.Load() {
		if r.acked.CompareAndSwap(old, v) {
			return
		}
	}
}

// record is one line of the log: when, what, by whom, of which row, and a number.
type record struct {
	at, what, n atomic.Uint64
}

// The things that are logged.
const (
	logLoad = iota
	logLoaded
	logInvalidate
	logDelete
	logSet
	logAcked
	logRefused
	logStale
)

var logNames = [...]string{"load reads", "load ends with", "invalidates for", "deletes for", "sets", "acknowledged", "refused", "STALE"}

func (b *board) note(process int, what, row uint64, n uint64) {
	r := &b.log[(b.next.Add(1)-1)%uint64(len(b.log))]
	r.at.Store(uint64(time.Now().UnixNano()))
	r.what.Store(uint64(process)<<32 | what<<16 | row)
	r.n.Store(n)
}

// history returns what was logged of a row between two instants.
func (b *board) history(row int, from, to int64) string {
	var lines []string
	for i := range b.log {
		r := &b.log[i]
		at, what := int64(r.at.Load()), r.what.Load()
		if at < from || at > to || int(what&0xffff) != row {
			continue
		}
		lines = append(lines, fmt.Sprintf("%12.3f ms  process %d %s %d", float64(at-from)/1e6, what>>32, logNames[what>>16&0xffff], r.n.Load()))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// began returns the instants, in order, at which logged loads of a row began.
func (b *board) began(row int) (at []int64) {
	for i := range b.log {
		r := &b.log[i]
		if what := r.what.Load(); r.at.Load() != 0 && what&0xffff == uint64(row) && what>>16&0xffff == logLoad {
			at = append(at, int64(r.at.Load()))
		}
	}
	slices.Sort(at)
	return at
}

func (b *board) row(id string) (*row, uint64) {
	i, err := strconv.ParseUint(id, 10, 16)
	if err != nil {
		panic(err)
	}
	return &b.rows[i], i
}

// newBoard makes a board in a file, and returns the file's name.
func newBoard(tb testing.TB) (*board, string) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "board")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.Truncate(path, int64(unsafe.Sizeof(board{}))); err != nil {
		tb.Fatal(err)
	}
	b, err := openBoard(path)
	if err != nil {
		tb.Fatal(err)
	}
	return b, path
}

// openBoard maps the board in a file. It stays mapped as long as the process lives.
func openBoard(path string) (*board, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	mem, err := syscall.Mmap(int(f.Fd()), 0, int(unsafe.Sizeof(board{})), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*board)(unsafe.Pointer(unsafe.SliceData(mem))), nil
}
