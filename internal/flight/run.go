package flight

import (
	"context"
	"runtime/debug"
)

// Outcome is how a function ended.
type Outcome[T any] struct {
	Value T
	Err   error

	Panicked bool // with Panic and Stack
	Panic    any
	Stack    []byte
	Exited   bool // by runtime.Goexit
}

// Run calls fn in a goroutine of its own and returns how it ended. When ctx
// ends first, Run returns at once with ctx's cause and ended false, and fn is
// left to itself; left is then called when it returns after all.
func Run[T any](ctx context.Context, fn func(context.Context) (T, error), left func()) (o Outcome[T], ended bool) {
	done := make(chan Outcome[T])
	go func() {
		o := Outcome[T]{Exited: true}
		defer func() {
			if o.Exited {
				if p := recover(); p != nil {
					o.Exited, o.Panicked, o.Panic, o.Stack = false, true, p, debug.Stack()
				}
			}
			select {
			case done <- o:
			case <-ctx.Done():
				left()
			}
		}()
		o.Value, o.Err = fn(ctx)
		o.Exited = false
	}()
	select {
	case o = <-done:
		return o, true
	case <-ctx.Done():
		return Outcome[T]{Err: context.Cause(ctx)}, false
	}
}
