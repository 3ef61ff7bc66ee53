package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redistest"
)

// runner is a prime run in a process of its own. Its output goes to files, which nobody has to close.
type runner struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr string
	ended          chan struct{}
}

// startRunner starts prime run with args on a Redis; stdin may be nil.
func startRunner(t *testing.T, url string, stdin io.Reader, args ...string) *runner {
	t.Helper()
	cmd := primeProcess(append([]string{"run", "--redis", url}, args...)...)
	cmd.Stdin = stdin
	return newRunner(t, cmd)
}

// newRunner starts cmd.
func newRunner(t *testing.T, cmd *exec.Cmd) *runner {
	t.Helper()
	dir := t.TempDir()
	r := &runner{t: t, cmd: cmd, stdout: filepath.Join(dir, "stdout"), stderr: filepath.Join(dir, "stderr"), ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = create(t, r.stdout), create(t, r.stderr)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		_ = r.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill() // and the guard kills the rest
		<-r.ended
	})
	return r
}

// create makes a file that is written to at its end, as two processes do.
func create(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// out and errors are what was printed so far.
func (r *runner) out() string    { return read(r.t, r.stdout) }
func (r *runner) errors() string { return read(r.t, r.stderr) }

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// says waits until the command has printed the line.
func (r *runner) says(line string) {
	r.t.Helper()
	redistest.Eventually(r.t, bound, func() bool { return strings.Contains(r.out(), line+"\n") }, "the command says "+line)
}

// pids waits until the command has printed n process ids on a line.
func (r *runner) pids(n int) []int {
	r.t.Helper()
	var pids []int
	redistest.Eventually(r.t, bound, func() bool {
		line, _, whole := strings.Cut(r.out(), "\n")
		pids = pids[:0]
		for f := range strings.FieldsSeq(line) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
		return whole && len(pids) == n
	}, "the command prints its process ids")
	return pids
}

func (r *runner) signal(sig syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		r.t.Fatal(err)
	}
}

// status waits for the end.
func (r *runner) status() int {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(bound):
		r.t.Fatalf("prime run has not ended within %v; stdout %q, stderr %q", bound, r.out(), r.errors())
	}
	return r.cmd.ProcessState.ExitCode()
}

// wantStatus waits for the end and checks the exit status.
func (r *runner) wantStatus(want int) {
	r.t.Helper()
	if got := r.status(); got != want {
		r.t.Errorf("exit status %d, want %d; stdout %q, stderr %q", got, want, r.out(), r.errors())
	}
}

// wantErrors checks that standard error has all of the parts, or is empty if there are none.
func (r *runner) wantErrors(parts ...string) {
	r.t.Helper()
	got := r.errors()
	if len(parts) == 0 && got != "" {
		r.t.Errorf("stderr %q, want nothing", got)
	}
	for _, part := range parts {
		if !strings.Contains(got, part) {
			r.t.Errorf("stderr %q, want %q in it", got, part)
		}
	}
}

// wantGone waits until none of the processes runs any more.
func wantGone(t *testing.T, pids ...int) {
	t.Helper()
	redistest.Eventually(t, bound, func() bool {
		return !slices.ContainsFunc(pids, running)
	}, "the processes have ended")
}

// lockTTL is what is left of a lock on the server, not positive if it is nobody's.
func lockTTL(t *testing.T, client *redis.Client, name string) time.Duration {
	t.Helper()
	left, err := client.PTTL(t.Context(), "lock:{"+name+"}").Result()
	if err != nil {
		t.Fatal(err)
	}
	return left
}
