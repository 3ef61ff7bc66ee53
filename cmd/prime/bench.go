package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/getorprime/getorprime/internal/bench"
)

// benchCommand is prime bench.
type benchCommand struct {
	Scenario  string        `placeholder:"NAME" help:"What happens: ${scenarios}. Default: a tour of some, with the strategies that tell most."`
	Strategy  []string      `placeholder:"NAME" help:"Strategies to compare, repeatable: ${strategies}. Default: the scenario's."`
	Processes int           `help:"Number of processes, 1 to 256. Default: the scenario's, mostly 8."`
	Callers   int           `help:"Number of concurrent callers in each process, 1 to 4096; 32768 together. Default: the scenario's, mostly 64."`
	Rate      float64       `help:"Calls per second by all processes together, where a scenario has a steady rate. Default: the scenario's, mostly 400."`
	Load      time.Duration `help:"How long one load from the data source takes, up to 1m. Default: the scenario's, mostly 100ms."`
	TTL       time.Duration `name:"ttl" help:"How long a value is kept, 100ms to 24h. Default: the scenario's, mostly 1m."`
	Duration  time.Duration `env:"PRIME_BENCH_DURATION" help:"How long calls are made, where a scenario takes some time, up to 10m. Default: the scenario's, mostly 5s."`
	Runs      int           `default:"1" help:"How often each strategy runs; the figures are medians."`
	Seed      uint64        `default:"1" help:"Seed of values and arrivals."`
	Redis     string        `placeholder:"URL" help:"Redis to use (redis://, rediss://, unix://); only keys under a random prefix are touched, and faults happen on the way to it. Default: an embedded one."`
	Destruct  bool          `name:"destructive" help:"Let scenarios do what touches everything in the server at --redis: invalidate-storm empties it once, with FLUSHALL."`
	JSON      bool          `name:"json" help:"Print one JSON object with the key rows."`
	Report    string        `placeholder:"FILE" type:"path" help:"Write a page with charts, which needs no network, to this file too."`
	List      bool          `help:"List the scenarios and strategies, and do nothing."`
}

// Help is the long help of prime bench.
func (*benchCommand) Help() string {
	return `For each strategy, processes are started, connected and warmed up; then the scenario happens to them: real processes, real kills, a real network between them and Redis that can be cut.
The figures: loads over all processes; stale answers, where there could be any; p50, p99 and max from a call's start to its end; wake from the end of the first load to the last caller's return; commands executed by Redis. The exit status is 1 if getorprime breaks a promise; the others may.`
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
	if b.List {
		return bench.WriteList(s.out)
	}
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
	if err := b.write(s, report); err != nil {
		return err
	}
	if broken := report.Broken(); len(broken) > 0 {
		return &exitError{exitFailure, errors.New("getorprime broke a promise: " + strings.Join(broken, "; "))}
	}
	return nil
}

// write writes the report to standard output, and the page if one is wanted.
func (b *benchCommand) write(s *streams, report *bench.Report) error {
	if b.Report != "" {
		f, err := os.Create(b.Report)
		if err != nil {
			return err
		}
		if err := errors.Join(report.WritePage(f, b.commandLine()), f.Close()); err != nil {
			return err
		}
	}
	if b.JSON {
		return report.WriteJSON(s.out)
	}
	return report.WriteTable(s.out)
}

func (b *benchCommand) options() *bench.Options {
	return &bench.Options{
		Scenario: b.Scenario, Strategies: b.Strategy, Processes: b.Processes, Callers: b.Callers, Rate: b.Rate,
		Load: b.Load, TTL: b.TTL, Duration: b.Duration, Runs: b.Runs, Seed: b.Seed, RedisURL: b.Redis, Destructive: b.Destruct,
	}
}

// commandLine is the command that repeats the bench.
func (b *benchCommand) commandLine() string {
	words := []string{"prime", "bench"}
	add := func(given bool, flag string, value any) {
		if given {
			words = append(words, flag, fmt.Sprint(value))
		}
	}
	add(b.Scenario != "", "--scenario", b.Scenario)
	for _, name := range b.Strategy {
		add(true, "--strategy", name)
	}
	add(b.Processes != 0, "--processes", b.Processes)
	add(b.Callers != 0, "--callers", b.Callers)
	add(b.Rate != 0, "--rate", b.Rate)
	add(b.Load != 0, "--load", b.Load)
	add(b.TTL != 0, "--ttl", b.TTL)
	add(b.Duration != 0, "--duration", b.Duration)
	add(b.Runs != 1, "--runs", b.Runs)
	add(b.Seed != 1, "--seed", b.Seed)
	add(b.Report != "", "--report", filepath.Base(b.Report))
	return strings.Join(words, " ")
}
