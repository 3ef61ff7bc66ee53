//go:build !unix

package main

import (
	"os"
	"os/exec"
)

const haveGroups = false

// relayed are the signals that are passed on to the command: a Ctrl-C reaches it anyway, and only must not end prime.
var relayed = []os.Signal{os.Interrupt}

func endsWaiting(os.Signal) bool { return true }

func isolate(*exec.Cmd) (restore func()) { return func() {} }

func asGuard(*exec.Cmd) {}

// signalGroup ends p if it is to end.
func signalGroup(p *os.Process, sig os.Signal) {
	if sig != os.Interrupt {
		_ = p.Kill()
	}
}

// killGroup ends a process.
func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

func groupLives(*os.Process) bool { return false }
