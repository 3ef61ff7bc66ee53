package command

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Script is a Lua script.
type Script struct {
	Src string // its text
	SHA string // its SHA-1, under which the server knows it
	sha any    // the same as an argument
}

// NewScript completes src with those definitions of lib that it names: each one
// costs whenever the script runs. The definitions end at blank lines.
func NewScript(lib, src string) Script {
	for _, def := range slices.Backward(strings.Split(lib, "\n\n")) {
		name := defined.FindStringSubmatch(def)[1]
		if regexp.MustCompile(`\b` + name + `\b`).MatchString(src) {
			src = def + "\n" + src
		}
	}
	sum := sha1.Sum([]byte(src))
	sha := hex.EncodeToString(sum[:])
	return Script{src, sha, sha}
}

// defined finds the name that a definition of a library defines.
var defined = regexp.MustCompile(`(?m)^local (?:function )?(\w+)`)

// Run runs the script by its SHA-1, and by its text where the server does not
// know it yet.
func (sc Script) Run(ctx context.Context, s *Sender, keys []any, args ...any) (*redis.Cmd, error) {
	return sc.RunFresh(ctx, s, keys, func() []any { return args })
}

// RunFresh is Run for a script that creates a lease: each delivery has arguments
// of its own, with a token of its own. After NOSCRIPT nothing was run, but a copy
// may still be under way.
func (sc Script) RunFresh(ctx context.Context, s *Sender, keys []any, args func() []any) (*redis.Cmd, error) {
	cmd, err := sc.send(ctx, s, "evalsha", keys, args())
	if isNoScript(err) {
		cmd, err = sc.send(ctx, s, "eval", keys, args())
	}
	return cmd, err
}

// send sends the script once.
func (sc Script) send(ctx context.Context, s *Sender, how string, keys []any, args []any) (*redis.Cmd, error) {
	what := sc.sha
	if how == "eval" {
		what = sc.Src
	}
	cmd := redis.NewCmd(ctx, invoke(how, what, keys, args)...)
	return cmd, s.Send(ctx, Once{cmd})
}

func invoke(how string, what any, keys []any, args []any) []any {
	full := append(make([]any, 0, 3+len(keys)+len(args)), how, what, len(keys))
	return append(append(full, keys...), args...)
}

// Digit is b as an argument of a script: 0 or 1.
func Digit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Once is a command that go-redis neither retries nor pipelines by itself:
// the second delivery of a script that creates a lease could bring a dead lease
// back, and all other retries have to fit the budget.
type Once struct{ *redis.Cmd }

// NoRetry tells go-redis to send the command at most once.
func (Once) NoRetry() bool { return true }
