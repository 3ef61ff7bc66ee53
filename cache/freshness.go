package cache

import (
	"math"
	"time"

	"github.com/getorprime/getorprime/internal/entry"
)

// verdict is what a read entry means to a caller.
type verdict int

const (
	absent   verdict = iota // no entry: the lease may be won with SET NX
	missing                 // an entry, but no answer in it
	fresh                   // a value to answer with
	stale                   // a value to answer with, and to refresh
	fallback                // a value to answer with if a load fails
	gone                    // "not found", to answer with
	cooling                 // the last load failed a short while ago
)

// judge says what e means at e.Now. It is pure arithmetic on the server's time.
//
//	a Value before FreshUntil                                          fresh
//	… before FreshUntil + StaleWhileRevalidate, or marked              stale
//	… before FreshUntil + max(StaleWhileRevalidate, StaleIfError)      fallback
//	Negative before FreshUntil                                         gone
//	Failed, held by nobody, before LeaseUntil                          cooling
//	anything else, and anything at HardUntil                           missing
func judge(e *entry.Entry, p *Policy) verdict {
	switch {
	case !e.Known && !e.Foreign:
		return absent
	case !e.Known:
		return missing
	case e.State == entry.Failed && e.Lease.IsZero() && e.Now < e.LeaseUntil:
		return cooling
	case e.Now >= e.HardUntil:
		return missing
	case e.State == entry.Negative && e.Now < e.FreshUntil:
		return gone
	case e.State == entry.Value:
		return aged(e, p)
	}
	return missing
}

// aged is judge for values before their hard expiry.
func aged(e *entry.Entry, p *Policy) verdict {
	past := e.Now - e.FreshUntil
	switch {
	case e.Flags.Has(entry.Marked):
		return stale
	case past < 0:
		return fresh
	case past < p.StaleWhileRevalidate.Milliseconds():
		return stale
	case past < p.staleFor().Milliseconds():
		return fallback
	}
	return missing
}

// resting reports whether e is not to be refreshed now: a load is running, or
// the last one failed and cools down.
func resting(e *entry.Entry) bool {
	return e.Now < e.LeaseUntil && (!e.Lease.IsZero() || e.Flags.Has(entry.LastFailed))
}

// early draws whether a hit starts a refresh before the value expires, by u in
// (0, 1]: with probability e^(−left/(β·δ)), where δ is how long a load takes
// (XFetch: Vattani, Chierichetti, Lowenstein, "Optimal probabilistic cache
// stampede prevention", VLDB 2015). In the first half of a value's life it never
// does, so that a load that takes as long as the TTL does not repeat for ever.
func early(e *entry.Entry, beta, u float64) bool {
	left, life := e.FreshUntil-e.Now, e.FreshUntil-e.WrittenAt
	if beta == off || e.Delta <= 0 || left > life/2 {
		return false
	}
	return -beta*e.Delta.Seconds()*1000*math.Log(u) >= float64(left)
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
