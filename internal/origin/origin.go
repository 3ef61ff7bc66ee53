// Package origin simulates the slow data source behind a cache: the database query that a cache exists to avoid.
//
// Every load takes the same time and makes a payload of its own from random bytes, so two callers hold equal bytes only if they share one
// load. The origin writes down when each load began and ended, on the clock that all processes of the machine share; adding the
// records of several processes up gives the loads of a cluster.
package origin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/getorprime/getorprime/internal/bench/monotime"
)

// PayloadSize is the length of every payload, in bytes.
const PayloadSize = 256

// Load is the record of one load.
type Load struct {
	ID     string           `json:"id"`
	Start  monotime.Instant `json:"start"`
	End    monotime.Instant `json:"end,omitempty"`    // 0 while the load runs
	Digest string           `json:"digest,omitempty"` // of the payload; "" while the load runs and when it was cancelled
}

// Done reports whether the load has ended with a payload.
func (l Load) Done() bool { return l.Digest != "" }

// Digest names a payload: equal payloads have equal digests.
func Digest(payload []byte) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:16])
}

// Origin is a simulated data source, safe for concurrent use.
type Origin struct {
	mu     sync.Mutex // guards all below
	random *rand.Rand
	delay  time.Duration
	loads  []Load
}

// New returns an origin whose loads take delay. Payloads come from a generator seeded with seed and stream: the same pair gives the same
// payloads, and processes that share a seed take a stream each, or their payloads would be equal without a shared load.
func New(seed, stream uint64, delay time.Duration) *Origin {
	return &Origin{random: rand.New(rand.NewPCG(seed, stream)), delay: delay}
}

// SetDelay changes how long loads take that begin from now on.
func (o *Origin) SetDelay(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.delay = d
}

// Load waits for the origin's delay and returns a new payload of [PayloadSize] bytes. When ctx ends first it returns ctx's cause; the
// load is recorded all the same.
func (o *Origin) Load(ctx context.Context, id string) ([]byte, error) {
	n, delay := o.begin(id)
	if err := monotime.Sleep(ctx, delay); err != nil {
		o.end(n, "")
		return nil, err
	}
	payload := o.payload()
	o.end(n, Digest(payload))
	return payload, nil
}

// Loads returns the records of all loads of id so far, in the order in which they began.
func (o *Origin) Loads(id string) []Load {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(o.loads), func(l Load) bool { return l.ID != id })
}

func (o *Origin) begin(id string) (n int, delay time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loads = append(o.loads, Load{ID: id, Start: monotime.Now()})
	return len(o.loads) - 1, o.delay
}

func (o *Origin) payload() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := make([]byte, PayloadSize)
	for i := range b {
		b[i] = byte(o.random.Uint32())
	}
	return b
}

func (o *Origin) end(n int, digest string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loads[n].End, o.loads[n].Digest = monotime.Now(), digest
}
