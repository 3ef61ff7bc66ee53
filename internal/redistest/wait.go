package redistest

import (
	"testing"
	"time"
)

// Eventually waits until cond is true, asking every millisecond, and fails the
// test if it is not within bound. what names the condition in the message. It
// must be called from the test's own goroutine.
func Eventually(tb testing.TB, bound time.Duration, cond func() bool, what string) {
	tb.Helper()
	if !holdsWithin(bound, cond) {
		tb.Fatalf("not within %v: %s", bound, what)
	}
}

// holdsWithin reports whether cond becomes true before bound has passed.
func holdsWithin(bound time.Duration, cond func() bool) bool {
	deadline := time.Now().Add(bound)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !cond() {
		if time.Now().After(deadline) {
			return false
		}
		<-tick.C
	}
	return true
}
