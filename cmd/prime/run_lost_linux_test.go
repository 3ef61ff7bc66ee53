package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/proxy"
	"github.com/getorprime/getorprime/internal/redistest"
)

// stubborn prints its process id and that of a process it starts, and minds TERM no more than to say so.
var stubborn = shell(`trap 'echo told' TERM; (trap '' TERM; while :; do sleep 0.01; done) & echo $$ $!; while :; do sleep 0.01; done`)

// TestRunLosesTheLock has the lock vanish under a command, and another's take its place.
func TestRunLosesTheLock(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	tests := []struct {
		name  string
		args  []string
		spoil func()
		says  []string
		want  string // what becomes of the lock
	}{
		{"removed", nil, func() { client.Del(t.Context(), "lock:{a}") }, []string{`prime: the lock "a" is lost: it was removed, or is another's`}, ""},
		{"taken", nil, func() { client.Set(t.Context(), "lock:{a}", "hother them", time.Hour) }, []string{"is another's"}, "hother them"},
		{"held long enough", []string{"--max-hold", "1500ms"}, func() { client.Del(t.Context(), "lock:{other}") }, []string{"--max-hold is over"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client.Del(t.Context(), "lock:{a}")
			args := with([]string{"--lock", "a", "--ttl", "4s", "--grace", "1s"}, tt.args...)
			minds := startRunner(t, server.URL(), nil, with(args, shell(`trap 'echo told; exit 0' TERM; echo ready; while :; do sleep 0.01; done`)...)...)
			minds.says("ready")
			tt.spoil()
			minds.wantStatus(74)
			minds.says("told")
			minds.wantErrors(tt.says...)

			client.Del(t.Context(), "lock:{a}")
			not := startRunner(t, server.URL(), nil, with(args, stubborn...)...)
			pids := not.pids(2)
			tt.spoil()
			not.wantStatus(74)
			not.says("told")
			wantGone(t, pids...)
			if got := client.Get(t.Context(), "lock:{a}").Val(); got != tt.want {
				t.Errorf("the lock's value is %q, want %q", got, tt.want)
			}
		})
	}
}

// TestRunLosesTheLockUnnoticed has a command end between the loss and the next renewal.
func TestRunLosesTheLockUnnoticed(t *testing.T) {
	server := redistest.Start(t)
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r := startRunner(t, server.URL(), in, with([]string{"--lock", "a", "--ttl", "1h"}, shell("echo ready; cat")...)...)
	r.says("ready")
	server.Client(t).Del(t.Context(), "lock:{a}")
	feed.Close()
	r.wantStatus(74)
	r.wantErrors("the lock was lost before the command ended")
}

// network returns a proxy before a server.
func network(t *testing.T, server *redistest.Server) *proxy.Proxy {
	t.Helper()
	p, err := proxy.New(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// TestRunEndsTheCommandBeforeTheLockLapses cuts prime off from Redis and sees whether the lock outlives the command and what it has started.
func TestRunEndsTheCommandBeforeTheLockLapses(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	for name, spoil := range map[string]func(*proxy.Proxy){"cut": (*proxy.Proxy).Cut, "silent": (*proxy.Proxy).BlackHole} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			network := network(t, server)
			r := startRunner(t, "redis://"+network.Addr(), nil, with([]string{"--lock", name, "--ttl", "4s", "--grace", "1s"}, stubborn...)...)
			pids := r.pids(2)
			spoil(network)
			// Asked in this order, a process that runs is one that ran when the lock had lapsed, however slow the asking is.
			redistest.Eventually(t, bound, func() bool { return client.Exists(t.Context(), "lock:{"+name+"}").Val() == 0 }, "the lock lapses")
			for _, pid := range pids {
				if running(pid) {
					t.Errorf("process %d runs on when the lock has lapsed", pid)
				}
			}
			r.wantStatus(74)
			r.says("told")
			r.wantErrors("could not be renewed: in", `the lock "`+name+`" is lost: it could not be renewed: ending the command`)
		})
	}
}

// TestRunOutlivesACut has Redis be away for less than the lock can bear.
func TestRunOutlivesACut(t *testing.T) {
	server := redistest.Start(t)
	client, network := server.Client(t), network(t, server)
	r := startRunner(t, "redis://"+network.Addr(), nil, with([]string{"--lock", "a", "--ttl", "6s"}, shell("echo ready; exec sleep 600")...)...)
	r.says("ready")
	network.Cut()
	redistest.Eventually(t, bound, func() bool { return lockTTL(t, client, "a") < 3800*time.Millisecond }, "the first renewal is overdue")
	network.Heal()
	redistest.Eventually(t, bound, func() bool { return lockTTL(t, client, "a") > 5*time.Second }, "the lock is renewed")
	r.signal(syscall.SIGTERM)
	r.wantStatus(143)
	if strings.Contains(r.errors(), "is lost") {
		t.Errorf("stderr %q", r.errors())
	}
}

// TestRunCannotRelease has Redis die before the command ends: the status is the command's.
func TestRunCannotRelease(t *testing.T) {
	for _, want := range []int{0, 5} {
		t.Run(strconv.Itoa(want), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			script := "kill -KILL " + strconv.Itoa(server.Pid()) + "; exit " + strconv.Itoa(want)
			r := startRunner(t, server.URL(), nil, with([]string{"--lock", "a", "--slot", "1"}, shell(script)...)...)
			r.wantStatus(want)
			r.wantErrors("prime: lock: Redis unavailable", "the lock lapses by itself")
			if strings.Contains(r.errors(), "slot") != (want == 0) {
				t.Errorf("stderr %q; a slot is noted for a success only", r.errors())
			}
		})
	}
}

// TestRunIsKilled has the command and what it has started end, and the lock lapse by its TTL.
func TestRunIsKilled(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	r := startRunner(t, server.URL(), nil, with([]string{"--lock", "a", "--ttl", "2s"}, shell(`trap '' TERM; sleep 600 & echo $$ $!; wait`)...)...)
	pids := r.pids(2)
	all := append(children(r.cmd.Process.Pid), pids...)
	if len(all) != 4 {
		t.Errorf("%d processes, want the command twice, a guard, and what the command has started", len(all))
	}
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wantGone(t, all...)
	startRunner(t, server.URL(), nil, "--lock", "a", "-w", "1m", "true").wantStatus(0)
	if got := lockTTL(t, client, "a"); got > 0 {
		t.Errorf("the lock is held for %v", got)
	}
}

// TestRunIsKilledWithItsGuard leaves the command to the kernel.
func TestRunIsKilledWithItsGuard(t *testing.T) {
	r := startRunner(t, redistest.Start(t).URL(), nil, with([]string{"--lock", "a"}, shell("echo $$; exec sleep 600")...)...)
	command := r.pids(1)[0]
	guards := slices.DeleteFunc(children(r.cmd.Process.Pid), func(pid int) bool { return pid == command })
	if len(guards) != 1 {
		t.Fatalf("guards %v, want one", guards)
	}
	for _, pid := range []int{guards[0], r.cmd.Process.Pid} {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	wantGone(t, command)
}

// TestRunIsStopped has prime wake up when the lock has long been another's: there is no time to lose then.
func TestRunIsStopped(t *testing.T) {
	server := redistest.Start(t)
	const grace = time.Second
	r := startRunner(t, server.URL(), nil, with([]string{"--lock", "a", "--ttl", "3s", "--grace", grace.String()}, stubborn...)...)
	pids := r.pids(2)
	r.signal(syscall.SIGSTOP)
	taken := hold(t, server.Client(t), "", "a", nil) // waits until the lock has lapsed
	began := time.Now()
	r.signal(syscall.SIGCONT)
	r.wantStatus(74)
	wantGone(t, pids...)
	if took := time.Since(began); took >= grace {
		t.Errorf("the command ended after %v, as if it had a grace", took)
	}
	if err := taken.Err(); err != nil {
		t.Errorf("the new holder: %v", err)
	}
}

// TestRunLeavesNoGuard has a run end as it should.
func TestRunLeavesNoGuard(t *testing.T) {
	r := startRunner(t, redistest.Start(t).URL(), nil, with([]string{"--lock", "a"}, shell("echo $$; sleep 0.05")...)...)
	r.pids(1)
	all := children(r.cmd.Process.Pid)
	r.wantStatus(0)
	wantGone(t, all...)
}
