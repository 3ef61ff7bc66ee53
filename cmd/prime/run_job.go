package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/getorprime/getorprime/lock"
)

// job is the command of a prime run, and what becomes of it.
type job struct {
	cmd    *exec.Cmd
	relay  *relay
	stderr io.Writer
	ttl    time.Duration
	grace  time.Duration // between TERM and KILL
	margin time.Duration // between KILL and the first moment at which the lock may lapse
	slot   string

	guard   *guard
	restore func()        // undoes what was done to the terminal
	ended   chan struct{} // closed when the command has been waited for
	told    bool          // it is known on standard error that the lock is lost
}

// run is the task that is run under the lock. Its error is nil if the command succeeds, and else an *exitError with its status.
func (j *job) run(ctx context.Context) error {
	// The kernel's parent-death signal is sent when the thread ends that started the command.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lease := lock.LeaseFrom(ctx)
	fence, err := lease.Fence(ctx)
	if err != nil {
		return err
	}
	j.cmd.Env = append(os.Environ(), "PRIME_LOCK="+lease.Name(), "PRIME_TOKEN="+lease.Token(), fmt.Sprintf("PRIME_FENCE=%d", fence))
	if err := j.relay.attach(j.start); err != nil {
		return err
	}
	j.attend(ctx, lease)
	j.relay.detach()
	j.guard.stop()
	j.restore()
	if status := j.status(); status != exitOK {
		return &exitError{status: status}
	}
	return nil
}

// start starts the command in a process group of its own and returns how to signal that.
func (j *job) start() (send func(os.Signal), err error) {
	j.restore = isolate(j.cmd)
	if err := j.cmd.Start(); err != nil {
		j.restore()
		return nil, cannotStart(err)
	}
	if j.guard, err = startGuard(j.cmd.Process.Pid); err != nil {
		j.note("nothing will end what the command has started if prime is killed: %v", err)
	}
	go func() {
		defer close(j.ended)
		_ = j.cmd.Wait() // ProcessState has more to say
	}()
	return func(sig os.Signal) { signalGroup(j.cmd.Process, sig) }, nil
}

// attend returns when the command has ended, which it sees to when the lease does.
func (j *job) attend(ctx context.Context, lease *lock.Lease) {
	look := time.NewTicker(j.ttl / 10)
	defer look.Stop()
	warned := false
	for {
		select {
		case <-j.ended:
			return
		case <-ctx.Done():
			j.note("the lock %q is lost: %s: ending the command", lease.Name(), j.why(ctx, lease))
			j.told = true
			j.end(lease.Left())
			return
		case <-look.C:
			late := lease.Left() < j.ttl/2
			if late && !warned {
				j.note("the lock %q could not be renewed: in %v the command will be told to end", lease.Name(), (lease.Left() - j.grace - j.margin).Round(time.Millisecond))
			}
			warned = late
		}
	}
}

// why says how the lock was lost.
func (j *job) why(ctx context.Context, lease *lock.Lease) string {
	switch {
	case context.Cause(ctx) != lock.ErrLost:
		return "--max-hold is over"
	case lease.Left() > j.grace+j.margin:
		return "it was removed, or is another's"
	}
	return "it could not be renewed"
}

// end tells the command's process group to end, and ends it after the grace, or earlier if the lock could lapse before.
func (j *job) end(left time.Duration) {
	deadline := time.Now().Add(min(j.grace, left-j.margin))
	signalGroup(j.cmd.Process, syscall.SIGTERM)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for groupLives(j.cmd.Process) {
		if !time.Now().Before(deadline) {
			killGroup(j.cmd.Process.Pid)
			break
		}
		<-look.C
	}
	<-j.ended
}

// started reports whether the command was started, and thus has ended.
func (j *job) started() bool { return j.cmd.ProcessState != nil }

// status is what a shell would make of the command's end.
func (j *job) status() int {
	if ws, ok := j.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return runSignal + int(ws.Signal())
	}
	return j.cmd.ProcessState.ExitCode()
}

// note writes a line to standard error.
func (j *job) note(format string, args ...any) { fmt.Fprintf(j.stderr, "prime: "+format+"\n", args...) }

// lost is the end of a prime run whose lock was lost.
func (j *job) lost() error {
	if j.told {
		return &exitError{status: runLost}
	}
	return &exitError{runLost, errors.New("the lock was lost before the command ended")}
}

// declined is the end of a prime run that had no reason to start the command. A success is nothing to write home about: cron would.
func (j *job) declined(status int, why error) error {
	if status == exitOK && !onTerminal(j.stderr) {
		return nil
	}
	return &exitError{status, why}
}

// unreleased warns if the lock could not be given back after the command has ended. The command's exit status is not changed by it.
func (j *job) unreleased(err error) {
	if both, ok := err.(interface{ Unwrap() []error }); ok && j.status() != exitOK {
		err = both.Unwrap()[1] // beside the command's own
	}
	if !errors.Is(err, lock.ErrUnavailable) {
		return
	}
	j.note("%v: the lock lapses by itself", err)
	if j.slot != "" && j.status() == exitOK {
		j.note("it is not known whether slot %q was noted", j.slot)
	}
}
