package bench

import (
	"context"
	"fmt"
	"io"
	"time"
)

// tour is what is run where no scenario is named: the story of a stampede in some two minutes.
var tour = []Options{
	{Scenario: "cold"},
	{Scenario: "failing-loader", Strategies: []string{"lock-only", "getorprime"}},
	{Scenario: "leader-killed", Strategies: []string{"classic", "getorprime"}},
	{Scenario: "expiry", Strategies: []string{"none", "classic", "getorprime"}, Duration: 5 * time.Second},
	{Scenario: "early", Duration: 8 * time.Second},
	{Scenario: "invalidate-storm", Strategies: []string{"classic", "lock-only", "getorprime"}, Duration: 4 * time.Second},
	{Scenario: "redis-outage", Strategies: []string{"getorprime"}},
	{Scenario: "lost-messages"},
}

// stops returns the options of each scenario to run, defaults filled in: the one named, or those of the tour, with what o says of them all.
func (o *Options) stops() []*Options {
	if o.Scenario != "" {
		return []*Options{o.withDefaults(mustFind(o.Scenario))}
	}
	var all []*Options
	for _, stop := range tour {
		own := *o
		own.Scenario = stop.Scenario
		if len(own.Strategies) == 0 {
			own.Strategies = stop.Strategies
		}
		fill(&own.Duration, stop.Duration)
		all = append(all, own.withDefaults(mustFind(own.Scenario)))
	}
	return all
}

// Run runs the scenario, or the tour if none is named, with each strategy as often as o says, in an order that moves on by one each time,
// so that no strategy always follows the same one. On every return the workers are gone and the bench's keys deleted. It returns the
// problems of o as [*OptionError]s, the cause of ctx if that ended first, or what kept it from running; a broken promise is no error.
func Run(ctx context.Context, o *Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	stops := o.stops()
	total, done := 0, 0
	for _, stop := range stops {
		total += stop.total()
	}
	report := &Report{}
	for _, stop := range stops {
		said := o.Progress
		if said != nil {
			stop.Progress = func(p Progress) {
				p.Done, p.Total = p.Done+done, total
				said(p)
			}
		}
		s, err := runScenario(ctx, stop)
		if err != nil {
			return nil, err
		}
		report.Sections = append(report.Sections, s)
		done += stop.total()
	}
	return report, nil
}

// total is how many runs the options ask for.
func (o *Options) total() int {
	kinds, _ := o.strategies()
	return o.Runs * len(kinds)
}

// WriteList writes the names of all scenarios and strategies and what they stand for.
func WriteList(w io.Writer) error {
	fmt.Fprintln(w, "scenarios:")
	for _, s := range scenarios {
		fmt.Fprintf(w, "  %-17s %s\n", s.Name, s.About)
	}
	fmt.Fprintln(w, "strategies:")
	for _, k := range strategies {
		if _, err := fmt.Fprintf(w, "  %-17s %s\n", k.name, k.about); err != nil {
			return err
		}
	}
	return nil
}
