package lock

import (
	"errors"
	"fmt"

	"github.com/getorprime/getorprime/internal/lease"
)

// The states a caller may branch on. Each is found with errors.Is.
var (
	// ErrNotAcquired says that others hold the lock. If the caller's context
	// ended the waiting, the error is its ctx.Err() too.
	ErrNotAcquired = errors.New("lock: not acquired")
	// ErrLost says that a lease is no longer the holder's: it was removed, or
	// could not be renewed in time. It is the cause of [Lease.Context].
	ErrLost = lease.ErrLost
	// ErrReleased says that a lease was released.
	ErrReleased = errors.New("lock: released")
	// ErrUnavailable says that Redis did not answer in time, refused, or failed.
	// The lock is then not held; locks never fail open.
	ErrUnavailable = errors.New("lock: Redis unavailable")
	// ErrAlreadyRan says that the task ran in this slot before: see [RunOptions].
	ErrAlreadyRan = errors.New("lock: already ran in this slot")
	// ErrClosed says that the [Locker] was closed.
	ErrClosed = errors.New("lock: closed")
)

// unavailable explains an error of Redis.
func unavailable(doing, name string, err error) error {
	return fmt.Errorf("%w: %s %q: %w", ErrUnavailable, doing, name, err)
}
