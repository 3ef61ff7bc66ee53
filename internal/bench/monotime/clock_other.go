//go:build !(linux || darwin || freebsd || openbsd || netbsd)

package monotime

import "time"

// Now returns the present instant. This system offers no monotonic clock that processes share through the standard library, so
// it is the wall clock, and a step of that clock in the middle of a run spoils the run's figures.
func Now() Instant { return Instant(time.Now().UnixNano()) }
