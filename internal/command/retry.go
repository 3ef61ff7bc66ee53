package command

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// attempts is how often a command that is safe to repeat is sent in all.
const attempts = 4

// Retry repeats try while it fails in a way that another attempt may mend.
func Retry(ctx context.Context, try func() error) error {
	for i := 1; ; i++ {
		err := try()
		if i == attempts || !MayMend(err) || !pause(ctx, i) {
			return err
		}
	}
}

// pause waits a little longer before each further attempt, unless ctx ends.
func pause(ctx context.Context, attempt int) bool {
	if attempt == 1 {
		return ctx.Err() == nil // a connection that died while idle
	}
	t := time.NewTimer(time.Duration(attempt*attempt) * 2 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// MayMend reports whether err is trouble on the way to Redis or a state of the
// server that passes, rather than an answer.
func MayMend(err error) bool {
	if err == nil || errors.Is(err, redis.Nil) || errors.Is(err, ErrBudget) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrClosed) {
		return false
	}
	var reply redis.Error
	if !errors.As(err, &reply) {
		return true
	}
	for _, p := range []string{"LOADING", "READONLY", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "max number of clients"} {
		if redis.HasErrorPrefix(err, p) {
			return true
		}
	}
	return false
}

func isNoScript(err error) bool { return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") }

// IsFull reports whether err says that the server is at maxmemory. Redis 6
// wraps a script's error in text of its own.
func IsFull(err error) bool {
	return err != nil && strings.Contains(err.Error(), "OOM command not allowed")
}

// IsWrongType reports whether err says that the key holds another kind of value.
func IsWrongType(err error) bool {
	return err != nil && strings.Contains(err.Error(), "WRONGTYPE")
}
