package redistest

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// leakBound is how long goroutines may take to end after the test.
const leakBound = 3 * time.Second

// NoLeaks fails the test at its end if goroutines run that did not run when
// NoLeaks was called, and prints their stacks. It gives them three seconds to
// end. Call it first: cleanups run last registered first, so what the test
// closes in its own cleanups is closed by then. It is of no use in tests that
// run in parallel with others.
func NoLeaks(tb testing.TB) {
	tb.Helper()
	before := goroutines()
	tb.Cleanup(func() {
		tb.Helper()
		var extra []string
		if !holdsWithin(leakBound, func() bool { extra = began(before); return len(extra) == 0 }) {
			tb.Errorf("%d goroutines leaked:\n\n%s", len(extra), strings.Join(extra, "\n\n"))
		}
	})
}

// began returns the stacks of the goroutines that are not in before.
func began(before map[string]string) []string {
	var extra []string
	for id, stack := range goroutines() {
		if _, ok := before[id]; !ok && !permanent(stack) {
			extra = append(extra, stack)
		}
	}
	return extra
}

// permanent reports whether a goroutine lives as long as the test binary.
func permanent(stack string) bool {
	return strings.Contains(stack, "redistest.forkLoop") ||
		strings.Contains(stack, "os/signal.loop") ||
		strings.Contains(stack, "testing.tRunner.func1")
}

// goroutines returns the stacks of all goroutines by their id.
func goroutines() map[string]string {
	buf := make([]byte, 1<<16)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	stacks := map[string]string{}
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		// The first line is "goroutine 7 [state]:".
		id, _, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
		stacks[id] = stack
	}
	return stacks
}
