package bench

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/getorprime/getorprime/internal/bench/monotime"
)

// expiry lets a value's time run out again and again while it is read at a steady rate.
func expiry() *Scenario {
	return &Scenario{
		Name:     "expiry",
		About:    "one key is read at a steady rate while its time to live runs out again and again",
		Defaults: Options{Strategies: []string{"none", "singleflight", "classic", "getorprime"}, Processes: 4, TTL: time.Second, Duration: 4 * time.Second},
		Run: func(ctx context.Context, s *Stage) (*Outcome, error) {
			if err := s.fill(ctx, 1); err != nil {
				return nil, err
			}
			return s.steady(ctx, 1)
		},
		Promises: []Promise{
			noErrors,
			{"one load per expiry", func(o *Outcome) bool { return float64(o.Loads) <= 1.5*float64(len(o.Series.Calls))*step.Seconds()+2 }},
		},
		Verdict: func(r *Row) string {
			return fmt.Sprintf("%s; %s waited for one", count(r.Loads, "load"), count(r.Blocked, "call")) + failedWords(r)
		},
	}
}

// steady calls at the options' rate for their duration.
func (s *Stage) steady(ctx context.Context, keys int, events ...event) (*Outcome, error) {
	o := s.Options
	return s.Drive(ctx, drive{Keys: keys, Rate: o.Rate, Callers: 4096, Duration: o.Duration, Load: o.Load}, events...)
}

// earlyKeys is how many keys share the rate: chance needs many expiries to tell.
const earlyKeys = 10

// early compares early refreshes with and without a lease, beside what theory says of them.
func early() *Scenario {
	return &Scenario{
		Name:     "early",
		About:    "10 keys are refreshed before they end (XFetch), by everybody whom chance tells to, or by one of them",
		Defaults: Options{Strategies: []string{"xfetch", "getorprime"}, Processes: 4, TTL: 500 * time.Millisecond, Load: 50 * time.Millisecond, Duration: 10 * time.Second, Rate: 3000},
		Run:      runEarly,
		Promises: []Promise{
			noErrors,
			{"0 blocked reads", func(o *Outcome) bool { return o.Blocked == 0 }},
			{"1 refresh per expiry", func(o *Outcome) bool { return o.Figures[0].Measured <= 1.02 }},
		},
		Verdict: func(r *Row) string {
			return fmt.Sprintf("%.2f refreshes per expiry, where theory says %.2f; %s waited",
				r.Figures[0].Measured, *r.Figures[0].Predicted, count(r.Blocked, "call"))
		},
	}
}

// runEarly counts refreshes by expiry. With reads of a key at a rate r, loads that take δ, and β, theory says (Vattani et al., 2015):
// without a lease e^(1/β) refreshes begin per expiry, the first on average βδ(ln(rβδ) + γ) early, and a reader finds nothing with the
// chance e^(−rβδ).
func runEarly(ctx context.Context, s *Stage) (*Outcome, error) {
	const beta, gamma = 1, 0.5772
	first := s.board.loads.Load()
	if err := s.fill(ctx, earlyKeys); err != nil {
		return nil, err
	}
	o, err := s.steady(ctx, earlyKeys)
	if err != nil {
		return nil, err
	}
	expiries, refreshes, lead := s.expiries(s.board.since(first))
	if expiries == 0 {
		return nil, fmt.Errorf("no value was refreshed within %v: use a longer --duration or a shorter --ttl", s.Options.Duration)
	}
	delta := s.Options.Load.Seconds()
	rbd := s.Options.Rate / earlyKeys * beta * delta
	perExpiry, leadMS, miss := math.Exp(1/float64(beta)), 1000*beta*delta*(math.Log(rbd)+gamma), math.Exp(-rbd)
	if s.ours {
		perExpiry = 1
	}
	o.Figures = []Figure{
		{"refreshes per expiry", "", &perExpiry, float64(refreshes) / float64(expiries)},
		{"how early the first one begins, on average", "ms", &leadMS, float64(lead.Microseconds()) / 1000 / float64(expiries)},
		{"expiries that a read waited for", "", &miss, float64(o.Blocked) / float64(expiries)},
	}
	return o, nil
}

// expiries counts what refreshed the values whose loads began as given, of each key: those that follow each other closely belong to one
// expiry. lead is how early the first ones began, added up.
func (s *Stage) expiries(loads []loadAt) (expiries, refreshes int, lead time.Duration) {
	last := map[int]monotime.Instant{} // by key: when the first load of the latest expiry began
	for _, l := range loads {
		before, known := last[l.key]
		gap := l.at.Sub(before)
		switch {
		case !known || l.key < 0:
			last[l.key] = l.at
		case gap > s.Options.TTL/3:
			last[l.key] = l.at
			expiries++
			refreshes++
			lead += s.Options.TTL + s.Options.Load - gap
		default:
			refreshes++
		}
	}
	return expiries, refreshes, lead
}

// massKeys is how many keys run out together, embeddedKeys how many where the server is the embedded one, which is slow at scripts.
const (
	massKeys     = 10_000
	embeddedKeys = 2_000
)

// massExpiry fills many keys with values that are valid until one instant, and reads on.
func massExpiry() *Scenario {
	return &Scenario{
		Name:  "mass-expiry",
		About: "10,000 values (2,000 on the embedded server) are valid until the same instant: they end together, or spread by jitter",
		Defaults: Options{
			Strategies: []string{"none", "getorprime-fixed", "getorprime-jitter"}, Processes: 4, Callers: 8,
			Load: time.Millisecond, Duration: 5 * time.Second,
		},
		Run:      runMass,
		Promises: []Promise{noErrors},
		Verdict: func(r *Row) string {
			return fmt.Sprintf("%s once all were filled, at most %.0f within 100 ms", count(r.Loads, "load"), r.Figures[0].Measured) + failedWords(r)
		},
	}
}

// runMass fills all keys and then reads until a second and a half after the values end.
func runMass(ctx context.Context, s *Stage) (*Outcome, error) {
	keys := massKeys
	if s.server.embedded != nil {
		keys = embeddedKeys
	}
	reading := drive{Keys: keys, Callers: s.Options.Callers, Load: s.Options.Load, Until: monotime.Now().Add(s.Options.Duration)}
	filling := reading
	filling.Sweep, filling.Duration = true, time.Minute
	if o, err := s.Drive(ctx, filling); err != nil || o.Errors > 0 {
		return o, err
	}
	reading.Duration = max(time.Second, reading.Until.Sub(monotime.Now())) + 1500*time.Millisecond
	o, err := s.Drive(ctx, reading)
	if err == nil {
		o.Figures = []Figure{{"most loads within 100 ms", "loads", nil, float64(peak(o.Series.Loads))}}
	}
	return o, err
}

func peak(all []int) (most int) {
	for _, n := range all {
		most = max(most, n)
	}
	return most
}

// hotKey reads one key as often as the callers can.
func hotKey() *Scenario {
	return &Scenario{
		Name:     "hot-key",
		About:    "one key is read as often as the callers can",
		Defaults: Options{Strategies: []string{"none", "singleflight", "getorprime"}, Processes: 2, Callers: 64, Duration: 3 * time.Second},
		Run: func(ctx context.Context, s *Stage) (*Outcome, error) {
			o, err := s.Drive(ctx, drive{Callers: s.Options.Callers, Duration: s.Options.Duration, Load: s.Options.Load})
			if err == nil {
				o.Figures = []Figure{{"reads per second", "reads/s", nil, float64(o.Calls) / s.Options.Duration.Seconds()}}
			}
			return o, err
		},
		Promises: []Promise{oneLoad, noErrors},
		Verdict: func(r *Row) string {
			return fmt.Sprintf("%s, %.0f reads a second", count(r.Loads, "load"), r.Figures[0].Measured) + failedWords(r)
		},
	}
}
