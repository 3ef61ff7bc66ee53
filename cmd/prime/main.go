// Command prime tries out and operates getorprime caches and locks.
//
//	prime bench      stampede a cache with real processes and compare strategies
//	prime run        run a program on one machine at a time
//	prime locks      list the locks that are held
//	prime version    say which build this is
//
// Results go to standard output, everything else to standard error. The exit status is 0 on success, 1 on failure, 2 for a wrong command
// line and 130 when interrupted; sub-commands with others say so in their help.
//
// The command line is read by kong: sub-commands are plain structs with flags as fields and no package state, so that [run] can be tested
// like any function, and it brings no further modules along.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	signals := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(os.Interrupt) { // it is for what a script puts in the background
		signals = append(signals, os.Interrupt)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	// The first signal asks for an orderly end; after it, a second one has its usual effect.
	context.AfterFunc(ctx, stop)
	// What the client logs about a connection, a command's error says as well, and once.
	logging.Disable()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
