//go:build unix && !linux

package cache_test

import "syscall"

// diesWithParent changes nothing where the kernel has no such service: a worker ends with its input.
func diesWithParent() *syscall.SysProcAttr { return nil }
