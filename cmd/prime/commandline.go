package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// Exit statuses that sub-commands share.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// commandLine is the grammar of the command line.
type commandLine struct {
	Bench   benchCommand   `cmd:"" help:"Stampede a cache with real processes and compare strategies."`
	Run     runCommand     `cmd:"" help:"Run a program on one machine at a time."`
	Locks   locksCommand   `cmd:"" help:"List the locks that are held."`
	Version versionCommand `cmd:"" help:"Say which build this is."`
	Worker  workerCommand  `cmd:"" name:"bench-worker" hidden:"" help:"Serve a bench as one of its processes."`
	Guard   guardCommand   `cmd:"" name:"run-guard" hidden:"" help:"End the command of a run that was killed."`
}

// streams are where a sub-command writes: results to out, the rest to err.
type streams struct{ out, err io.Writer }

// exitError ends the command with a status; err is printed unless it is nil.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// run is the whole command but for its process: it obeys args until it is done or ctx ends and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	helped := false
	parser, err := kong.New(&commandLine{},
		kong.Name("prime"),
		kong.Description("Try out and operate getorprime caches and locks."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { helped = true }),
		kong.Vars(benchVars()),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(&streams{stdout, stderr}),
	)
	if err != nil {
		return report(ctx, stderr, err)
	}
	parsed, err := parser.Parse(args)
	switch {
	case helped:
		// kong has printed the help and, as it was not allowed to exit, has gone on to complain about what is missing.
		return exitOK
	case err != nil:
		return report(ctx, stderr, &exitError{usageStatus(err), err})
	}
	return report(ctx, stderr, parsed.Run())
}

// usageStatus is the exit status for a command line that the parser refused.
func usageStatus(err error) int {
	var wrong *kong.ParseError
	if errors.As(err, &wrong) {
		if command := wrong.Context.Selected(); command != nil && command.Name == "run" {
			return runUsage
		}
	}
	return exitUsage
}

// report prints err and returns the exit status that it means.
func report(ctx context.Context, stderr io.Writer, err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
	case ctx.Err() != nil:
		exit = &exitError{exitInterrupted, errors.New("interrupted")}
	default:
		exit = &exitError{exitFailure, err}
	}
	if exit.err != nil {
		for line := range strings.Lines(exit.err.Error() + "\n") {
			fmt.Fprint(stderr, "prime: ", line)
		}
	}
	return exit.status
}
