// Package origin simulates the slow data source behind a cache: the database query that a cache exists to avoid.
//
// Every load takes the same time and makes a payload of its own from random bytes, so two callers hold equal bytes only if they share one
// load. A payload tells which version of the data it is and when its load began. The origin writes down when each load began and ended,
// on the clock that all processes of the machine share; adding the records of several processes up gives the loads of a cluster.
package origin

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/getorprime/getorprime/internal/bench/monotime"
)

// PayloadSize is the length of every payload, in bytes.
const PayloadSize = 256

// ErrDown is what a load returns while the origin fails.
var ErrDown = errors.New("origin: the data source is down")

// Load is the record of one load.
type Load struct {
	ID     string           `json:"id"`
	Start  monotime.Instant `json:"start"`
	End    monotime.Instant `json:"end,omitempty"`    // 0 while the load runs
	Digest string           `json:"digest,omitempty"` // of the payload; "" while the load runs and when it came to none
}

// Done reports whether the load has ended with a payload.
func (l Load) Done() bool { return l.Digest != "" }

// Digest names a payload: equal payloads have equal digests.
func Digest(payload []byte) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:16])
}

// Stamp is what a payload tells of its load.
type Stamp struct {
	Version      uint64 // of the data, as the load read it when it began
	Began, Ended monotime.Instant
}

// Read returns a payload's stamp. Other bytes have none.
func Read(payload []byte) (s Stamp, ok bool) {
	if len(payload) != PayloadSize {
		return s, false
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(payload[i:]) }
	return Stamp{at(0), monotime.Instant(at(8)), monotime.Instant(at(16))}, true
}

// Mode is how loads end.
type Mode string

// The modes.
const (
	Works  Mode = ""      // with a payload
	Fails  Mode = "fail"  // with [ErrDown]
	Panics Mode = "panic" // with a panic
)

// Origin is a simulated data source, safe for concurrent use.
type Origin struct {
	// Begin, if set, is told of each load that begins and returns the version of the data that it reads; End is told when it ends.
	Begin func(id string) (version uint64)
	End   func(id string)

	mu     sync.Mutex // guards all below
	random *rand.Rand
	delay  time.Duration
	mode   Mode
	loads  []Load
}

// New returns an origin whose loads take delay. Payloads come from a generator seeded with seed and stream: the same pair gives the same
// payloads but for the instants in them, and processes that share a seed take a stream each, or their payloads would be equal without a
// shared load.
func New(seed, stream uint64, delay time.Duration) *Origin {
	return &Origin{
		random: rand.New(rand.NewPCG(seed, stream)), delay: delay,
		Begin: func(string) uint64 { return 0 }, End: func(string) {},
	}
}

// Set changes how long loads take that begin from now on, and how they end.
func (o *Origin) Set(d time.Duration, m Mode) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.delay, o.mode = d, m
}

// Load waits for the origin's delay and returns a new payload of [PayloadSize] bytes. When ctx ends first it returns ctx's cause; the
// load is recorded all the same.
func (o *Origin) Load(ctx context.Context, id string) ([]byte, error) {
	version := o.Begin(id)
	defer o.End(id)
	n, delay, mode := o.begin(id)
	if err := monotime.Sleep(ctx, delay); err != nil {
		o.end(n, "")
		return nil, err
	}
	switch mode {
	case Fails:
		o.end(n, "")
		return nil, ErrDown
	case Panics:
		o.end(n, "")
		panic("origin: the loader has a bug")
	}
	payload := o.payload(n, version)
	o.end(n, Digest(payload))
	return payload, nil
}

// Loads returns the records of all loads of id so far, in the order in which they began.
func (o *Origin) Loads(id string) []Load {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(o.loads), func(l Load) bool { return l.ID != id })
}

func (o *Origin) begin(id string) (n int, delay time.Duration, mode Mode) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loads = append(o.loads, Load{ID: id, Start: monotime.Now()})
	return len(o.loads) - 1, o.delay, o.mode
}

func (o *Origin) payload(n int, version uint64) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := make([]byte, PayloadSize)
	binary.BigEndian.PutUint64(b, version)
	binary.BigEndian.PutUint64(b[8:], uint64(o.loads[n].Start))
	binary.BigEndian.PutUint64(b[16:], uint64(monotime.Now()))
	for i := 24; i < len(b); i++ {
		b[i] = byte(o.random.Uint32())
	}
	return b
}

func (o *Origin) end(n int, digest string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loads[n].End, o.loads[n].Digest = monotime.Now(), digest
}
