package bench

import (
	"context"
	"errors"
	"fmt"
)

// Run runs the scenario with each strategy as often as o says, in an order that moves on by one each time, so that no strategy always
// follows the same one. On every return the workers are gone and the bench's keys deleted. It returns the problems of o as
// [*OptionError]s, the cause of ctx if that ended first, or what kept it from running; a broken promise is no error.
func Run(ctx context.Context, o *Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	scenario, err := findScenario(o.Scenario)
	if err != nil {
		return nil, err
	}
	kinds, err := o.strategies()
	if err != nil {
		return nil, err
	}
	srv, err := openServer(ctx, o.RedisURL)
	if err != nil {
		return nil, err
	}
	b := &bench{options: o, scenario: scenario, kinds: kinds, server: srv, outcomes: make([][]*Outcome, len(kinds))}
	if err := errors.Join(b.runAll(ctx), srv.close(ctx)); err != nil {
		return nil, err
	}
	return b.report(), nil
}

// bench is a bench under way.
type bench struct {
	options  *Options
	scenario Scenario
	kinds    []kind
	server   *server
	outcomes [][]*Outcome // by kind, then run
	done     int
}

func (b *bench) runAll(ctx context.Context) error {
	for run := range b.options.Runs {
		for i := range b.kinds {
			n := (i + run) % len(b.kinds)
			if err := b.runOne(ctx, n, run); err != nil {
				return err
			}
		}
	}
	return nil
}

// runOne runs the strategy n once, in processes and under keys of its own.
func (b *bench) runOne(ctx context.Context, n, run int) (err error) {
	k := b.kinds[n]
	b.say(Progress{Strategy: k.name, Stage: "starting " + count(b.options.Processes, "process")})
	f, err := startFleet(ctx, b.setup(k, run))
	if err != nil {
		return err
	}
	defer f.close()
	stage := &Stage{Options: b.options, fleet: f, server: b.server}
	b.say(Progress{Strategy: k.name, Stage: "warming up"})
	if err := b.scenario.Setup(ctx, stage); err != nil {
		return err
	}
	b.say(Progress{Strategy: k.name, Stage: "running " + b.scenario.Name()})
	outcome, err := b.scenario.Run(ctx, stage)
	if err != nil {
		return err
	}
	b.outcomes[n] = append(b.outcomes[n], outcome)
	row := newRow(b.scenario, k, b.options, []*Outcome{outcome})
	b.done++
	b.say(Progress{Strategy: k.name, Row: &row})
	return nil
}

func (b *bench) setup(k kind, run int) setup {
	return setup{
		RedisURL: b.server.url, Namespace: fmt.Sprintf("%s%d:%s:", b.server.namespace, run, k.name),
		Strategy: k.name, TTL: b.options.TTL, LoadTimeout: loadBound(b.options.Load),
		Seed: b.options.Seed, Processes: b.options.Processes,
	}
}

func (b *bench) say(p Progress) {
	if b.options.Progress == nil {
		return
	}
	p.Done, p.Total = b.done, b.options.Runs*len(b.kinds)
	b.options.Progress(p)
}

func (b *bench) report() *Report {
	r := &Report{Title: b.scenario.Title(b.options), Server: b.server.String(), verdict: b.scenario.Verdict}
	for i, k := range b.kinds {
		r.Rows = append(r.Rows, newRow(b.scenario, k, b.options, b.outcomes[i]))
	}
	return r
}
