package main

import "syscall"

// endWithParent has the kernel kill the command when the thread that started it ends, however that comes.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
