//go:build !linux

package bench

import "syscall"

// diesWithParent asks for nothing: here a worker learns of the bench's death by the end of its standard input.
func diesWithParent() *syscall.SysProcAttr { return nil }
