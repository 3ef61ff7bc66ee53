package redistest

import "syscall"

// diesWithParent has the kernel kill the child when this process ends.
func diesWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
