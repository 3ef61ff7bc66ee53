package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// What may be asked of a bench. MaxTotalCallers bounds the callers of all processes together, each a goroutine with a stack.
const (
	MaxProcesses    = 256
	MaxCallers      = 4096
	MaxTotalCallers = 32768
	MaxRuns         = 100
	MaxLoad         = time.Minute
	MinTTL          = 100 * time.Millisecond
	MaxTTL          = 24 * time.Hour
	MaxDuration     = 10 * time.Minute
	MaxRate         = 100_000
)

// Options says what [Run] does. What is left out (0, "" or nil) is the scenario's default.
type Options struct {
	// Scenario is one of [ScenarioNames], or "" for a tour of some.
	Scenario string
	// Strategies are some of [StrategyNames], in the order of the rows; a repeated name counts once.
	Strategies []string
	// Processes is the number of worker processes, 1 to [MaxProcesses].
	Processes int
	// Callers is the number of concurrent callers in each process, 1 to [MaxCallers].
	Callers int
	// Rate is how many calls are made per second by all processes together, where a scenario has a steady rate. At most [MaxRate].
	Rate float64
	// Load is how long the data source takes for one load, up to [MaxLoad].
	Load time.Duration
	// TTL is how long strategies keep a value, [MinTTL] to [MaxTTL].
	TTL time.Duration
	// Duration is how long calls are made, where a scenario takes some time. At most [MaxDuration].
	Duration time.Duration
	// Runs is how often each strategy runs; the rows hold medians. 1 to [MaxRuns].
	Runs int
	// Seed makes payloads and arrivals repeatable.
	Seed uint64
	// RedisURL is the server to use, as redis://, rediss:// or unix://; "" starts an embedded one.
	RedisURL string
	// Destructive lets a scenario do what touches all that is in the server at RedisURL, FLUSHALL. On the embedded one it always may.
	Destructive bool
	// Progress, if not nil, hears of each step, one call at a time.
	Progress func(Progress)
}

// withDefaults fills in what is left out.
func (o *Options) withDefaults(s *Scenario) *Options {
	d := *o
	for _, from := range []*Options{&s.Defaults, &usual} {
		fill(&d.Processes, from.Processes)
		fill(&d.Callers, from.Callers)
		fill(&d.Rate, from.Rate)
		fill(&d.Load, from.Load)
		fill(&d.TTL, from.TTL)
		fill(&d.Duration, from.Duration)
		fill(&d.Runs, from.Runs)
		fill(&d.Seed, from.Seed)
		if len(d.Strategies) == 0 {
			d.Strategies = from.Strategies
		}
	}
	return &d
}

// fill sets *p to v if it is zero.
func fill[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// Progress is a step of a bench that began or, with Stage "" and Row set, one run of a strategy that ended.
type Progress struct {
	Scenario    string
	Strategy    string
	Stage       string // what begins: "starting 8 processes"
	Row         *Row   // figures of the run that ended, else nil
	Done, Total int    // runs ended, runs in all
}

// OptionError is a value that an option cannot have. Its text begins with the flag that sets the option.
type OptionError struct {
	Option  string // the flag without dashes: "processes"
	Problem string
}

func (e *OptionError) Error() string { return "--" + e.Option + ": " + e.Problem }

// Validate returns nil or all problems joined, each an [*OptionError].
func (o *Options) Validate() error {
	if o.Scenario == "" {
		return o.withDefaults(cold()).problems()
	}
	if err := oneOf("scenario", o.Scenario, ScenarioNames()); err != nil {
		return errors.Join(err, o.withDefaults(cold()).problems())
	}
	return o.withDefaults(mustFind(o.Scenario)).problems()
}

func (o *Options) problems() error {
	return errors.Join(
		o.validateStrategies(),
		within("processes", o.Processes, 1, MaxProcesses),
		within("callers", o.Callers, 1, MaxCallers),
		o.validateTotal(),
		within("rate", o.Rate, 0, MaxRate),
		within("load", o.Load, 0, MaxLoad),
		within("ttl", o.TTL, MinTTL, MaxTTL),
		within("duration", o.Duration, 0, MaxDuration),
		within("runs", o.Runs, 1, MaxRuns),
		o.validateRedis(),
	)
}

func (o *Options) validateStrategies() error {
	var errs []error
	for _, name := range o.Strategies {
		errs = append(errs, oneOf("strategy", name, StrategyNames()))
	}
	return errors.Join(errs...)
}

// validateTotal speaks only when both factors are fine by themselves.
func (o *Options) validateTotal() error {
	total := o.Processes * o.Callers
	if o.Processes > MaxProcesses || o.Callers > MaxCallers || total <= MaxTotalCallers {
		return nil
	}
	return &OptionError{"callers", fmt.Sprintf("%d processes × %d callers are %d callers together, more than %d", o.Processes, o.Callers, total, MaxTotalCallers)}
}

func (o *Options) validateRedis() error {
	if o.RedisURL == "" {
		return nil
	}
	if _, err := clientOptions(o.RedisURL, o.Processes); err != nil {
		return &OptionError{"redis", err.Error()}
	}
	return nil
}

// strategies returns the strategies named, each once.
func (o *Options) strategies() ([]kind, error) {
	var found []kind
	for i, name := range o.Strategies {
		if slices.Contains(o.Strategies[:i], name) {
			continue
		}
		k, err := findKind(name)
		if err != nil {
			return nil, err
		}
		found = append(found, k)
	}
	return found, nil
}

func oneOf(option, got string, names []string) error {
	if slices.Contains(names, got) {
		return nil
	}
	return &OptionError{option, fmt.Sprintf("%q is not one of %s", got, strings.Join(names, ", "))}
}

func within[T int | float64 | time.Duration](option string, got, low, high T) error {
	if low <= got && got <= high {
		return nil
	}
	return &OptionError{option, fmt.Sprintf("must be %v to %v, not %v", low, high, got)}
}
