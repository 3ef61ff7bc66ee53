package loader

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound is returned by a loader, and then by the cache, when there is no
	// record with the id. It may be wrapped.
	ErrNotFound = errors.New("loader: not found")

	// ErrNotModified is returned by a loader that got a value from [Previous] and found
	// it unchanged: the cache keeps that value and counts its age from now. Without a
	// previous value it is an error like any other.
	ErrNotModified = errors.New("loader: not modified")

	// ErrGoexit is the Value of a [*PanicError] when the loader ended its goroutine with
	// [runtime.Goexit], as the FailNow of a test does.
	ErrGoexit = errors.New("loader: runtime.Goexit called")
)

// PanicError reports a loader that panicked in this process.
type PanicError struct {
	Value any    // what was given to panic, or [ErrGoexit]
	Stack []byte // the goroutine's stack, as [runtime/debug.Stack] writes it
}

// Error returns the value in one line or as many as it has; the stack is left out.
func (e *PanicError) Error() string {
	return fmt.Sprintf("loader: panic: %v", e.Value)
}

// Unwrap returns the value if it is an error, else nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// RemoteError reports a load that failed in another process. The error itself cannot
// travel, so [errors.Is] finds none of its causes.
type RemoteError struct {
	Message string // text of the error, cut to at most 512 bytes
	Panic   bool   // whether the loader panicked
}

// Error returns the message and says that it comes from elsewhere.
func (e *RemoteError) Error() string {
	if e.Panic {
		return "loader: panic in another process: " + e.Message
	}
	return "loader: failed in another process: " + e.Message
}
