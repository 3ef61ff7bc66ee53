package redistest_test

import (
	"os"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/redistest"
)

// TestMain lets the test binary be a worker.
func TestMain(m *testing.M) { redistest.Main(m, new(echo)) }

// echo is what a worker of these tests does.
type echo struct{}

// Say returns what it is told, and the process's id.
func (*echo) Say(word string, said *Said) error {
	said.Word, said.Pid = word, os.Getpid()
	return nil
}

// Wait does not return.
func (*echo) Wait(_ int, _ *int) error { select {} }

// Said is what a worker says.
type Said struct {
	Word string
	Pid  int
}

// TestWorker calls a worker, also while another call is under way.
func TestWorker(t *testing.T) {
	w := redistest.StartWorker(t)
	w.Go("Wait", 0, new(int)) // which does not keep the worker from ending
	var got Said
	w.Call("Say", "hello", &got)
	if got.Word != "hello" || got.Pid == os.Getpid() || got.Pid == 0 {
		t.Errorf("%+v, want the word from another process than %d", got, os.Getpid())
	}
}

// TestWorkerPaused calls a worker that is stopped, and has it go on.
func TestWorkerPaused(t *testing.T) {
	w := redistest.StartWorker(t)
	var got Said
	w.Call("Say", "before", &got)
	w.Pause()
	call := w.Go("Say", "meanwhile", &got)
	select {
	case <-call.Done:
		t.Error("a stopped worker answered")
	case <-time.After(50 * time.Millisecond):
	}
	w.Resume()
	if w.Await(call); got.Word != "meanwhile" {
		t.Errorf("%+v, want the answer once it goes on", got)
	}
}

// TestWorkerKilled ends a worker, stopped or not, in the middle of a call.
func TestWorkerKilled(t *testing.T) {
	for _, paused := range []bool{false, true} {
		w := redistest.StartWorker(t)
		call := w.Go("Wait", 0, new(int))
		if paused {
			w.Pause()
		}
		w.Kill()
		if <-call.Done; call.Error == nil {
			t.Error("the call of a worker that was killed has no error")
		}
		if again := <-w.Go("Say", "anybody?", new(Said)).Done; again.Error == nil {
			t.Error("a call after the end has no error")
		}
	}
}
