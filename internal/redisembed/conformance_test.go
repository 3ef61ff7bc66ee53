package redisembed_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redistest"
)

// binary has every byte there is.
var binary = func() string {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}()

// primitive is one thing that scripts and clients rely on.
type primitive struct {
	name   string
	before [][]any // commands sent first
	script string  // run with KEYS = {k, l} and args; or
	do     []any   // a plain command
	args   []any
}

func cmd(args ...any) []any { return args }

func cmds(c ...[]any) [][]any { return c }

// same lists what the embedded server answers exactly as Redis does.
var same = []primitive{
	{name: "TIME is two strings of digits", script: `local t = redis.call('TIME'); return {#t, type(t[1]), type(t[2]), tostring(tonumber(t[1]) > 1600000000), tostring(tonumber(t[2]) < 1000000)}`},
	{name: "time in microseconds is exact", script: `return string.format('%.0f', 1700000000 * 1000000 + 123456)`},
	{name: "bytes in ARGV", script: `return {#ARGV[1], string.byte(ARGV[1], 1), string.byte(ARGV[1], 128), string.byte(ARGV[1], 256)}`, args: cmd(binary)},
	{name: "bytes in a reply", script: `return ARGV[1]`, args: cmd(binary)},
	{name: "bytes in KEYS", do: cmd("EVAL", "return KEYS[1]", 1, binary)},
	{name: "bytes stored by a script", script: `redis.call('SET', KEYS[1], ARGV[1]); return redis.call('GET', KEYS[1])`, args: cmd(binary)},
	{name: "bytes stored by a client", before: cmds(cmd("SET", "k", binary)), do: cmd("GET", "k")},
	{name: "string.byte with a range", script: `return {string.byte(ARGV[1], 1, 8)}`, args: cmd("\x00\x01\x7f\x80\xff\xfeab")},
	{name: "string.byte outside", script: `return tostring((string.byte(ARGV[1], 9)))`, args: cmd("ab")},
	{name: "string.char", script: `return string.char(0, 1, 127, 128, 255)`},
	{name: "string.sub", script: `return {string.sub(ARGV[1], 2, 3), string.sub(ARGV[1], -2), string.sub(ARGV[1], 9)}`, args: cmd("\x00\xff\x80a")},
	{name: "string.rep and concatenation", script: `return string.rep('\0', 3) .. ARGV[1] .. '\255'`, args: cmd("\x80")},
	{name: "string comparison of bytes", script: `return {ARGV[1] == ARGV[2], ARGV[1] == ARGV[1]}`, args: cmd("a\x00b", "a\x00c")},
	{name: "string.find plain", script: `return {string.find(ARGV[1], ARGV[2], 1, true)}`, args: cmd("a\x00.b", "\x00.")},
	{name: "string.format", script: `return {string.format('%d|%05d|%s|%x', 42, 42, 'a', 255), string.format('%.0f', 4294967296)}`},
	{name: "big-endian number from bytes", script: `local n = 0; for i = 1, #ARGV[1] do n = n * 256 + string.byte(ARGV[1], i) end; return string.format('%.0f', n)`, args: cmd("\x00\x1f\xff\xff\xff\xff\xff\xff")},
	{name: "big-endian bytes from a number", script: `local n, s = tonumber(ARGV[1]), ''; for i = 1, 8 do local b = n % 256; s = string.char(b) .. s; n = (n - b) / 256 end; return s`, args: cmd("1700000000123456")},
	{name: "math.floor and fmod", script: `return {math.floor(7.9), math.floor(-7.1), math.fmod(7, 3), 2^31 % 7}`},
	{name: "unpack", script: `return redis.call('SET', unpack(ARGV))`, args: cmd("k", "v")},
	{name: "table.concat and insert", script: `local t = {}; table.insert(t, 'a'); t[#t+1] = ARGV[1]; return table.concat(t)`, args: cmd("\x00")},
	{name: "tonumber", script: `return {tonumber('12'), tostring(tonumber('x')), tonumber('9007199254740991')}`},

	{name: "integer 2^31 - 1", script: `return 2147483647`},
	{name: "integer 2^31", script: `return 2147483648`},
	{name: "integer 2^32 + 1", script: `return 4294967297`},
	{name: "integer 2^53 - 1", script: `return 9007199254740991`},
	{name: "integer 2^53", script: `return 9007199254740992`},
	{name: "negative integers", script: `return {-1, -2147483649, -9007199254740991}`},
	{name: "fractions are cut off", script: `return {3.99, -3.99}`},
	{name: "true, false and nil", script: `return {true, false, 1}`},
	{name: "false alone", script: `return false`},
	{name: "nothing", script: `return`},
	{name: "array ends at nil", script: `return {1, nil, 3}`},
	{name: "nested arrays", script: `return {1, {2, {'three'}}, ''}`},
	{name: "empty array", script: `return {}`},
	{name: "status_reply", script: `return redis.status_reply('FINE')`},
	{name: "error_reply", script: `return redis.error_reply('MYERR it went wrong')`},
	{name: "error_reply of one word", script: `return redis.error_reply('MYERR')`},
	{name: "status of SET", script: `return redis.call('SET', KEYS[1], 'v')`},
	{name: "status read as ok", script: `return redis.call('SET', KEYS[1], 'v').ok`},
	{name: "sha1hex", script: `return redis.sha1hex('abc')`},

	{name: "GET of nothing is false", script: `return {redis.call('GET', KEYS[1]) == false, type(redis.call('GET', KEYS[1]))}`},
	{name: "GETRANGE of nothing", script: `return redis.call('GETRANGE', KEYS[1], 0, 71)`},
	{name: "GETRANGE", before: cmds(cmd("SET", "k", binary)), script: `return {redis.call('GETRANGE', KEYS[1], 0, 3), redis.call('GETRANGE', KEYS[1], 126, 129), redis.call('GETRANGE', KEYS[1], -2, -1), redis.call('GETRANGE', KEYS[1], 250, 999), redis.call('GETRANGE', KEYS[1], 300, 400), redis.call('GETRANGE', KEYS[1], 5, 2)}`},
	{name: "GETRANGE with numbers from Lua", before: cmds(cmd("SET", "k", binary)), script: `local a = 2; return redis.call('GETRANGE', KEYS[1], a * 2, a * 2 + 1)`},
	{name: "SETRANGE", before: cmds(cmd("SET", "k", "abcdef")), script: `return {redis.call('SETRANGE', KEYS[1], 2, ARGV[1]), redis.call('GET', KEYS[1])}`, args: cmd("\x00\xff")},
	{name: "SETRANGE past the end", before: cmds(cmd("SET", "k", "ab")), script: `return {redis.call('SETRANGE', KEYS[1], 4, 'x'), redis.call('GET', KEYS[1])}`},
	{name: "SETRANGE of nothing", script: `return {redis.call('SETRANGE', KEYS[1], 2, 'x'), redis.call('GET', KEYS[1])}`},
	{name: "SETRANGE keeps the TTL", before: cmds(cmd("SET", "k", "abc", "PX", 60000)), script: `redis.call('SETRANGE', KEYS[1], 0, 'x'); return redis.call('PTTL', KEYS[1]) > 50000`},
	{name: "APPEND keeps the TTL", before: cmds(cmd("SET", "k", "abc", "PX", 60000)), script: `return {redis.call('APPEND', KEYS[1], 'x'), redis.call('PTTL', KEYS[1]) > 50000}`},
	{name: "STRLEN", before: cmds(cmd("SET", "k", binary)), script: `return {redis.call('STRLEN', KEYS[1]), redis.call('STRLEN', KEYS[2])}`},
	{name: "SET drops the TTL", before: cmds(cmd("SET", "k", "v", "PX", 60000), cmd("SET", "k", "w")), do: cmd("PTTL", "k")},
	{name: "SET KEEPTTL", before: cmds(cmd("SET", "k", "v", "PX", 60000)), script: `redis.call('SET', KEYS[1], 'w', 'KEEPTTL'); return {redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1]) > 50000}`},
	{name: "SET NX PX on nothing", do: cmd("SET", "k", "v", "NX", "PX", 60000)},
	{name: "SET NX PX on a key", before: cmds(cmd("SET", "k", "v")), do: cmd("SET", "k", "w", "NX", "PX", 60000)},
	{name: "SET NX refused in a script is false", before: cmds(cmd("SET", "k", "v")), script: `return tostring(redis.call('SET', KEYS[1], 'w', 'NX', 'PX', 60000))`},
	{name: "SET XX on nothing", do: cmd("SET", "k", "v", "XX")},
	{name: "SET GET", before: cmds(cmd("SET", "k", "v")), do: cmd("SET", "k", "w", "GET")},
	{name: "SET PXAT", script: `local t = redis.call('TIME'); redis.call('SET', KEYS[1], 'v', 'PXAT', string.format('%.0f', t[1] * 1000 + 60000)); local left = redis.call('PTTL', KEYS[1]); return {left > 50000, left <= 60000}`},
	{name: "PEXPIRE", before: cmds(cmd("SET", "k", "v")), script: `return {redis.call('PEXPIRE', KEYS[1], 60000), redis.call('PTTL', KEYS[1]) > 50000, redis.call('PEXPIRE', KEYS[2], 60000)}`},
	{name: "PEXPIRE GT", before: cmds(cmd("SET", "k", "v", "PX", 60000)), script: `return {redis.call('PEXPIRE', KEYS[1], 1000, 'GT'), redis.call('PEXPIRE', KEYS[1], 90000, 'GT')}`},
	{name: "PEXPIRE 0 deletes", before: cmds(cmd("SET", "k", "v")), script: `return {redis.call('PEXPIRE', KEYS[1], 0), redis.call('EXISTS', KEYS[1])}`},
	{name: "PTTL", before: cmds(cmd("SET", "k", "v")), script: `return {redis.call('PTTL', KEYS[1]), redis.call('PTTL', KEYS[2])}`},
	{name: "PERSIST", before: cmds(cmd("SET", "k", "v", "PX", 60000)), script: `return {redis.call('PERSIST', KEYS[1]), redis.call('PTTL', KEYS[1])}`},
	{name: "DEL and UNLINK", before: cmds(cmd("SET", "k", "v")), script: `return {redis.call('DEL', KEYS[1], KEYS[2]), redis.call('UNLINK', KEYS[1])}`},
	{name: "INCR", before: cmds(cmd("SET", "k", "9007199254740990")), script: `return redis.call('INCR', KEYS[1])`},
	{name: "INCRBY with a big number", before: cmds(cmd("SET", "k", "1700000000123456")), do: cmd("INCRBY", "k", 1)},
	{name: "TYPE", before: cmds(cmd("SET", "k", "v"), cmd("RPUSH", "l", "v")), script: `return {redis.call('TYPE', KEYS[1]).ok, redis.call('TYPE', KEYS[2]).ok, redis.call('TYPE', 'n').ok}`},
	{name: "PUBLISH without listeners", script: `return redis.call('PUBLISH', 'c', ARGV[1])`, args: cmd(binary)},

	{name: "ZADD with a big score", script: `return {redis.call('ZADD', KEYS[1], '1700000000123', 'm'), redis.call('ZSCORE', KEYS[1], 'm')}`},
	{name: "ZADD GT", before: cmds(cmd("ZADD", "k", 10, "m")), script: `redis.call('ZADD', KEYS[1], 'GT', 5, 'm'); return redis.call('ZSCORE', KEYS[1], 'm')`},
	{name: "ZREMRANGEBYSCORE", before: cmds(cmd("ZADD", "k", 1, "a", 2, "b", 3, "c")), script: `return {redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(3'), redis.call('ZCARD', KEYS[1])}`},
	{name: "ZRANGEBYSCORE LIMIT", before: cmds(cmd("ZADD", "k", 1, "a", 2, "b", 3, "c")), script: `return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '+inf', 'LIMIT', 0, 2)`},
	{name: "ZRANGE", before: cmds(cmd("ZADD", "k", 2, "b", 1, "a")), script: `return redis.call('ZRANGE', KEYS[1], 0, 0)`},
	{name: "ZREM and ZPOPMIN", before: cmds(cmd("ZADD", "k", 2, "b", 1, "a")), script: `return {redis.call('ZREM', KEYS[1], 'x'), redis.call('ZPOPMIN', KEYS[1])}`},
	{name: "HSET and HGETALL", script: `redis.call('HSET', KEYS[1], 'f', ARGV[1]); return redis.call('HGETALL', KEYS[1])`, args: cmd("\x00\xff")},
	{name: "list as a log", script: `redis.call('RPUSH', KEYS[1], 'a', 'b', 'c'); redis.call('LTRIM', KEYS[1], -2, -1); return redis.call('LRANGE', KEYS[1], 0, -1)`},
	{name: "stream as a log", script: `redis.call('XADD', KEYS[1], '1-1', 'f', ARGV[1]); redis.call('XADD', KEYS[1], '1-2', 'f', 'b'); return redis.call('XRANGE', KEYS[1], '(1-1', '+')`, args: cmd("\x00\xff")},
	{name: "stream trimmed", script: `redis.call('XADD', KEYS[1], '1-1', 'f', 'a'); redis.call('XADD', KEYS[1], 'MAXLEN', '1', '1-2', 'f', 'b'); return {redis.call('XLEN', KEYS[1]), redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)}`},

	{name: "WRONGTYPE to a client", before: cmds(cmd("RPUSH", "k", "v")), do: cmd("GET", "k")},
	{name: "WRONGTYPE of GETRANGE", before: cmds(cmd("RPUSH", "k", "v")), do: cmd("GETRANGE", "k", 0, 1)},
	{name: "WRONGTYPE of SETRANGE", before: cmds(cmd("RPUSH", "k", "v")), do: cmd("SETRANGE", "k", 0, "x")},
	{name: "WRONGTYPE caught by pcall", before: cmds(cmd("RPUSH", "k", "v")), script: `local r = redis.pcall('GET', KEYS[1]); return {type(r), r.err}`},
	{name: "WRONGTYPE returned from pcall", before: cmds(cmd("RPUSH", "k", "v")), script: `return redis.pcall('GET', KEYS[1])`},
	{name: "pcall without an error", script: `return redis.pcall('SET', KEYS[1], 'v')`},
	{name: "Lua pcall around redis.call", before: cmds(cmd("RPUSH", "k", "v")), script: `local ok = pcall(redis.call, 'GET', KEYS[1]); return tostring(ok)`},
	{name: "effects before an error stay", before: cmds(cmd("RPUSH", "l", "v")), script: `redis.call('SET', KEYS[1], 'v'); redis.pcall('GET', KEYS[2]); return redis.call('GET', KEYS[1])`},

	{name: "NOSCRIPT", do: cmd("EVALSHA", strings.Repeat("0", 40), 0)},
	{name: "SCRIPT LOAD", do: cmd("SCRIPT", "LOAD", "return 1")},
	{name: "SCRIPT EXISTS", before: cmds(cmd("EVAL", "return 7", 0)), do: cmd("SCRIPT", "EXISTS", "4ca238f611c9d0ae4e9a75a5dbac22aedc1e44de", strings.Repeat("0", 40))},
	{name: "MGET", before: cmds(cmd("SET", "k", binary)), do: cmd("MGET", "k", "l")},
	{name: "GETDEL", before: cmds(cmd("SET", "k", "v")), do: cmd("GETDEL", "k")},
	{name: "SCAN of a prefix", before: cmds(cmd("SET", "a:1", "v"), cmd("SET", "b:1", "v")), do: cmd("SCAN", 0, "MATCH", "a:*", "COUNT", 1000)},
	{name: "numbers as arguments", script: `redis.call('MSET', 'k', 42, 'l', 1700000000123456, 'm', -7, 'n', 9007199254740991); return redis.call('MGET', 'k', 'l', 'm', 'n')`},
	{name: "strings in arithmetic", script: `return {ARGV[1] + 1, ARGV[1] * 1000000 + 5, ARGV[1] % 7}`, args: cmd("1700000000")},
	{name: "missing ARGV is nil", script: `return {ARGV[9] == nil, #ARGV}`},
	{name: "long bytes", script: `redis.call('SET', KEYS[1], ARGV[1]); return {redis.call('STRLEN', KEYS[1]), redis.sha1hex(redis.call('GET', KEYS[1]))}`, args: cmd(strings.Repeat(binary, 1<<12))},
	{name: "several results", script: `local function two() return 1, 'b' end; return {two()}`},
	{name: "cjson of small numbers and bytes", script: `return cjson.encode({1, 'a"b'})`},
}

// difference is a primitive that the embedded server answers in another way.
// The answers are prefixes, as Redis words some errors by version.
type difference struct {
	primitive
	embedded, redis string
}

// different lists the known differences. One that goes away fails the test, and
// then belongs in same.
var different = []difference{
	{
		primitive{name: "big number to text", script: `return tostring(1700000000123456)`},
		`string "1700000000123456"`, `string "1.7000000001235e+15"`,
	},
	{
		primitive{name: "big number concatenated", script: `return 1700000000123456 .. ''`},
		`string "1700000000123456"`, `string "1.7000000001235e+15"`,
	},
	{
		primitive{name: "uncaught WRONGTYPE", before: cmds(cmd("RPUSH", "k", "v")), script: `return redis.call('GET', KEYS[1])`},
		"error ERR Error compiling script (new function): :1: WRONGTYPE Operation", "error WRONGTYPE Operation",
	},
	{
		primitive{name: "error of a string", script: `error('MYERR it went wrong')`},
		"error ERR Error compiling script (new function): :1: MYERR it went wrong", "error ERR user_script:1: MYERR it went wrong",
	},
	{
		primitive{name: "error of a table", script: `error({err = 'MYERR it went wrong'})`},
		"error ERR Error compiling script (new function): table:", "error MYERR it went wrong",
	},
	{
		primitive{name: "unknown command in a script", script: `return redis.call('NOSUCHCOMMAND')`},
		"error ERR Error compiling script (new function): :1: Unknown Redis command", "error ERR Unknown Redis command",
	},
	{
		primitive{name: "error text of PX 0", do: cmd("SET", "k", "v", "PX", 0)},
		"error ERR invalid expire time in set", "error ERR invalid expire time in 'set' command",
	},
	{
		primitive{name: "unknown command", do: cmd("NOSUCHCOMMAND", "a")},
		"error ERR unknown command `NOSUCHCOMMAND`", "error ERR unknown command 'NOSUCHCOMMAND'",
	},
	{
		primitive{name: "bit library", script: `return bit.band(6, 3)`},
		"error ERR", "int64",
	},
	{
		primitive{name: "struct library", script: `return #struct.pack('>I8', 1)`},
		"error ERR", "int64",
	},
	{
		primitive{name: "cmsgpack library", script: `return cmsgpack.unpack(cmsgpack.pack(7))`},
		"error ERR", "int64",
	},
	{
		primitive{name: "CONFIG", do: cmd("CONFIG", "SET", "timeout", 0)},
		"error ERR unknown command `CONFIG`", `string "OK"`,
	},
	{
		primitive{name: "CLIENT ID", do: cmd("CLIENT", "ID")},
		"error ERR unknown subcommand 'ID'", "int64",
	},
	{
		primitive{name: "INFO memory", do: cmd("INFO", "memory")},
		"error section (memory) is not supported", `string`,
	},
	{
		primitive{name: "ACL", do: cmd("ACL", "WHOAMI")},
		"error ERR unknown command `ACL`", `string "default"`,
	},
}

// answer runs p on a server and renders the reply with its Go types.
func (p primitive) answer(t *testing.T, client *redis.Client) string {
	t.Helper()
	ctx := context.Background()
	if err := client.FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	for _, c := range p.before {
		if err := client.Do(ctx, c...).Err(); err != nil {
			t.Fatalf("%v: %v", c, err)
		}
	}
	do := p.do
	if do == nil {
		do = append(cmd("EVAL", p.script, 2, "k", "l"), p.args...)
	}
	reply, err := client.Do(ctx, do...).Result()
	if err != nil {
		return "error " + err.Error()
	}
	return fmt.Sprintf("%T %q", reply, reply)
}

// protocols are those a client may negotiate.
var protocols = []int{2, 3}

func TestSameAsRedis(t *testing.T) {
	embedded, real := start(t), redistest.Start(t).Client(t)
	for _, protocol := range protocols {
		embedded, real := withProtocol(t, embedded, protocol), withProtocol(t, real, protocol)
		for _, p := range same {
			t.Run(fmt.Sprintf("RESP%d/%s", protocol, p.name), func(t *testing.T) {
				got, want := p.answer(t, embedded), p.answer(t, real)
				if got != want {
					t.Errorf("embedded: %s\nredis:    %s", got, want)
				}
			})
		}
	}
}

func withProtocol(t *testing.T, client *redis.Client, protocol int) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: client.Options().Addr, Protocol: protocol})
	t.Cleanup(func() { c.Close() })
	return c
}

func TestKnownDifferences(t *testing.T) {
	embedded, real := start(t), redistest.Start(t).Client(t)
	for _, d := range different {
		t.Run(d.name, func(t *testing.T) {
			if got := d.answer(t, embedded); !strings.HasPrefix(got, d.embedded) {
				t.Errorf("embedded: got %s, want %s", got, d.embedded)
			}
			if got := d.answer(t, real); !strings.HasPrefix(got, d.redis) {
				t.Errorf("redis: got %s, want %s", got, d.redis)
			}
		})
	}
}

func TestPublishFromScript(t *testing.T) {
	for name, client := range map[string]*redis.Client{"embedded": start(t), "redis": redistest.Start(t).Client(t)} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			sub := client.Subscribe(ctx, "c")
			defer sub.Close()
			if _, err := sub.Receive(ctx); err != nil {
				t.Fatal(err)
			}
			heard, err := client.Eval(ctx, "return redis.call('PUBLISH', 'c', ARGV[1])", nil, binary).Int()
			if heard != 1 || err != nil {
				t.Errorf("PUBLISH = %d, %v, want 1", heard, err)
			}
			msg, err := sub.ReceiveMessage(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if msg.Payload != binary {
				t.Errorf("payload = %q, want %q", msg.Payload, binary)
			}
		})
	}
}

// TestNoScriptInAPipeline checks that the script's error leaves the rest of a
// pipeline, and of a transaction, alone.
func TestNoScriptInAPipeline(t *testing.T) {
	for name, client := range map[string]*redis.Client{"embedded": start(t), "redis": redistest.Start(t).Client(t)} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			pipe := client.Pipeline()
			before := pipe.Set(ctx, "k", "v", 0)
			missing := pipe.EvalSha(ctx, strings.Repeat("0", 40), nil)
			after := pipe.Get(ctx, "k")
			_, _ = pipe.Exec(ctx)
			if err := before.Err(); err != nil {
				t.Errorf("before: %v", err)
			}
			if err := missing.Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
				t.Errorf("missing script: %v, want NOSCRIPT", err)
			}
			if got, err := after.Result(); got != "v" || err != nil {
				t.Errorf("after = %q, %v, want v", got, err)
			}
		})
	}
}
