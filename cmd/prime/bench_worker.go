package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/getorprime/getorprime/internal/bench"
)

// workerCommand is prime bench-worker, which prime bench starts as its processes.
type workerCommand struct{}

// Run obeys the bench until it closes standard input.
func (workerCommand) Run(ctx context.Context, s *streams) error {
	// Ctrl-C reaches the whole process group; the bench ends its workers itself.
	signal.Ignore(os.Interrupt)
	return bench.Work(ctx, os.Stdin, s.out)
}
