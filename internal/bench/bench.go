package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
)

// runScenario runs one scenario with options that leave nothing to defaults.
func runScenario(ctx context.Context, o *Options) (*Section, error) {
	scenario := mustFind(o.Scenario)
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
	return b.section(), nil
}

// bench is a scenario under way.
type bench struct {
	options  *Options
	scenario *Scenario
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
func (b *bench) runOne(ctx context.Context, n, run int) error {
	k := b.kinds[n]
	b.say(Progress{Strategy: k.name, Stage: "starting " + count(b.options.Processes, "process")})
	stage, err := b.open(ctx, k, run)
	if err != nil {
		return err
	}
	defer stage.close()
	b.say(Progress{Strategy: k.name, Stage: "warming up"})
	if err := stage.warmUp(ctx); err != nil {
		return err
	}
	b.say(Progress{Strategy: k.name, Stage: "running " + b.scenario.Name})
	outcome, err := b.scenario.Run(ctx, stage)
	if err != nil {
		return err
	}
	b.outcomes[n] = append(b.outcomes[n], outcome)
	row := newRow(b.scenario, k, b.options, []*Outcome{outcome})
	b.done++
	b.say(Progress{Strategy: k.name, Row: row})
	return nil
}

// open sets the stage for one run of a strategy.
func (b *bench) open(ctx context.Context, k kind, run int) (s *Stage, err error) {
	s = &Stage{Options: b.options, ours: k.ours, server: b.server, namespace: fmt.Sprintf("%s%d:%s:", b.server.namespace, run, k.name)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	file, err := newBoardFile()
	if err != nil {
		return s, err
	}
	// Whoever has mapped it goes on without its name.
	defer os.Remove(file)
	if s.board, s.unmap, err = openBoard(file); err != nil {
		return s, err
	}
	set := setup{
		RedisURL: b.server.url, Namespace: s.namespace, Board: file, Strategy: k.name, TTL: b.options.TTL,
		LoadTimeout: loadBound(b.options.Load), Budget: cmp.Or(b.scenario.Budget, loadSlack), Seed: b.options.Seed, Processes: b.options.Processes,
	}
	if b.scenario.Faults {
		if s.proxy, set.RedisURL, err = b.server.behindProxy(); err != nil {
			return s, err
		}
	}
	s.fleet, err = startFleet(ctx, set)
	return s, err
}

// close ends the workers and takes the stage down.
func (s *Stage) close() {
	if s.fleet != nil {
		s.fleet.close()
	}
	if s.proxy != nil {
		s.proxy.Close()
	}
	if s.unmap != nil {
		s.unmap()
	}
}

func (b *bench) say(p Progress) {
	if b.options.Progress == nil {
		return
	}
	p.Scenario, p.Done, p.Total = b.scenario.Name, b.done, b.options.Runs*len(b.kinds)
	b.options.Progress(p)
}

func (b *bench) section() *Section {
	s := &Section{Scenario: b.scenario.Name, Title: b.title(), Server: b.server.String()}
	for i, k := range b.kinds {
		s.Rows = append(s.Rows, newRow(b.scenario, k, b.options, b.outcomes[i]))
	}
	compare(s.Rows)
	return s
}

// title is the heading of the scenario's table.
func (b *bench) title() string {
	o := b.options
	return fmt.Sprintf("%s: %s; %s × %s, a load takes %v; %s", b.scenario.Name, b.scenario.About,
		count(o.Processes, "process"), count(o.Callers, "caller"), o.Load, count(o.Runs, "run"))
}
