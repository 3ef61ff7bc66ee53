//go:build linux || darwin || freebsd || openbsd || netbsd

package monotime

import "golang.org/x/sys/unix"

// Now returns the present instant.
func Now() Instant {
	var ts unix.Timespec
	// The call fails only for an unknown clock or a bad pointer; neither can happen here.
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return Instant(ts.Nano())
}
