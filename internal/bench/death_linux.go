package bench

import "syscall"

// diesWithParent has the kernel kill a worker when the bench dies, however it dies.
func diesWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
