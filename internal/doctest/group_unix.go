//go:build unix

package doctest

import (
	"os/exec"
	"syscall"
)

// killGroup makes cmd the leader of a process group of its own and lets the end of
// its context kill all of that: `go run` would leave the program it built behind.
func killGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
