// Package loader holds what the writer of a loader needs: the type of the function,
// the errors it may return, and what it may tell the cache through its context.
//
// # One load
//
// A loader gets the id of the record, without the key prefix it was registered for,
// and returns the value. The cache calls it once per key over all processes and hands
// the answer to everyone who waits. While it runs, the loader may say:
//
//   - [SetTTL]: this result lives for another time than the policy's;
//   - [NoStore]: hand this result to those who wait, and do not keep it;
//   - [Previous]: what was the value before? With it a conditional request can answer
//     [ErrNotModified] instead of fetching the whole value again.
//
// [ErrNotFound] is an answer, not a failure: it is cached for a time of its own.
// [NotFoundOn] makes it out of the error of a database driver. Every other error is a
// failure and is shared with those who wait.
//
// # When a load goes wrong
//
// A panic reaches the callers as a [*PanicError], a call of [runtime.Goexit] as one
// with [ErrGoexit] inside, and a failure in another process as a [*RemoteError].
package loader

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/getorprime/getorprime/internal/loadctl"
)

// Func loads the value of the record named id. It should return soon after ctx ends.
// ctx carries the values of the context of the caller that started the load, but not
// its deadline or cancellation: the load may serve many callers.
type Func[V any] func(ctx context.Context, id string) (V, error)

// NotFoundOn returns f with its errors that are one of errs, as [errors.Is] tells,
// turned into one that is both [ErrNotFound] and the original:
//
//	loader.NotFoundOn(loadUser, sql.ErrNoRows)
func NotFoundOn[V any](f Func[V], errs ...error) Func[V] {
	return func(ctx context.Context, id string) (V, error) {
		v, err := f(ctx, id)
		return v, notFoundOn(err, errs)
	}
}

func notFoundOn(err error, errs []error) error {
	if err == nil || errors.Is(err, ErrNotFound) {
		return err
	}
	for _, target := range errs {
		if errors.Is(err, target) {
			return fmt.Errorf("%w: %w", ErrNotFound, err)
		}
	}
	return err
}

// SetTTL makes d, instead of the policy's TTL, the time this result is fresh; the last
// call counts. A d of zero or less makes the load fail. Outside a load, and after it
// has ended, SetTTL does nothing.
func SetTTL(ctx context.Context, d time.Duration) {
	if c := loadctl.From(ctx); c != nil {
		c.SetTTL(d)
	}
}

// NoStore hands this result to the callers that wait for it without keeping it in the
// cache. Outside a load, and after it has ended, NoStore does nothing.
func NoStore(ctx context.Context) {
	if c := loadctl.From(ctx); c != nil {
		c.NoStore()
	}
}

// Previous returns the value that the running load is about to replace. It returns
// false if there is none, if it cannot be decoded, outside a load, and after the load
// has ended. A V that is neither the type the loader was registered with nor an
// interface it satisfies makes the load fail.
func Previous[V any](ctx context.Context) (V, bool) {
	var zero V
	c := loadctl.From(ctx)
	if c == nil {
		return zero, false
	}
	old, ok := c.PreviousValue()
	if !ok {
		return zero, false
	}
	v, ok := old.(V)
	// A nil interface is a value, but has no type to assert.
	nilInterface := old == nil && any(zero) == nil
	if !ok && !nilInterface {
		c.Misuse(fmt.Errorf("loader.Previous[%v]: the previous value is a %T", reflect.TypeFor[V](), old))
		return zero, false
	}
	return v, true
}
