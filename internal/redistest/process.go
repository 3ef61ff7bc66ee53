package redistest

import (
	"bytes"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// process is a child process with its output.
type process struct {
	cmd  *exec.Cmd
	log  logBuffer
	done chan struct{} // closed once the process has been waited for
	err  error         // how it ended; to be read once it is done
}

// startProcess runs path with args in dir.
func startProcess(path string, args []string, dir string) (*process, error) {
	p := newProcess(path, args...)
	p.cmd.Dir, p.cmd.Stdout = dir, &p.log
	return p, p.start()
}

// newProcess returns a process that is yet to be started. What it writes to its
// standard error is kept.
func newProcess(path string, args ...string) *process {
	p := &process{cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Stderr = &p.log
	p.cmd.SysProcAttr = diesWithParent()
	return p
}

func (p *process) start() error {
	if err := fork(p.cmd); err != nil {
		return err
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	return nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) output() string { return p.log.String() }

func (p *process) pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

func (p *process) resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// kill ends the process at once, paused or not, and waits for its end. Nothing
// is lost by it: the servers keep no data.
func (p *process) kill() {
	// It fails only for a process that has ended.
	_ = p.cmd.Process.Kill()
	<-p.done
}

// logBuffer collects a process's output; its zero value is ready.
type logBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

// Write appends b. It never fails.
func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// String returns the output so far.
func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// forks takes the commands that the forking thread shall start.
var forks = sync.OnceValue(func() chan<- forkRequest {
	requests := make(chan forkRequest)
	go forkLoop(requests)
	return requests
})

type forkRequest struct {
	cmd    *exec.Cmd
	result chan<- error
}

// forkLoop starts processes from one thread that lives as long as this
// process: the parent-death signal is sent when the forking thread ends, not
// when its process does.
func forkLoop(requests <-chan forkRequest) {
	runtime.LockOSThread()
	for r := range requests {
		r.result <- r.cmd.Start()
	}
}

func fork(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	forks() <- forkRequest{cmd, result}
	return <-result
}
