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
}

// startProcess runs path with args in dir.
func startProcess(path string, args []string, dir string) (*process, error) {
	p := &process{cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Stdout = &p.log
	p.cmd.Stderr = &p.log
	p.cmd.SysProcAttr = diesWithParent()
	if err := fork(p.cmd); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		// The exit status of a server that was stopped says nothing.
		_ = p.cmd.Wait()
	}()
	return p, nil
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
