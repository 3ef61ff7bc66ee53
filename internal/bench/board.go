package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/getorprime/getorprime/internal/bench/monotime"
)

// board is memory that the bench and its workers share: the data that loads read, what was said of its changes, and which loads began. It
// holds nothing but atomics, since the processes have no other order between them, and it outlives a worker that is killed.
type board struct {
	loads   atomic.Int64               // loads begun
	begun   [maxBegun]begun            // those that are drawn; those beyond are counted only
	loading [MaxProcesses]atomic.Int32 // loads under way, by worker
	rows    [MaxKeys]boardRow
}

// begun is a load that began.
type begun struct {
	at  atomic.Int64
	key atomic.Int64 // the record's number, -1 for others
}

// boardRow is one record of the data.
type boardRow struct {
	version atomic.Uint64 // what a load reads
	told    atomic.Uint64 // the newest version whose invalidation has returned
}

// MaxKeys is how many keys a scenario can use; maxBegun how many loads it can draw.
const (
	MaxKeys  = 1 << 14
	maxBegun = 1 << 16
)

const boardSize = int(unsafe.Sizeof(board{}))

// newBoardFile makes the file that a board is mapped from and returns its path.
func newBoardFile() (path string, err error) {
	f, err := os.CreateTemp("", "prime-bench-*")
	if err != nil {
		return "", fmt.Errorf("bench: cannot make the file that processes share: %w", err)
	}
	defer f.Close()
	return f.Name(), f.Truncate(int64(boardSize))
}

// key returns the number of an id like "k17", -1 for others.
func key(id string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(id, "k"))
	if err != nil || n < 0 || n >= MaxKeys {
		return -1
	}
	return n
}

// keyID is the id of record n.
func keyID(n int) string { return "k" + strconv.Itoa(n) }

// begin notes a load of id by a worker. It returns the version read.
func (b *board) begin(worker int, id string) (version uint64) {
	k := key(id)
	if n := b.loads.Add(1) - 1; n < maxBegun {
		b.begun[n].key.Store(int64(k))
		b.begun[n].at.Store(int64(monotime.Now()))
	}
	b.loading[worker].Add(1)
	if k >= 0 {
		version = b.rows[k].version.Load()
	}
	return version
}

func (b *board) end(worker int) { b.loading[worker].Add(-1) }

// since returns the loads from number first on.
func (b *board) since(first int64) (all []loadAt) {
	for n := first; n < min(b.loads.Load(), maxBegun); n++ {
		all = append(all, loadAt{monotime.Instant(b.begun[n].at.Load()), int(b.begun[n].key.Load())})
	}
	return all
}

// loadAt is when a load of a record began.
type loadAt struct {
	at  monotime.Instant
	key int
}

// change commits a new version, has its readers told by invalidate, and notes that they were.
func (r *boardRow) change(invalidate func() error) error {
	v := r.version.Add(1)
	if err := invalidate(); err != nil {
		return err
	}
	r.tell(v)
	return nil
}

// tell notes that the invalidation for version v has returned.
func (r *boardRow) tell(v uint64) {
	for old := r.told.Load(); old < v && !r.told.CompareAndSwap(old, v); old = r.told.Load() {
	}
}
