package bench_test

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/bench"
)

// TestKilledWorkerIsReported kills one worker while the others wait for a load.
func TestKilledWorkerIsReported(t *testing.T) {
	o := options()
	o.Strategies, o.Load = []string{"singleflight"}, time.Minute
	var killing sync.WaitGroup
	o.Progress = func(p bench.Progress) {
		if strings.HasPrefix(p.Stage, "running") {
			killing.Go(func() { killOneChild(t) })
		}
	}
	_, err := bench.Run(t.Context(), o)
	killing.Wait()
	if err == nil || !strings.Contains(err.Error(), "worker") || !strings.Contains(err.Error(), "ended") {
		t.Errorf("Run = %v, want an error that names the worker that ended", err)
	}
	if left := children(t); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
}

func killOneChild(t *testing.T) {
	pids := children(t)
	if len(pids) == 0 {
		t.Error("there is no worker to kill")
		return
	}
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// children returns the processes that this one started and has not waited for. Tests that start some do not run in parallel.
func children(t *testing.T) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Error(err)
	}
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && parent(pid) == os.Getpid() {
			found = append(found, pid)
		}
	}
	return found
}

// parent returns the parent of a process, 0 if it has ended.
func parent(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// pid (command) state ppid …, where the command may hold anything.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	ppid, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return ppid
}
