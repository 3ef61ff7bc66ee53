//go:build !linux

package redistest

import "syscall"

// diesWithParent returns nil: only Linux ties a child's life to its parent's.
func diesWithParent() *syscall.SysProcAttr { return nil }
