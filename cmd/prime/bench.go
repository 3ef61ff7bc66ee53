package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/getorprime/getorprime/internal/bench"
)

// benchCommand is prime bench.
type benchCommand struct {
	Scenario  string        `default:"cold" help:"What happens: ${scenarios} (all callers want one absent key at one instant)."`
	Strategy  []string      `placeholder:"NAME" help:"Strategies to compare, repeatable: ${strategies}. Default: all."`
	Processes int           `default:"8" help:"Number of processes, 1 to 256."`
	Callers   int           `default:"64" help:"Number of concurrent callers in each process, 1 to 4096; 32768 together."`
	Load      time.Duration `default:"100ms" help:"How long one load from the data source takes, up to 1m."`
	TTL       time.Duration `name:"ttl" default:"1m" help:"How long a value is kept, 1s to 24h."`
	Runs      int           `default:"1" help:"How often each strategy runs; the figures are medians."`
	Seed      uint64        `default:"1" help:"Seed of the values that loads make."`
	Redis     string        `placeholder:"URL" help:"Redis to use (redis://, rediss://, unix://); only keys under a random prefix are touched. Default: an embedded one."`
	JSON      bool          `name:"json" help:"Print one JSON object with the key rows."`
}

// Help is the long help of prime bench.
func (*benchCommand) Help() string {
	return `For each strategy, processes are started, connected and warmed up, and all callers are then released at one instant.
The figures: loads over all processes; p50, p99 and max from the common start to a caller's return; wake from the end of the first load to the
last caller's return; commands executed by Redis. The exit status is 1 if getorprime breaks a promise; the others may.`
}

// benchVars are the names that the flags' help lists.
func benchVars() map[string]string {
	return map[string]string{
		"scenarios":  strings.Join(bench.ScenarioNames(), ", "),
		"strategies": strings.Join(bench.StrategyNames(), ", "),
	}
}

// Run runs the bench and prints its report.
func (b *benchCommand) Run(ctx context.Context, s *streams) error {
	o := b.options()
	if err := o.Validate(); err != nil {
		return &exitError{exitUsage, err}
	}
	progress := newProgress(s.err)
	o.Progress = progress.show
	report, err := bench.Run(ctx, o)
	progress.end()
	if err != nil {
		return err
	}
	write := report.WriteTable
	if b.JSON {
		write = report.WriteJSON
	}
	if err := write(s.out); err != nil {
		return err
	}
	if report.OursBroken() {
		return &exitError{exitFailure, errors.New("getorprime broke a promise")}
	}
	return nil
}

func (b *benchCommand) options() *bench.Options {
	o := &bench.Options{
		Scenario: b.Scenario, Strategies: b.Strategy, Processes: b.Processes, Callers: b.Callers,
		Load: b.Load, TTL: b.TTL, Runs: b.Runs, Seed: b.Seed, RedisURL: b.Redis,
	}
	if len(o.Strategies) == 0 {
		o.Strategies = bench.StrategyNames()
	}
	return o
}
