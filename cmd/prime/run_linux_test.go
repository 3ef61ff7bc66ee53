package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// asleep is a command that is busy until it is ended.
var asleep = []string{"--", "sleep", "600"}

// shell is a command for prime run: a script that leaves no process behind where it is killed alone.
func shell(script string) []string { return []string{"--", "sh", "-c", script} }

func with(args []string, more ...string) []string { return append(args[:len(args):len(args)], more...) }

func TestRunExitStatus(t *testing.T) {
	server := redistest.Start(t)
	file := write(t, "no-program", nil)
	tests := []struct {
		name string
		args []string
		want int
	}{
		{"success", []string{"true"}, 0},
		{"the command's own", shell("exit 7"), 7},
		{"one that prime uses too", shell("exit 75"), 75},
		{"flags of the command's", []string{"sh", "-c", "exit 3", "--lock", "-w"}, 3},
		{"dashes of the command's", []string{"--", "sh", "-c", `test "$1" = -- && exit 4`, "x", "--"}, 4},
		{"killed", shell("kill -KILL $$"), 137},
		{"terminated", shell("kill -TERM $$"), 143},
		{"not found", []string{"no-such-command"}, 127},
		{"no such file", []string{"./no/such"}, 127},
		{"not executable", []string{file}, 126},
		{"a directory", []string{filepath.Dir(file)}, 126},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := startRunner(t, server.URL(), nil, with([]string{"--lock", "a"}, tt.args...)...)
			r.wantStatus(tt.want)
			if tt.want != 126 && tt.want != 127 {
				r.wantErrors()
			}
		})
	}
	if keys := server.Client(t).Keys(t.Context(), "lock:{a}").Val(); len(keys) > 0 {
		t.Errorf("keys %q are left", keys)
	}
}

func TestRunBusy(t *testing.T) {
	server := redistest.Start(t)
	hold(t, server.Client(t), "", "a", &lock.AcquireOptions{TTL: time.Hour, Info: "db3/4711"})
	tests := []struct {
		name string
		args []string
		want int
		says []string
	}{
		{"by default", nil, 75, []string{`prime: others hold "a": db3/4711, held for`}},
		{"no wait", []string{"--no-wait"}, 75, []string{"db3/4711"}},
		{"a short wait", []string{"-w", "50ms"}, 75, []string{"db3/4711"}},
		{"another status", []string{"-E", "9"}, 9, []string{"db3/4711"}},
		{"what cron wants", []string{"-E", "0"}, 0, nil},
		{"another number of holders", []string{"--holders", "2"}, 64, []string{"another number of Holders"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := startRunner(t, server.URL(), nil, with(with([]string{"--lock", "a"}, tt.args...), "echo", "ran")...)
			r.wantStatus(tt.want)
			r.wantErrors(tt.says...)
			if got := r.out(); got != "" {
				t.Errorf("the command was run: %q", got)
			}
		})
	}
}

func TestRunWithoutRedis(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(*redistest.Server)
	}{
		{"dead", (*redistest.Server).Kill},
		{"silent", (*redistest.Server).Pause},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			tt.spoil(server)
			r := startRunner(t, server.URL(), nil, "--lock", "a", "echo", "ran")
			r.wantStatus(69)
			r.wantErrors("Redis unavailable")
			if got := r.out(); got != "" {
				t.Errorf("the command was run: %q", got)
			}
		})
	}
	t.Run("no password", func(t *testing.T) {
		r := startRunner(t, redistest.Start(t, "--requirepass", "x").URL(), nil, "--lock", "a", "true")
		r.wantStatus(69)
		r.wantErrors("unauthenticated")
	})
}

// TestRunGivesItsEnvironment compares what the command is told with what is in Redis.
func TestRunGivesItsEnvironment(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r := startRunner(t, server.URL(), in, with([]string{"--lock", "a b", "--namespace", "shop:"}, shell(`echo "$PRIME_LOCK,$PRIME_FENCE,$PRIME_TOKEN"; echo ready; cat`)...)...)
	r.says("ready")
	line, _, _ := strings.Cut(r.out(), "\n")
	told := strings.Split(line, ",")
	fence, value := client.Get(t.Context(), "shop:lock:{a b}:f").Val(), client.Get(t.Context(), "shop:lock:{a b}").Val()
	if len(told) != 3 || told[0] != "a b" || told[1] != fence || fence == "" || !strings.HasPrefix(value, "h"+told[2]+" ") {
		t.Errorf("told %q; the fence is %q, the lock's value %q", told, fence, value)
	}
	if !strings.HasSuffix(value, "/"+strconv.Itoa(r.cmd.Process.Pid)+" sh") {
		t.Errorf("the lock's value %q does not end in the process and the command", value)
	}
	if _, err := feed.WriteString("fed\n"); err != nil {
		t.Fatal(err)
	}
	feed.Close()
	r.wantStatus(0)
	r.says("fed")
}

// TestRunOneAtATime has processes want a lock at once: those that wait run one after another, of those that do not one runs.
func TestRunOneAtATime(t *testing.T) {
	server := redistest.Start(t)
	dir := t.TempDir()
	// mkdir succeeds for one of two who try at once.
	alone := shell(`mkdir ` + dir + `/inside || exit 99; sleep 0.05; rmdir ` + dir + `/inside`)
	var all []*runner
	for range 4 {
		all = append(all, startRunner(t, server.URL(), nil, with([]string{"--lock", "a", "-w", "1m"}, alone...)...))
	}
	for _, r := range all {
		r.wantStatus(0)
		r.wantErrors()
	}

	first := startRunner(t, server.URL(), nil, with([]string{"--lock", "b"}, shell("echo in; exec sleep 600")...)...)
	first.says("in")
	for range 3 {
		startRunner(t, server.URL(), nil, with([]string{"--lock", "b"}, asleep...)...).wantStatus(75)
	}
	first.signal(syscall.SIGTERM)
	first.wantStatus(143)
	startRunner(t, server.URL(), nil, "--lock", "b", "true").wantStatus(0)
}

func TestRunSlot(t *testing.T) {
	server := redistest.Start(t)
	run := func(slot string, more ...string) *runner {
		t.Helper()
		return startRunner(t, server.URL(), nil, with([]string{"--lock", "a", "--slot", slot}, more...)...)
	}
	run("1", "sh", "-c", "exit 5").wantStatus(5) // frees the slot
	for i, want := range []string{"ran\n", "", ""} {
		r := run("1", "echo", "ran")
		r.wantStatus(0)
		r.wantErrors()
		if got := r.out(); got != want {
			t.Errorf("time %d: stdout %q, want %q", i, got, want)
		}
	}
	r := run("1", "--ran-status", "9", "echo", "ran")
	r.wantStatus(9)
	r.wantErrors(`prime: "a" ran in slot "1" before`)
	r = run("2", "--slot-ttl", "1h", "echo", "ran")
	r.wantStatus(0)
	r.says("ran")
	if ttl := server.Client(t).PTTL(t.Context(), "lock:{a}:s:2").Val(); ttl < 50*time.Minute || ttl > time.Hour {
		t.Errorf("slot 2 is remembered for %v, want an hour", ttl)
	}
}

func TestRunMinHold(t *testing.T) {
	server := redistest.Start(t)
	long := []string{"--lock", "a", "--min-hold", "1h"}
	startRunner(t, server.URL(), nil, with(long, "false")...).wantStatus(1) // frees the lock
	startRunner(t, server.URL(), nil, with(long, "true")...).wantStatus(0)
	r := startRunner(t, server.URL(), nil, with(long, "true")...)
	r.wantStatus(75)
	r.wantErrors("resting")
	startRunner(t, server.URL(), nil, "--lock", "b", "--min-hold", "300ms", "true").wantStatus(0)
	startRunner(t, server.URL(), nil, "--lock", "b", "-w", "1m", "true").wantStatus(0)
}

func TestRunHolders(t *testing.T) {
	server := redistest.Start(t)
	two := []string{"--lock", "a", "--holders", "2"}
	hold(t, server.Client(t), "", "a", &lock.AcquireOptions{Holders: 2})
	second := startRunner(t, server.URL(), nil, with(two, shell("echo in; exec sleep 600")...)...)
	second.says("in")
	third := startRunner(t, server.URL(), nil, with(two, asleep...)...)
	third.wantStatus(75)
	third.wantErrors("and 1 more")
	second.signal(syscall.SIGTERM)
	second.wantStatus(143)
	startRunner(t, server.URL(), nil, with(two, "true")...).wantStatus(0)
}

// TestRunSignals has prime pass signals on to a command that minds them, and to one that does not.
func TestRunSignals(t *testing.T) {
	server := redistest.Start(t)
	signals := map[string]syscall.Signal{
		"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	}
	for name, sig := range signals {
		t.Run(name, func(t *testing.T) {
			minds := startRunner(t, server.URL(), nil, with([]string{"--lock", name},
				shell(`trap 'echo got `+name+`; exit 9' `+name+`; echo ready; while :; do sleep 0.01; done`)...)...)
			minds.says("ready")
			minds.signal(sig)
			minds.wantStatus(9)
			minds.says("got " + name)

			not := startRunner(t, server.URL(), nil, with([]string{"--lock", name}, shell("echo $$; sleep 600; true")...)...)
			pid := not.pids(1)[0]
			var more []int
			redistest.Eventually(t, bound, func() bool { more = children(pid); return len(more) == 1 }, "the command has started another")
			not.signal(sig)
			not.wantStatus(128 + int(sig))
			not.wantErrors()
			wantGone(t, pid, more[0])
		})
	}
}

// TestRunInterruptedWhileItWaits leaves no place in the queue behind.
func TestRunInterruptedWhileItWaits(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	h := hold(t, client, "", "a", nil)
	r := startRunner(t, server.URL(), nil, "--lock", "a", "-w", "1h", "echo", "ran")
	redistest.Eventually(t, bound, func() bool { return client.ZCard(t.Context(), "lock:{a}:w").Val() == 1 }, "prime waits")
	r.signal(syscall.SIGUSR1) // is for the command, which there is not
	r.signal(syscall.SIGTERM)
	r.wantStatus(143)
	r.wantErrors("prime: interrupted")
	if n := client.ZCard(t.Context(), "lock:{a}:w").Val(); n != 0 || r.out() != "" {
		t.Errorf("%d wait, stdout %q; want none, and nothing", n, r.out())
	}
	if err := h.Release(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestRunIgnoresWhatItFindsIgnored is nohup: neither prime nor the command minds HUP.
func TestRunIgnoresWhatItFindsIgnored(t *testing.T) {
	for _, name := range []string{"HUP", "INT"} {
		t.Run(name, func(t *testing.T) {
			script := "trap '' " + name + `; exec "$0" "$@"`
			args := with([]string{"-c", script, os.Args[0], "run", "--redis", redistest.Start(t).URL(), "--lock", "a"},
				shell("kill -"+name+" $PPID $$; echo alive; exec sleep 600")...)
			r := newRunner(t, exec.Command("sh", args...))
			r.says("alive")
			r.signal(syscall.SIGTERM)
			r.wantStatus(143)
		})
	}
}
