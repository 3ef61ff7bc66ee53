package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// process is one worker process, as its parent sees it.
type process struct {
	cmd    *exec.Cmd
	dead   atomic.Bool // killed by the scenario: no answers are expected
	in     io.WriteCloser
	send   *json.Encoder
	recv   *json.Decoder
	stderr tail
}

// startProcess starts one of n workers.
func startProcess(n int) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("bench: cannot find the executable to start workers from: %w", err)
	}
	p := &process{cmd: exec.Command(self, WorkerCommand)}
	p.cmd.Stderr = &p.stderr
	p.cmd.SysProcAttr = diesWithParent()
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", max(2, runtime.NumCPU()/n)))
	in, errIn := p.cmd.StdinPipe()
	out, errOut := p.cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, p.cmd.Start()); err != nil {
		return nil, fmt.Errorf("bench: cannot start a worker: %w", err)
	}
	p.in, p.send, p.recv = in, json.NewEncoder(in), json.NewDecoder(out)
	return p, nil
}

func (p *process) exchange(o order) (reply, error) {
	var r reply
	// A failed write means that the worker has ended, and so does the failed read that follows; stderr knows more than either.
	_ = p.send.Encode(o)
	if err := p.recv.Decode(&r); err != nil {
		if p.dead.Load() {
			return reply{}, nil
		}
		return r, fmt.Errorf("ended or spoke out of turn (%w) %s", err, p.stderr.String())
	}
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	if (o.Do == doRelease || o.Do == doDrive) && r.Result == nil {
		return r, errors.New("reported nothing")
	}
	return r, nil
}

// kill ends the process if it still runs; otherwise its error says so, which is as well.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex // guards text
	text []byte
}

// tailSize is how much of a worker's standard error is kept, in bytes.
const tailSize = 2048

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-tailSize):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
