package cache

import (
	"time"

	"github.com/getorprime/getorprime/internal/entry"
)

// verdict is what a read entry means to a caller.
type verdict int

const (
	absent  verdict = iota // no entry: the lease may be won with SET NX
	missing                // an entry, but no answer in it
	fresh                  // a value to answer with
	gone                   // "not found", to answer with
	cooling                // the last load failed a short while ago
)

// judge says what e means at e.Now. It is pure arithmetic on the server's time.
//
//	state      held by nobody           being loaded
//	Value      fresh until FreshUntil   the same
//	Negative   gone until FreshUntil    the same
//	Failed     cooling until LeaseUntil missing
//	Stub       missing                  missing
//	Bypass     missing                  –
//
// A value that is marked stale is missing.
func judge(e *entry.Entry) verdict {
	switch {
	case !e.Known && !e.Foreign:
		return absent
	case !e.Known:
		return missing
	case e.State == entry.Failed && e.Lease.IsZero() && e.Now < e.LeaseUntil:
		return cooling
	case e.Now >= min(e.FreshUntil, e.HardUntil) || e.Flags.Has(entry.Marked):
		return missing
	case e.State == entry.Value:
		return fresh
	case e.State == entry.Negative:
		return gone
	}
	return missing
}

// jittered returns ttl less a share of it: u in [0, 1) of at most jitter. It is
// at least a millisecond, and a whole number of them.
func jittered(ttl time.Duration, jitter, u float64) time.Duration {
	if jitter == off {
		jitter = 0
	}
	d := ttl - time.Duration(float64(ttl)*jitter*u)
	return max(d.Truncate(time.Millisecond), time.Millisecond)
}

// smoothed folds the duration of a load into an exponentially weighted average
// with weight 1/4 for the new one, clamped so that one freak counts for little.
func smoothed(old, took time.Duration) time.Duration {
	if old <= 0 {
		return took
	}
	took = min(max(took, old/8), old*8)
	return old + (took-old)/4
}
