package lock_test

import (
	"flag"
	"testing"

	"github.com/getorprime/getorprime/internal/redistest"
)

// TestMain lets the test binary be its own worker process. Those tests that may run
// at the same time wait for most of theirs, so more of them do than there are
// processors, unless -parallel says how many.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	redistest.Main(m, new(worker))
}
