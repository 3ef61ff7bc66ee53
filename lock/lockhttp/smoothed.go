package lockhttp

import (
	"sync/atomic"
	"time"
)

// smoothed is a mean that forgets: each new value counts for an eighth, as round
// trips do in TCP (RFC 6298, section 2). The zero value is ready.
type smoothed struct{ value atomic.Int64 }

func (s *smoothed) add(d time.Duration) {
	for {
		old := s.value.Load()
		mean := old + (int64(d)-old)/8
		if old == 0 {
			mean = int64(d)
		}
		if s.value.CompareAndSwap(old, mean) {
			return
		}
	}
}

// mean returns 0 before the first value.
func (s *smoothed) mean() time.Duration { return time.Duration(s.value.Load()) }
