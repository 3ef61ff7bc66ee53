package main

import (
	"bytes"
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

// underWay is a bench in a process of its own whose callers wait for a load of a minute.
type underWay struct {
	cmd     *exec.Cmd
	stderr  *bytes.Buffer
	client  *redis.Client
	workers []int
}

func startBench(t *testing.T) *underWay {
	t.Helper()
	server := redistest.Start(t)
	u := &underWay{stderr: &bytes.Buffer{}, client: server.Client(t)}
	u.cmd = primeProcess("bench", "--scenario", "cold", "--redis", server.URL(), "--strategy", "classic", "--processes", "3", "--callers", "2", "--load", "1m")
	u.cmd.Stderr = u.stderr
	if err := u.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.cmd.Process.Kill() })
	redistest.Eventually(t, 20*time.Second, func() bool { return len(keys(t, u.client, "*lock:cold")) == 1 }, "a caller holds the lock of the cold key")
	if u.workers = children(u.cmd.Process.Pid); len(u.workers) != 3 {
		t.Fatalf("%d workers, want 3", len(u.workers))
	}
	return u
}

func (u *underWay) checkWorkersGone(t *testing.T) {
	t.Helper()
	redistest.Eventually(t, 10*time.Second, func() bool {
		return !slices.ContainsFunc(u.workers, running)
	}, "the workers have ended")
}

func TestInterruptCleansUp(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			u := startBench(t)
			if err := u.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			u.cmd.Wait()
			if got := u.cmd.ProcessState.ExitCode(); got != exitInterrupted {
				t.Errorf("exit status %d, want 130; stderr: %s", got, u.stderr)
			}
			u.checkWorkersGone(t)
			if left := keys(t, u.client, "*"); len(left) > 0 {
				t.Errorf("keys left: %q", left)
			}
		})
	}
}

func TestWorkersDieWithTheBench(t *testing.T) {
	u := startBench(t)
	if err := u.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	u.cmd.Wait()
	u.checkWorkersGone(t)
}

// children returns the processes whose parent is pid.
func children(pid int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var found []int
	for _, file := range stats {
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if _, parent := stat(child); parent == strconv.Itoa(pid) {
			found = append(found, child)
		}
	}
	return found
}

// running reports whether a process exists and is more than a zombie.
func running(pid int) bool {
	state, _ := stat(pid)
	return state != "" && state != "Z" && state != "X"
}

// stat returns the state and the parent of a process, "" if it is gone.
func stat(pid int) (state, parent string) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", ""
	}
	// pid (command) state ppid …, where the command may hold anything.
	fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
	return fields[0], fields[1]
}
