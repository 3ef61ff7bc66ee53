package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/getorprime/getorprime/lock"
)

// Exit statuses of prime run: those of sysexits.h where there is one.
const (
	runUsage       = 64
	runUnavailable = 69
	runLost        = 74
	runCannot      = 126
	runNotFound    = 127
	runSignal      = 128 // and the signal's number
)

const (
	// runBudget is how long a prime run asks Redis for the lock before it gives up, and how long it tries to give it back.
	runBudget = 2 * time.Second
	// maxGrace is the default of --grace where the TTL leaves that much.
	maxGrace = 10 * time.Second
)

// runCommand is prime run.
type runCommand struct {
	Lock       string        `required:"" placeholder:"NAME" help:"Name of the lock."`
	NoWait     bool          `short:"n" xor:"wait" help:"Do not wait if others hold the lock (default)."`
	Wait       time.Duration `short:"w" xor:"wait" placeholder:"DURATION" help:"How long to wait while others hold the lock, as 90s or 1h."`
	BusyStatus int           `short:"E" default:"75" placeholder:"N" help:"Exit status if others hold the lock, 0 to 255. Default: ${default}."`
	Holders    int           `default:"1" placeholder:"N" help:"How many may hold the lock at once. All who use the lock have to say the same. Default: ${default}."`
	TTL        time.Duration `name:"ttl" default:"30s" help:"How long the lock outlives a prime that dies, 1s to 24h."`
	Grace      time.Duration `placeholder:"DURATION" help:"How long the command has to end after TERM, if the lock is lost, before it gets KILL; up to a third of the TTL. Default: that, at most 10s."`
	MinHold    time.Duration `placeholder:"DURATION" help:"Keep the lock that long after the start of a command that succeeds, though it be over sooner; prime does not wait for it."`
	MaxHold    time.Duration `placeholder:"DURATION" help:"End the command after that time, as if the lock were lost."`
	Slot       string        `placeholder:"TEXT" help:"The occasion, as 2026-11-30: a command that succeeded in a slot is not run in it again."`
	SlotTTL    time.Duration `name:"slot-ttl" default:"24h" help:"How long to remember that a command ran in its slot, from 1s."`
	RanStatus  int           `default:"0" placeholder:"N" help:"Exit status if a command ran in the slot before, 0 to 255. Default: ${default}."`
	Info       string        `placeholder:"TEXT" help:"What prime locks shows of the holder. Default: host, process and the command's name."`
	redisFlags
	Command []string `arg:"" passthrough:"partial" placeholder:"command" help:"Program to run, and its arguments."`
}

// Help is the long help of prime run.
func (*runCommand) Help() string {
	return `Runs a command while it holds a lock, so that of all who name the same lock in the same Redis one runs at a time. The command is started
without a shell once the lock is held; the lock is renewed while the command runs and released when it has ended. Standard input, output and
error are the command's. Flags come before the command, with or without -- between.

Exit status:

    N      the command's own, 128+S if signal S ended it
    64     the command line is wrong
    69     Redis cannot be asked; the command was not started
    74     the lock was lost before the command ended, or --max-hold is over
    75     others hold the lock; the command was not started; see -E
    126    the command cannot be executed
    127    the command was not found
    128+S  signal S ended the waiting; the command was not started

A command that succeeded in its --slot before is not started again, and the status is 0: the work is done, which is what a cron job or a && wants to
know. Who has to tell the cases apart sets --ran-status. Where the status is to be 0, prime says nothing about it unless standard error is a
terminal, so cron has nothing to mail. With -E 0 the same holds for a lock that others hold. A command that fails frees lock and slot at once.

Signals: the command has a process group of its own. TERM, INT, HUP, QUIT, USR1 and USR2 are passed on to all of the group. If standard input and
output are a terminal, the command gets it. Ctrl-Z does nothing: a command that is stopped would keep the lock from everybody.

A lost lock: if the lock was removed, or could not be renewed for about half of its TTL, the group gets TERM, and KILL what is left of it after
--grace. If Redis or the way to it fails, both come before the lock can lapse, so that nobody else can get it while the command runs. That needs a
prime that is scheduled: if the machine or prime is stopped for longer than the TTL, the command gets KILL when they go on. Where that would be a
disaster, let the command send its fence along with what it writes.

A prime that is killed: the lock lapses within its TTL. Until then a helper process, prime run-guard, sends KILL to the group; on Linux the kernel
itself ends the command, but not what the command has started, if the helper was killed too. What has left the group, as a daemon does,
is beyond the reach of all this, and the lock is not held for it. On Windows there are no groups: an end is that of the command alone and
comes without a warning, and nothing ends it if prime is killed.

Environment of the command:

    PRIME_LOCK   the lock's name
    PRIME_FENCE  a number greater than that of every earlier holder
    PRIME_TOKEN  32 digits that no other run has; the value of the key
                 lock:{NAME} begins with h and the token while it is held

` + redisHelp
}

// Run runs the command under the lock. The exit status it returns is the command's own unless prime has a say.
func (c *runCommand) Run(ctx context.Context, s *streams) error {
	client, err := c.open()
	if err == nil {
		defer client.Close()
	}
	if err := errors.Join(c.validate(), err); err != nil {
		return &exitError{runUsage, err}
	}
	locker, err := lock.New(client, &lock.Options{Namespace: c.Namespace, RedisBudget: runBudget})
	if err != nil {
		return &exitError{runUsage, err}
	}
	defer closeLocker(locker)
	j := c.job(s)
	if j.cmd.Err != nil {
		return cannotStart(j.cmd.Err)
	}
	return c.run(ctx, locker, j)
}

// run gets the lock and runs the job. When it has begun to listen for signals, they end the waiting or are the command's: ctx no longer counts.
func (c *runCommand) run(ctx context.Context, locker *lock.Locker, j *job) error {
	waiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	j.relay = newRelay(cancel)
	defer j.relay.close()
	if err := ctx.Err(); err != nil {
		return err
	}
	err := locker.Run(waiting, c.Lock, j.run, c.options())
	var exit *exitError
	switch sig := j.relay.interrupted(); {
	case sig != 0:
		return &exitError{runSignal + sig, errors.New("interrupted")}
	case errors.Is(err, lock.ErrLost):
		return j.lost()
	case j.started():
		j.unreleased(err)
		return &exitError{status: j.status()}
	case errors.As(err, &exit): // it could not be started
		return exit
	case errors.Is(err, lock.ErrAlreadyRan):
		return j.declined(c.RanStatus, fmt.Errorf("%q ran in slot %q before", c.Lock, c.Slot))
	case errors.Is(err, lock.ErrNotAcquired):
		return j.declined(c.BusyStatus, heldBy(ctx, locker, c.Lock))
	case errors.Is(err, lock.ErrUnavailable):
		return &exitError{runUnavailable, err}
	}
	return &exitError{runUsage, err}
}

func closeLocker(locker *lock.Locker) {
	ctx, cancel := context.WithTimeout(context.Background(), runBudget)
	defer cancel()
	_ = locker.Close(ctx) // nothing is held any more
}

// validate reports all problems at once, each with its flag.
func (c *runCommand) validate() error {
	c.Grace = cmp.Or(c.Grace, min(c.TTL/3, maxGrace))
	if len(c.Command) > 0 && c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	return errors.Join(
		must(c.Lock != "" && !strings.HasPrefix(c.Lock, "}"), "--lock: must be neither empty nor begin with }, as %q", c.Lock),
		must(c.Wait >= 0, "--wait: must not be negative, as %v", c.Wait),
		must(c.BusyStatus >= 0 && c.BusyStatus <= 255, "--busy-status: must be 0 to 255, not %d", c.BusyStatus),
		must(c.RanStatus >= 0 && c.RanStatus <= 255, "--ran-status: must be 0 to 255, not %d", c.RanStatus),
		must(c.Holders >= 1 && c.Holders <= 10_000, "--holders: must be 1 to 10000, not %d", c.Holders),
		must(c.TTL >= time.Second && c.TTL <= 24*time.Hour, "--ttl: must be 1s to 24h, not %v", c.TTL),
		must(c.Grace > 0 && c.Grace <= c.TTL/3, "--grace: must be positive, and at most a third of the TTL, not %v", c.Grace),
		must(c.MinHold >= 0, "--min-hold: must not be negative, as %v", c.MinHold),
		must(c.MaxHold >= 0, "--max-hold: must not be negative, as %v", c.MaxHold),
		must(c.SlotTTL >= time.Second, "--slot-ttl: must be at least 1s, not %v", c.SlotTTL),
		must(len(c.Info) <= 1024, "--info: must be at most 1024 bytes long, not %d", len(c.Info)),
		must(len(c.Command) > 0 && c.Command[0] != "", "command: there is none to run"),
	)
}

func must(ok bool, problem string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(problem, args...)
}

// margin is how long before the lock can lapse KILL is sent: nobody is to have the lock while a KILL is on its way on a busy machine.
func (c *runCommand) margin() time.Duration { return c.TTL / 20 }

func (c *runCommand) options() *lock.RunOptions {
	return &lock.RunOptions{
		TTL: c.TTL, Wait: c.Wait, MinHold: c.MinHold, MaxHold: c.MaxHold, Grace: c.Grace + c.margin(),
		Slot: c.Slot, SlotTTL: c.SlotTTL, Holders: c.Holders, Fenced: true, Info: c.info(),
	}
}

// info is what operators are told. Arguments are left out, for they may be secret.
func (c *runCommand) info() string {
	host, _ := os.Hostname()
	return cmp.Or(c.Info, fmt.Sprintf("%s/%d %s", host, os.Getpid(), filepath.Base(c.Command[0])))
}

func (c *runCommand) job(s *streams) *job {
	j := &job{ttl: c.TTL, grace: c.Grace, margin: c.margin(), slot: c.Slot, stderr: s.err, ended: make(chan struct{})}
	j.cmd = exec.Command(c.Command[0], c.Command[1:]...)
	j.cmd.Stdin, j.cmd.Stdout, j.cmd.Stderr = os.Stdin, s.out, s.err
	return j
}

// cannotStart is the end of a prime run whose command cannot be started, with the status that a shell gives it.
func cannotStart(err error) error {
	status := runCannot
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		status = runNotFound
	}
	return &exitError{status, err}
}

// onTerminal reports whether somebody watches what is written to w.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
