//go:build unix

package cache_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/command"
	"github.com/getorprime/getorprime/internal/entry"
)

// The mutants, each with the rule that it breaks.
const (
	mutantToken     = "token per process"        // a token names one grant
	mutantUnchecked = "unchecked fill"           // FILL compares the token
	mutantPlainSet  = "plain SET"                // the same, by a client that has no script
	mutantResend    = "lease command sent twice" // at most once per token
	mutantAny       = "join without asOf"        // an answer is taken by its instant
	mutantStored    = "asOf by STORED alone"     // also an answer that was stored
)

// The kinds of command a process sends, as far as faults and mutants care.
const (
	cmdAcquire = "acquire"
	cmdClaim   = "claim" // SET NX
	cmdSeize   = "seize"
	cmdFill    = "fill"
	cmdExtend  = "extend"
	cmdRelease = "release"
	cmdFail    = "fail"
	cmdGet     = "get"
	cmdOther   = "other"
)

// leasing reports whether a command can create a lease.
func leasing(kind string) bool { return kind == cmdAcquire || kind == cmdClaim || kind == cmdSeize }

// dictionary tells scripts apart by their SHA-1 and by their text.
type dictionary map[string]string

// readScripts reads the scripts as they are built in.
func readScripts() (dictionary, error) {
	const dir = "../internal/entry/lua"
	lib, err := os.ReadFile(filepath.Join(dir, "lib.lua"))
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.lua"))
	if err != nil {
		return nil, err
	}
	d := dictionary{}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(file), ".lua")
		sc := command.NewScript(string(lib), string(body))
		d[sc.Src], d[sc.SHA] = name, name
	}
	return d, nil
}

// kind names the command whose arguments arg returns.
func (d dictionary) kind(n int, arg func(int) string) string {
	if n < 2 {
		return cmdOther
	}
	switch strings.ToLower(arg(0)) {
	case "evalsha", "eval":
		return d[arg(1)]
	case "get":
		return cmdGet
	case "set":
		if strings.EqualFold(arg(n-1), "nx") {
			return cmdClaim
		}
	}
	return cmdOther
}

func (d dictionary) ofBytes(args [][]byte) string {
	return d.kind(len(args), func(i int) string { return string(args[i]) })
}

func (d dictionary) ofCmd(cmd redis.Cmder) string {
	args := cmd.Args()
	return d.kind(len(args), func(i int) string { return fmt.Sprint(args[i]) })
}

// tamperer is a go-redis hook that delays replies to FILL and holds the mutants
// which live on the way to Redis.
type tamperer struct {
	mutant  string
	scripts dictionary
	mix     *mix
}

func (*tamperer) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*tamperer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (m *tamperer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		kind := m.scripts.ofCmd(cmd)
		switch {
		case kind == cmdFill:
			err := m.fill(ctx, cmd, next)
			if chance(m.mix.SlowReply) {
				rest(context.Background(), upTo(m.mix.Slow))
			}
			return err
		case leasing(kind) && m.mutant == mutantResend:
			return resend(ctx, cmd, next)
		}
		return next(ctx, cmd)
	}
}

func (m *tamperer) fill(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
	switch m.mutant {
	case mutantUnchecked:
		args := cmd.Args()
		args[0], args[1] = "eval", uncheckedFill
	case mutantPlainSet:
		return plainSet(ctx, cmd, next)
	}
	return next(ctx, cmd)
}

// uncheckedFill is FILL without the comparison of tokens.
const uncheckedFill = `
local function be(n)
  local s = ''
  for _ = 1, 6 do s = string.char(n % 256) .. s; n = math.floor(n / 256) end
  return s
end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[4])
redis.call('SETRANGE', KEYS[1], 48, be(now) .. be(now + ARGV[3]) .. be(now + ARGV[4]))
return now * 4 + 1`

// plainSet stores what FILL would store with a plain SET, stamped by this
// process's clock, and makes the answer the one that FILL gives.
func plainSet(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
	args := cmd.Args() // evalsha sha 1 key token entry fresh hard …
	now, fresh, hard := time.Now().UnixMilli(), args[6].(int64), args[7].(int64)
	e := append([]byte(nil), args[5].([]byte)...)
	for i, at := range []int64{now, now + fresh, now + hard} {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], uint64(at))
		copy(e[48+6*i:], b[2:])
	}
	if err := next(ctx, redis.NewStatusCmd(ctx, "set", args[3], e, "px", hard)); err != nil {
		return err
	}
	cmd.(interface{ SetVal(any) }).SetVal(now*4 + int64(entry.Done))
	return nil
}

// resend sends a command again, as it is, when its reply was lost: what go-redis
// does with commands that are not marked.
func resend(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
	var err error
	for range 3 {
		err = next(ctx, cmd)
		var reply redis.Error
		if err == nil || errors.As(err, &reply) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// chance is true in n of ten thousand cases.
func chance(n int) bool { return n > 0 && rand.IntN(10_000) < n }

// upTo returns a duration below d.
func upTo(d time.Duration) time.Duration { return time.Duration(rand.Int64N(int64(d) + 1)) }
