package main

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
)

// guardCommand is prime run-guard, which prime run starts beside its command: it outlives a prime that is killed, and then kills the group.
type guardCommand struct {
	Group int `arg:"" help:"The process group."`
}

// Run waits for the end of standard input, which is that of the prime that holds its other end.
func (c *guardCommand) Run() error {
	for _, sig := range relayed {
		signal.Ignore(sig)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	killGroup(c.Group)
	return nil
}

// guard is a prime run-guard, as its parent sees it.
type guard struct {
	cmd   *exec.Cmd
	alive *os.File // never written to
}

// startGuard starts a guard of a process group, nil where there are no groups.
func startGuard(group int) (*guard, error) {
	if !haveGroups {
		return nil, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	in, alive, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	g := &guard{exec.Command(self, "run-guard", strconv.Itoa(group)), alive}
	g.cmd.Stdin = in
	asGuard(g.cmd)
	if err := g.cmd.Start(); err != nil {
		alive.Close()
		return nil, err
	}
	return g, nil
}

// stop ends the guard before it could see the end of its input: the group's number may be another's by then.
func (g *guard) stop() {
	if g == nil {
		return
	}
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
	g.alive.Close()
}
