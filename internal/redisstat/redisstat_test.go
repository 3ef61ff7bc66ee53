package redisstat_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redisstat"
	"github.com/getorprime/getorprime/internal/redistest"
)

// text answers INFO with a fixed text or error.
type text struct {
	info string
	err  error
}

func (x text) Info(context.Context, ...string) *redis.StringCmd {
	return redis.NewStringResult(x.info, x.err)
}

func TestCommandCountOfText(t *testing.T) {
	for _, c := range []struct {
		name, info string
		want       int64
	}{
		{"nothing", "# Commandstats\r\n", 0},
		{"one", "# Commandstats\r\ncmdstat_get:calls=21,usec=175,usec_per_call=8.33\r\n", 21},
		{"calls alone", "cmdstat_get:calls=3\r\n", 3},
		{"sum", "cmdstat_get:calls=2,usec=1\r\ncmdstat_evalsha:calls=3,usec=1\r\n", 5},
		{"set-up", "cmdstat_hello:calls=1\r\ncmdstat_ping:calls=1\r\ncmdstat_info:calls=1\r\ncmdstat_select:calls=1\r\ncmdstat_command:calls=1\r\n", 0},
		{"sub-commands of set-up", "cmdstat_client|setinfo:calls=4\r\ncmdstat_config|resetstat:calls=1\r\ncmdstat_cluster|slots:calls=1\r\n", 0},
		{"containers in old versions", "cmdstat_client:calls=4\r\ncmdstat_config:calls=1\r\n", 0},
		{"SCRIPT LOAD only", "cmdstat_script|load:calls=4\r\ncmdstat_script|exists:calls=1\r\n", 1},
		{"subscriptions", "cmdstat_subscribe:calls=1\r\ncmdstat_ssubscribe:calls=1\r\ncmdstat_publish:calls=1\r\n", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := redisstat.CommandCount(context.Background(), text{info: c.info})
			if got != c.want || err != nil {
				t.Errorf("CommandCount = %d, %v, want %d", got, err, c.want)
			}
		})
	}
}

func TestCommandCountErrors(t *testing.T) {
	refused := errors.New("refused")
	for _, c := range []struct {
		name   string
		client text
		want   string
	}{
		{"client", text{err: refused}, "refused"},
		{"no calls", text{info: "cmdstat_get:usec=175\r\n"}, "cmdstat_get:usec=175"},
		{"no number", text{info: "cmdstat_get:calls=x\r\n"}, "cmdstat_get:calls=x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := redisstat.CommandCount(context.Background(), c.client)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestCommandCountOfServer(t *testing.T) {
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	client.Ping(ctx)
	before, err := redisstat.CommandCount(ctx, client)
	if err != nil {
		t.Fatal(err)
	}
	client.Set(ctx, "k", "v", 0)
	client.ScriptLoad(ctx, "return 1")
	client.Eval(ctx, "redis.call('GET', KEYS[1]); return redis.call('GET', KEYS[1])", []string{"k"})
	after, err := redisstat.CommandCount(ctx, client)
	const want = 1 + 1 + 2 // SET, EVAL and its two GET
	if got := after - before; got != want || err != nil {
		t.Errorf("commands = %d, %v, want %d", got, err, want)
	}
}

func TestCommandCountOfCluster(t *testing.T) {
	ctx := context.Background()
	client := redistest.StartCluster(t).Client(t)
	before, err := redisstat.CommandCount(ctx, client)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b", "c", "d"} {
		client.Set(ctx, key, "v", 0)
	}
	after, err := redisstat.CommandCount(ctx, client)
	if got := after - before; got != 4 || err != nil {
		t.Errorf("commands = %d, %v, want 4", got, err)
	}
}
