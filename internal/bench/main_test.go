package bench_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/getorprime/getorprime/internal/bench"
)

// TestMain lets the test binary be its own worker, as the prime command is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == bench.WorkerCommand {
		if err := bench.Work(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
