package lock_test

import (
	"testing"

	"github.com/getorprime/getorprime/internal/redistest"
)

// TestMain lets the test binary be its own worker process.
func TestMain(m *testing.M) { redistest.Main(m, new(worker)) }
