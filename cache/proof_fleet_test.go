//go:build unix

package cache_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/internal/redistest"
)

// replyBound is how long a worker may take for what should take no time, on a
// machine that is busy with other tests.
const replyBound = 60 * time.Second

// setup is what a worker process is to be.
type setup struct {
	Process int
	Addr    string // the way to Redis
	Direct  string // a way around the proxy, for those who are not part of the cache
	Board   string

	Lease, Budget                       time.Duration
	TTL, LoadTimeout, Cooldown, CoolMax time.Duration
	StaleFor, Soft                      time.Duration // 0: no stale windows, and no early refresh
	Load                                behaviour
	Mix                                 *mix   // how loads behave in a storm
	Tampered                            bool   // the client has a hook that tampers with commands; it keeps to contexts' deadlines by itself then
	Mutant                              string // the rule to weaken
}

// behaviour is what the loader does.
type behaviour struct {
	For time.Duration // how long a load takes
	Bad string        // how a load misbehaves: see misbehave; "slow": only bad loads take For
	N   int64         // how many loads of a row are bad; 0: all
}

// order is one line to a worker, reply its answer.
type order struct {
	Do    string
	Open  *setup `json:",omitempty"`
	Calls *calls `json:",omitempty"`
	Storm *storm `json:",omitempty"`
}

type reply struct {
	Error    string
	Outcomes []outcome    `json:",omitempty"`
	Tally    *tally       `json:",omitempty"`
	Stats    *cache.Stats `json:",omitempty"`
}

// calls are concurrent calls for one id that begin at one instant.
type calls struct {
	ID      string
	Do      string // "": GetOrPrime; "peek"; "set" to V; "pointer": GetOrPrime of pointers
	V       uint64
	Callers int
	At      int64         // Unix ns
	Within  time.Duration // each caller's deadline; 0: none
}

// outcome is what one caller saw.
type outcome struct {
	Value        uint64
	Nil          bool
	Kind, Error  string
	Began, Ended int64 // Unix ns
}

func (o *outcome) took() time.Duration { return time.Duration(o.Ended - o.Began) }

// proof is one Redis, one board and the worker processes on them.
type proof struct {
	*testing.T
	server  *redistest.Server
	client  *redis.Client
	board   *board
	path    string
	workers []*process
}

// newProof starts Redis.
func newProof(t *testing.T) *proof {
	t.Helper()
	p := &proof{T: t, server: redistest.Start(t)}
	p.client = p.server.Client(t)
	p.board, p.path = newBoard(t)
	t.Cleanup(p.bury)
	return p
}

// start starts n worker processes like s and returns when all are connected.
func (p *proof) start(n int, s setup) {
	p.Helper()
	for i := range n {
		s.Process = i
		p.launch(n, s)
	}
	for _, w := range p.workers {
		p.await(w, replyBound+time.Duration(n)*time.Second)
	}
}

// launch starts one of n worker processes and tells it what to be.
func (p *proof) launch(n int, s setup) {
	p.Helper()
	w, err := startProcess(n)
	if err != nil {
		p.Fatal(err)
	}
	p.workers = append(p.workers, w)
	s.Board, s.Direct = p.path, p.server.Addr()
	if s.Addr == "" {
		s.Addr = p.server.Addr()
	}
	w.tell(order{Do: "open", Open: &s})
}

// loads returns how many loads of the first rows have begun.
func (p *proof) loads(rows int) (n int64) {
	for i := range rows {
		n += p.board.rows[i].loads.Load()
	}
	return n
}

// bury ends the workers and reports what they died of, unless the test killed them.
func (p *proof) bury() {
	for _, w := range p.workers {
		w.in.Close()
	}
	for _, w := range p.workers {
		timer := time.AfterFunc(replyBound, func() { _ = w.cmd.Process.Kill() })
		<-w.gone
		timer.Stop()
		if w.err != nil && !w.killed {
			p.Errorf("a worker ended with %v: %s", w.err, w.stderr.String())
		}
	}
}

// await returns a worker's next reply.
func (p *proof) await(w *process, bound time.Duration) reply {
	p.Helper()
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case r, ok := <-w.replies:
		if !ok {
			<-w.gone
			p.Fatalf("a worker ended with %v: %s", w.err, w.stderr.String())
		}
		if r.Error != "" {
			p.Fatalf("a worker could not do as told: %s", r.Error)
		}
		return r
	case <-timer.C:
		p.Fatalf("a worker gave no reply within %v: %s", bound, w.stderr.String())
	}
	return reply{}
}

// call has every worker make the same calls at the same instant, and returns
// what the callers saw, all together.
func (p *proof) call(c calls) (all []outcome) {
	p.Helper()
	return p.hear(p.begin(c, p.workers...)...)
}

// one has one worker make one call and returns what it saw.
func (p *proof) one(w *process, c calls) outcome {
	p.Helper()
	c.Callers = 1
	return p.hear(p.begin(c, w)...)[0]
}

// begin has workers make the same calls at the same instant.
func (p *proof) begin(c calls, workers ...*process) []*process {
	c.At = p.soon()
	for _, w := range workers {
		w.tell(order{Do: "call", Calls: &c})
	}
	return workers
}

// hear returns what the callers of workers saw.
func (p *proof) hear(workers ...*process) (all []outcome) {
	p.Helper()
	for _, w := range workers {
		all = append(all, p.await(w, replyBound).Outcomes...)
	}
	return all
}

// soon is an instant by which all workers can have been told.
func (p *proof) soon() int64 {
	return time.Now().Add(50*time.Millisecond + time.Duration(len(p.workers))*2*time.Millisecond).UnixNano()
}

// stats returns the sum of the workers' statistics.
func (p *proof) stats(workers ...*process) (sum cache.Stats) {
	p.Helper()
	for _, w := range workers {
		w.tell(order{Do: "stats"})
		add(&sum, p.await(w, replyBound).Stats)
	}
	return sum
}

// process is one worker, as its parent sees it.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	replies chan reply // closed when the worker says no more
	stderr  lockedBuffer
	gone    chan struct{}
	err     error // of the process; to be read once it is gone
	killed  bool
}

// startProcess starts one of n workers.
func startProcess(n int) (*process, error) {
	w := &process{cmd: exec.Command(os.Args[0]), replies: make(chan reply, 4), gone: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), workerEnv+"=1", "GORACE=atexit_sleep_ms=0",
		fmt.Sprintf("GOMAXPROCS=%d", max(1, min(2, 16*runtime.NumCPU()/n))))
	w.cmd.Stderr = &w.stderr
	w.cmd.SysProcAttr = diesWithParent()
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := fork(w.cmd); err != nil {
		return nil, err
	}
	w.in = in
	go w.listen(out)
	return w, nil
}

// listen passes on the replies until the worker ends.
func (w *process) listen(out io.Reader) {
	defer close(w.gone)
	lines := json.NewDecoder(out)
	for {
		var r reply
		if lines.Decode(&r) != nil {
			break
		}
		w.replies <- r
	}
	close(w.replies)
	w.err = w.cmd.Wait()
}

// tell sends an order. That the worker is gone shows when its reply is missing.
func (w *process) tell(o order) { _ = json.NewEncoder(w.in).Encode(o) }

// kill ends the worker as a crash would, and returns the instant.
func (w *process) kill() time.Time {
	w.killed = true
	at := time.Now()
	_ = w.cmd.Process.Kill()
	return at
}

// stop takes the worker off the processor until cont.
func (w *process) stop() { _ = w.cmd.Process.Signal(syscall.SIGSTOP) }

func (w *process) cont() { _ = w.cmd.Process.Signal(syscall.SIGCONT) }

// forks starts processes from one thread that lives as long as the test binary:
// a worker dies with the thread that started it.
var forks = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()
	return jobs
})

func fork(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	forks() <- func() { done <- cmd.Start() }
	return <-done
}

// lockedBuffer collects what a worker complains of.
type lockedBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.TrimSpace(b.buf.String())
}
