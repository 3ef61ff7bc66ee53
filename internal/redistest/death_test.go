//go:build linux

package redistest_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/redistest"
)

const childEnv = "REDISTEST_CHILD"

// TestServerDiesWithTheTestBinary kills a test binary that runs a server.
func TestServerDiesWithTheTestBinary(t *testing.T) {
	if os.Getenv(childEnv) != "" {
		fmt.Printf("pid=%d\n", redistest.Start(t).Pid())
		select {}
	}
	child := exec.Command(os.Args[0], "-test.run=^TestServerDiesWithTheTestBinary$")
	child.Env = append(os.Environ(), childEnv+"=1")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	pid := serverPid(t, bufio.NewScanner(out))
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	redistest.Eventually(t, 5*time.Second, func() bool { return gone(pid) }, "end of the orphaned server")
}

// gone reports whether pid has ended; an orphan nobody has waited for yet
// counts as ended.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "Z") || strings.HasPrefix(after, "X")
}

func serverPid(t *testing.T, lines *bufio.Scanner) int {
	t.Helper()
	for lines.Scan() {
		if v, ok := strings.CutPrefix(lines.Text(), "pid="); ok {
			pid, err := strconv.Atoi(v)
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("the child printed no process id")
	return 0
}
