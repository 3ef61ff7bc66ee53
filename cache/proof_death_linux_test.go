package cache_test

import "syscall"

// diesWithParent has the kernel kill a worker when the thread that started it ends.
func diesWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
