package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/getorprime/getorprime/internal/redistest"
)

// terminal is a terminal of the test's, with a prime run on it that leads a session.
type terminal struct {
	t     *testing.T
	keys  *os.File // what is typed
	lines chan string
	cmd   *exec.Cmd
}

// onNewTerminal starts sh with a script on a terminal; "$@" in it is prime run with args.
func onNewTerminal(t *testing.T, script string, args ...string) *terminal {
	t.Helper()
	keys, tty := openTerminal(t)
	defer tty.Close()
	term := &terminal{t: t, keys: keys, lines: make(chan string, 100)}
	term.cmd = exec.Command("sh", append([]string{"-c", script, "sh", os.Args[0], "run"}, args...)...)
	term.cmd.Stdin, term.cmd.Stdout, term.cmd.Stderr = tty, tty, tty
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := term.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(term.lines)
		for s := bufio.NewScanner(keys); s.Scan(); {
			term.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = term.cmd.Process.Kill()
		_ = term.cmd.Wait()
		keys.Close()
	})
	return term
}

// openTerminal returns both ends of a pseudo-terminal.
func openTerminal(t *testing.T) (keys, tty *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(keys.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return keys, tty
}

// says waits for a line that holds text.
func (term *terminal) says(text string) {
	term.t.Helper()
	late := time.After(bound)
	for {
		select {
		case line, open := <-term.lines:
			if !open {
				term.t.Fatalf("the terminal has no line with %q", text)
			}
			if strings.Contains(line, text) {
				return
			}
		case <-late:
			term.t.Fatalf("the terminal has no line with %q within %v", text, bound)
		}
	}
}

// types types.
func (term *terminal) types(text string) {
	term.t.Helper()
	if _, err := term.keys.WriteString(text); err != nil {
		term.t.Fatal(err)
	}
}

// TestRunOnATerminal has the command read from the terminal, be deaf to Ctrl-Z and end by Ctrl-C, and whoever comes after it read again.
func TestRunOnATerminal(t *testing.T) {
	url := redistest.Start(t).URL()
	script := `"$@"; echo status $?; read line; echo then $line`
	term := onNewTerminal(t, script, with([]string{"--redis", url, "--lock", "a"}, shell(`read line; echo heard $line; while :; do sleep 0.01; done`)...)...)
	term.types("one\n")
	term.says("heard one")
	term.types("\x1a\x03")
	term.says("status 130")
	term.types("two\n")
	term.says("then two")
}

// TestRunInAPipeline leaves the terminal to all of the pipeline: reading from it is an error, and Ctrl-C is for the command too.
func TestRunInAPipeline(t *testing.T) {
	url := redistest.Start(t).URL()
	term := onNewTerminal(t, `(trap : INT; "$@"; echo status $?) | (trap '' INT; cat)`, with([]string{"--redis", url, "--lock", "a"},
		shell(`read line || echo cannot read; while :; do sleep 0.01; done`)...)...)
	term.says("cannot read")
	term.types("\x03")
	term.says("status 130")
}

// TestRunTellsATerminal has a person learn why nothing was run, though the status is 0.
func TestRunTellsATerminal(t *testing.T) {
	args := []string{"--redis", redistest.Start(t).URL(), "--lock", "a", "--slot", "1", "true"}
	term := onNewTerminal(t, `"$@"; "$@"; echo status $?`, args...)
	term.says(`"a" ran in slot "1" before`)
	term.says("status 0")
}
