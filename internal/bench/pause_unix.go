//go:build unix

package bench

import "syscall"

// pause stops a worker; resume lets it go on.
func (s *Stage) pause(i int) error { return s.fleet.workers[i].cmd.Process.Signal(syscall.SIGSTOP) }

func (s *Stage) resume(i int) error { return s.fleet.workers[i].cmd.Process.Signal(syscall.SIGCONT) }
