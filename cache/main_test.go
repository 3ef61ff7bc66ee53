//go:build unix

package cache_test

import (
	"fmt"
	"os"
	"testing"
)

// workerEnv tells a test binary to be a worker process of a proof.
const workerEnv = "GETORPRIME_PROOF_WORKER"

// TestMain lets the test binary be its own worker.
func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) == "" {
		os.Exit(m.Run())
	}
	if err := work(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
