package lock

import (
	"context"
	"errors"
	"time"
)

// RunOptions says how a task is run by one process at a time. The zero value of
// each field stands for its default; nil is all defaults.
type RunOptions struct {
	// TTL is how long the lock outlives the task's process. Default: the
	// locker's.
	TTL time.Duration
	// Wait is how long to wait while another process runs the task; negative:
	// until the context ends. Default: 0, skip it.
	Wait time.Duration
	// MinHold keeps others from running the task that long after it was begun
	// here, though it be over sooner: processes whose clocks differ by less than
	// that do not run the same job twice. Run does not wait for it. A task that
	// failed may be run again at once. Default: 0.
	MinHold time.Duration
	// MaxHold ends the context of a task that takes longer. Default: 0, never.
	MaxHold time.Duration
	// Grace is how much earlier than needed the task's context is cancelled when
	// the lock cannot be renewed: see [AcquireOptions]. Default: 0.
	Grace time.Duration
	// Slot names the occasion, as "2026-11": a task that succeeded in a slot is
	// not run in it again, by any process, for SlotTTL. Default: "", every time.
	Slot string
	// SlotTTL is how long it is remembered that a task ran in its slot. Default:
	// 24 h.
	SlotTTL time.Duration
	// Holders is how many processes may run the task at once. Default: 1.
	Holders int
	// Fenced gets the fence along with the lock, for a task that will ask for it:
	// see [AcquireOptions]. Default: false.
	Fenced bool
	// Info is what operators are told. Default: the locker's.
	Info string
}

func (o *RunOptions) withDefaults() RunOptions {
	var d RunOptions
	if o != nil {
		d = *o
	}
	if d.SlotTTL == 0 {
		d.SlotTTL = 24 * time.Hour
	}
	return d
}

func (o *RunOptions) validate() error {
	return errors.Join(
		problem("RunOptions.MinHold", o.MinHold, o.MinHold >= 0, "must not be negative"),
		problem("RunOptions.SlotTTL", o.SlotTTL, o.SlotTTL >= time.Second, "must be at least 1s"),
	)
}

func (o *RunOptions) acquire() *AcquireOptions {
	return &AcquireOptions{
		TTL: o.TTL, Wait: max(o.Wait, 0), MaxHold: o.MaxHold, Grace: o.Grace, Holders: o.Holders, Fenced: o.Fenced, Info: o.Info,
	}
}

// Run runs task under the lock of that name. The task's context is the lease's
// ([LeaseFrom] finds it): it ends with the cause [ErrLost] when the lock can no
// longer be kept, and the task should then stop, or send a fence along with what
// it writes.
//
// The error is the task's own; or that of [Locker.Acquire], among them
// [ErrNotAcquired] when another process runs the task; or [ErrAlreadyRan] for a
// Slot; and [ErrLost] beside the task's if the lease was lost meanwhile, or beside
// nothing if the task did not mind.
//
// A task that fails, panics or ends its goroutine releases the lock at once; the
// panic goes on.
func (l *Locker) Run(ctx context.Context, name string, task func(context.Context) error, opts *RunOptions) error {
	o := opts.withDefaults()
	h, err := l.prepare(name, o.acquire())
	if err := errors.Join(err, o.validate()); err != nil {
		return err
	}
	if o.Slot != "" {
		h.marker = h.key + markerSuffix + o.Slot
	}
	how := (*Locker).acquire
	if o.Wait == 0 {
		how = (*Locker).tryAcquire
	}
	if h, err = l.attempt(ctx, h, how); err != nil {
		return err
	}
	return h.run(task, &o)
}

// run runs the task and gives the lock back.
func (h *Lease) run(task func(context.Context) error, o *RunOptions) (err error) {
	left := remains{}
	defer func() {
		if lost := h.end(h.ctx, left); lost != nil {
			err = errors.Join(err, lost)
		}
	}()
	start := time.Now()
	if err := task(h.Context()); err != nil {
		return err
	}
	left = remains{rest: max(0, o.MinHold-time.Since(start)), marker: h.marker, keep: o.SlotTTL}
	return nil
}

type leaseKey struct{}

// LeaseFrom returns the lease of whose [Lease.Context] ctx is derived, or nil: the
// one that a task of [Locker.Run] or a request behind lockhttp's middleware runs
// under.
func LeaseFrom(ctx context.Context) *Lease {
	h, _ := ctx.Value(leaseKey{}).(*Lease)
	return h
}
