// Package redisstat reads what a Redis server counts about itself.
package redisstat

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Client is what reading needs. A *redis.ClusterClient is asked for the sum
// over its masters.
type Client interface {
	Info(ctx context.Context, sections ...string) *redis.StringCmd
}

// masters is implemented by *redis.ClusterClient.
type masters interface {
	ForEachMaster(ctx context.Context, fn func(context.Context, *redis.Client) error) error
}

// setUp holds the commands that clients and observers send on their own
// account. All sub-commands of a name count with it.
var setUp = map[string]bool{
	"client": true, "cluster": true, "command": true, "config": true, "hello": true,
	"info": true, "ping": true, "script|load": true, "select": true,
}

// CommandCount returns how many commands the server has run since it started
// or since CONFIG RESETSTAT, from INFO commandstats. Commands that scripts call count
// beside the script, so the number is work done, not round trips made. The
// commands that clients send to set up and watch connections are left out:
// CLIENT, CLUSTER, COMMAND, CONFIG, HELLO, INFO, PING, SELECT and SCRIPT LOAD.
// A command that is refused before it runs is not counted.
//
// It returns the error of the client, or one that quotes the line it could not read.
func CommandCount(ctx context.Context, client Client) (int64, error) {
	cluster, ok := client.(masters)
	if !ok {
		return serverCount(ctx, client)
	}
	var sum atomic.Int64
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		n, err := serverCount(ctx, master)
		sum.Add(n)
		return err
	})
	if err != nil {
		return 0, err
	}
	return sum.Load(), nil
}

func serverCount(ctx context.Context, client Client) (int64, error) {
	info, err := client.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, fmt.Errorf("read command statistics: %w", err)
	}
	var sum int64
	for line := range strings.Lines(info) {
		name, calls, err := parse(strings.TrimSpace(line))
		if err != nil {
			return 0, err
		}
		if !isSetUp(name) {
			sum += calls
		}
	}
	return sum, nil
}

// parse reads a line like "cmdstat_get:calls=21,usec=175,…". Other lines have
// no name and no calls.
func parse(line string) (name string, calls int64, err error) {
	rest, ok := strings.CutPrefix(line, "cmdstat_")
	if !ok {
		return "", 0, nil
	}
	name, stats, _ := strings.Cut(rest, ":")
	first, _, _ := strings.Cut(stats, ",")
	number, ok := strings.CutPrefix(first, "calls=")
	if !ok {
		return "", 0, fmt.Errorf("read command statistics: no calls in %q", line)
	}
	if calls, err = strconv.ParseInt(number, 10, 64); err != nil {
		return "", 0, fmt.Errorf("read command statistics: %q: %w", line, err)
	}
	return name, calls, nil
}

func isSetUp(name string) bool {
	container, _, _ := strings.Cut(name, "|")
	return setUp[name] || setUp[container]
}
