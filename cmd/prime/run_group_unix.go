//go:build unix

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

const haveGroups = true

// relayed are the signals that are passed on to the command.
var relayed = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// endsWaiting reports whether a signal ends a prime that waits for the lock. The others are for the command, and there is none yet.
func endsWaiting(sig os.Signal) bool { return sig != syscall.SIGUSR1 && sig != syscall.SIGUSR2 }

// isolate has the command start in a process group of its own, which gets the terminal if it was prime's alone. restore takes that back.
func isolate(cmd *exec.Cmd) (restore func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
	in, out := term.IsTerminal(0), term.IsTerminal(1)
	if !in && !out {
		return func() {}
	}
	// The command inherits this. A group that was stopped would hold the lock, and nobody would see that it was: the shell's job is prime. A
	// group in the background is told so when it reads, by an error.
	signal.Ignore(syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	owner, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if !in || !out || err != nil || owner != unix.Getpgrp() {
		return func() {}
	}
	cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, 0
	return func() { _ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, owner) }
}

// asGuard keeps a guard out of reach of what is sent to prime's process group, as by Ctrl-C.
func asGuard(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// signalGroup sends a signal to the process group that p leads. A group that was stopped goes on, or it would not hear TERM.
func signalGroup(p *os.Process, sig os.Signal) {
	_ = syscall.Kill(-p.Pid, sig.(syscall.Signal))
	if sig == syscall.SIGTERM {
		_ = syscall.Kill(-p.Pid, syscall.SIGCONT)
	}
}

// killGroup ends a process group.
func killGroup(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) }

// groupLives reports whether any process is left of the group that p leads.
func groupLives(p *os.Process) bool { return syscall.Kill(-p.Pid, 0) != syscall.ESRCH }
