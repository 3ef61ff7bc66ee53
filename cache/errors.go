package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// The states a caller may want to branch on. Errors of this package wrap one of
// them, or are one of its error types, or come from the loader.
var (
	// ErrNoLoader: no loader is registered for the key.
	ErrNoLoader = errors.New("cache: no loader registered")
	// ErrMiss: there is no value now, and none was loaded.
	ErrMiss = errors.New("cache: miss")
	// ErrOverloaded: too many loads were running for too long.
	ErrOverloaded = errors.New("cache: too many concurrent loads")
	// ErrUnavailable: Redis could not be asked, or not in time.
	ErrUnavailable = errors.New("cache: Redis unavailable")
	// ErrReentrant: a loader asked for the key it is loading.
	ErrReentrant = errors.New("cache: loader asked for its own key")
	// ErrClosed: the cache was closed.
	ErrClosed = errors.New("cache: closed")
	// ErrWaitTimeout: another process did not finish its load in time.
	ErrWaitTimeout = errors.New("cache: timed out waiting for another process's load")
	// ErrLoadTimeout: the loader did not return within Policy.LoadTimeout. It
	// wraps [context.DeadlineExceeded].
	ErrLoadTimeout = fmt.Errorf("cache: load timed out: %w", context.DeadlineExceeded)
)

// KeyError says that a key cannot be used with the keyspace it was given to.
type KeyError struct {
	Key    string // as Redis would see it, but for the namespace
	Prefix string // of the keyspace
	Reason string
}

// Error names the keyspace's prefix, the key and the reason.
func (e *KeyError) Error() string {
	return fmt.Sprintf("cache: keyspace %q: key %q %s", e.Prefix, e.Key, e.Reason)
}

// TypeError says that a value was asked for as a type it does not have.
type TypeError struct {
	Prefix string
	Have   string // the registered type
	Want   string // the type asked for
}

// Error names the keyspace's prefix and both types.
func (e *TypeError) Error() string {
	return fmt.Sprintf("cache: keyspace %q holds %s, not %s", e.Prefix, e.Have, e.Want)
}

// InvalidateError says which keys could not be invalidated. Until the
// invalidation is repeated with success, by the caller or by a later call for
// such a key, this process does not serve the keys from Redis. Other processes
// may.
type InvalidateError struct {
	Keys []string
	Err  error
}

// Error names the first keys and the cause.
func (e *InvalidateError) Error() string {
	const few = 3
	named := e.Keys[:min(few, len(e.Keys))]
	return fmt.Sprintf("cache: %d keys not invalidated (%s): %v; try again", len(e.Keys), strings.Join(named, ", "), e.Err)
}

// Unwrap returns the cause.
func (e *InvalidateError) Unwrap() error { return e.Err }

// unavailable wraps trouble with Redis, unless it was the caller's own context
// that ended the command.
func (s *space) unavailable(ctx context.Context, doing string, err error) error {
	if ctxErr := ended(ctx); ctxErr != nil {
		return ctxErr
	}
	return fmt.Errorf("%w: %s a key of %q: %w", ErrUnavailable, doing, s.prefix, err)
}
