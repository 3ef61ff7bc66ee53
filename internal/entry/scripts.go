package entry

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/lib.lua
var libSrc string

//go:embed lua/timedget.lua
var timedGetSrc string

//go:embed lua/acquire.lua
var acquireSrc string

//go:embed lua/fill.lua
var fillSrc string

//go:embed lua/extend.lua
var extendSrc string

//go:embed lua/fail.lua
var failSrc string

//go:embed lua/release.lua
var releaseSrc string

//go:embed lua/seize.lua
var seizeSrc string

//go:embed lua/invalidate.lua
var invalidateSrc string

//go:embed lua/markstale.lua
var markStaleSrc string

// script is the text of a Lua script and its SHA-1.
type script struct{ src, sha string }

// newScript completes src with those definitions of lib.lua that it needs: each
// one costs whenever the script runs.
func newScript(src string) script {
	defs := strings.Split(libSrc, "\n\n")
	for _, def := range slices.Backward(defs) {
		name := defined.FindStringSubmatch(def)[1]
		if regexp.MustCompile(`\b` + name + `\b`).MatchString(src) {
			src = def + "\n" + src
		}
	}
	sum := sha1.Sum([]byte(src))
	return script{src, hex.EncodeToString(sum[:])}
}

// defined finds the name that a definition of lib.lua defines.
var defined = regexp.MustCompile(`(?m)^local (?:function )?(\w+)`)

var (
	timedGetScript   = newScript(timedGetSrc)
	acquireScript    = newScript(acquireSrc)
	fillScript       = newScript(fillSrc)
	extendScript     = newScript(extendSrc)
	failScript       = newScript(failSrc)
	releaseScript    = newScript(releaseSrc)
	seizeScript      = newScript(seizeSrc)
	invalidateScript = newScript(invalidateSrc)
	markStaleScript  = newScript(markStaleSrc)
)

func (s script) bySHA(key string, args []any) []any {
	return s.invoke("evalsha", s.sha, key, args)
}

func (s script) byText(key string, args []any) []any {
	return s.invoke("eval", s.src, key, args)
}

func (script) invoke(how, what, key string, args []any) []any {
	return append(append(make([]any, 0, 4+len(args)), how, what, 1, key), args...)
}

// once is a command that go-redis neither retries nor pipelines by itself:
// the second delivery of a script that creates a lease could bring a dead lease
// back, and all other retries have to fit the budget.
type once struct{ *redis.Cmd }

// NoRetry tells go-redis to send the command at most once.
func (once) NoRetry() bool { return true }

type onceString struct{ *redis.StringCmd }

// NoRetry tells go-redis to send the command at most once.
func (onceString) NoRetry() bool { return true }

// attempts is how often a command that is safe to repeat is sent in all.
const attempts = 4

// idempotent runs a script that may be sent again after a lost reply.
func (s *Store) idempotent(ctx context.Context, sc script, key string, args ...any) (*redis.Cmd, error) {
	full := sc.bySHA(key, args)
	var cmd *redis.Cmd
	err := s.persist(ctx, func() error {
		cmd = redis.NewCmd(ctx, full...)
		err := s.send(ctx, once{cmd})
		if isNoScript(err) {
			full = sc.byText(key, args)
			cmd = redis.NewCmd(ctx, full...)
			err = s.send(ctx, once{cmd})
		}
		return err
	})
	return cmd, err
}

// persist runs a command: it repeats try while it fails in a way that another
// attempt may mend. While the circuit breaker is open it does not even begin,
// unless ctx insists.
func (s *Store) persist(ctx context.Context, try func() error) error {
	if b, ok := ctx.Value(budgetKey{}).(*budget); ok && b.insist {
		return attempt(ctx, try)
	}
	return s.breaker.run(ctx, func() error { return attempt(ctx, try) })
}

func attempt(ctx context.Context, try func() error) error {
	for i := 1; ; i++ {
		err := try()
		if i == attempts || !mayMend(err) || !pause(ctx, i) {
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

// mayMend reports whether err is trouble on the way to Redis or a state of the
// server that passes, rather than an answer.
func mayMend(err error) bool {
	if err == nil || errors.Is(err, redis.Nil) || errors.Is(err, ErrBudget) || errors.Is(err, ErrOpen) ||
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
