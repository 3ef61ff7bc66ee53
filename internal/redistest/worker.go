package redistest

import (
	"io"
	"log"
	"net/rpc"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

const (
	// workerEnv tells a test binary to be a worker.
	workerEnv = "REDISTEST_WORKER"
	// workerBound is how long a worker may take to end by itself.
	workerBound = 20 * time.Second
	// callBound is how long a call may take.
	callBound = 2 * time.Minute
)

// Main is what TestMain calls in a package whose test binary is its own worker:
// it runs the tests, or, in a worker, serves the methods of worker by net/rpc
// until the parent is done. It does not return.
func Main(m *testing.M, worker any) {
	if os.Getenv(workerEnv) == "" {
		os.Exit(m.Run())
	}
	signal.Ignore(syscall.SIGPIPE) // what is said to a parent that listens no longer
	server := rpc.NewServer()
	if err := server.RegisterName("Worker", worker); err != nil {
		log.Fatal(err)
	}
	server.ServeConn(stdio{untilClosed{os.Stdin}, os.Stdout})
}

// untilClosed ends this process when its parent closes the pipe, whatever is under
// way: what waits for a lock may wait for long.
type untilClosed struct{ *os.File }

// Read is the file's.
func (f untilClosed) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	if err != nil {
		os.Exit(0)
	}
	return n, nil
}

// stdio is a connection made of a process's two ends of pipes.
type stdio struct {
	io.ReadCloser
	io.WriteCloser
}

// Close closes both.
func (s stdio) Close() error {
	_ = s.WriteCloser.Close()
	return s.ReadCloser.Close()
}

// Worker is this test binary as a process of its own. Its methods may be called
// from any goroutine.
type Worker struct {
	tb     testing.TB
	proc   *process
	client *rpc.Client
}

// StartWorker starts a worker, which ends with the test. A worker that did not
// end by itself, or complained of anything, fails the test, unless it was killed.
func StartWorker(tb testing.TB) *Worker {
	tb.Helper()
	p := newProcess(os.Args[0])
	p.cmd.Env = append(os.Environ(), workerEnv+"=1", "GORACE=atexit_sleep_ms=0")
	in, err := p.cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := p.start(); err != nil {
		tb.Fatal(err)
	}
	w := &Worker{tb, p, rpc.NewClient(stdio{out, in})}
	tb.Cleanup(w.end)
	return w
}

// end lets the worker end, and reports how it did unless it had ended before.
func (w *Worker) end() {
	select {
	case <-w.proc.done:
		_ = w.client.Close()
		return
	default:
	}
	_ = w.proc.resume()
	_ = w.client.Close()
	late := time.AfterFunc(workerBound, func() { _ = w.proc.cmd.Process.Kill() })
	defer late.Stop()
	if <-w.proc.done; w.proc.err != nil {
		w.tb.Errorf("a worker ended with %v: %s", w.proc.err, w.proc.output())
	}
}

// Call calls a method of the worker, fills reply, a pointer, with what it returns,
// and fails the test if the worker is gone or returns an error. It must be called
// from the test's own goroutine.
func (w *Worker) Call(method string, arg, reply any) {
	w.tb.Helper()
	w.Await(w.Go(method, arg, reply))
}

// Go is Call without waiting for the end: see [Worker.Await].
func (w *Worker) Go(method string, arg, reply any) *rpc.Call {
	return w.client.Go("Worker."+method, arg, reply, make(chan *rpc.Call, 1))
}

// Await waits for the end of a call and fails the test as Call does.
func (w *Worker) Await(call *rpc.Call) {
	w.tb.Helper()
	late := time.NewTimer(callBound)
	defer late.Stop()
	select {
	case <-call.Done:
		if call.Error != nil {
			w.tb.Fatalf("%s of a worker: %v: %s", call.ServiceMethod, call.Error, w.proc.output())
		}
	case <-late.C:
		w.tb.Fatalf("%s of a worker did not return within %v: %s", call.ServiceMethod, callBound, w.proc.output())
	}
}

// Kill ends the worker with SIGKILL, as a crash would, and waits for its end.
func (w *Worker) Kill() { w.proc.kill() }

// Pause stops the worker with SIGSTOP until [Worker.Resume].
func (w *Worker) Pause() {
	w.tb.Helper()
	if err := w.proc.pause(); err != nil {
		w.tb.Fatal(err)
	}
}

// Resume continues a worker stopped by [Worker.Pause].
func (w *Worker) Resume() {
	w.tb.Helper()
	if err := w.proc.resume(); err != nil {
		w.tb.Error(err)
	}
}
