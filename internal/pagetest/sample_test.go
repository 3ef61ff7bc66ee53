package pagetest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/getorprime/getorprime/internal/bench/page"
)

const (
	sampleProcesses = 8
	sampleCallers   = 64
)

// habit is how a strategy behaves when a key is absent and all callers want it.
type habit struct {
	name   string
	ours   bool
	loads  int     // for each time the key is absent
	wakeMS float64 // from the end of a load to the last caller's return
	keeps  func(scenario string) bool
	stale  int // stale reads for each invalidation
	perGet int // commands for each call
}

func keepsAll(string) bool  { return true }
func keepsNone(string) bool { return false }

var habits = []habit{
	{"none", false, sampleProcesses * sampleCallers, 14, keepsNone, 41, 2},
	{"singleflight", false, sampleProcesses, 9, keepsNone, 17, 2},
	{"classic", false, 1, 512, func(s string) bool { return s == "cold" || s == "expiry" }, 23, 4},
	{"lock", false, 1, 103, func(s string) bool { return s != "killed" && s != "invalidate" }, 12, 5},
	{"xfetch", false, 3, 11, func(s string) bool { return s == "refresh" }, 29, 2},
	{"rueidisaside", false, 1, 6.5, func(s string) bool { return s != "outage" && s != "slow" && s != "maxmemory" }, 0, 1},
	{"getorprime", true, 1, 3.4, keepsAll, 0, 1},
}

// happening is a scenario: how long it is, and when the key is absent.
type happening struct {
	name, title string
	steps       int
	stepMS      float64
	every       int // steps from one absence to the next, 0 for one at the start
	loadMS      float64
	stale       bool // stale reads can happen
	failing     bool // errors can happen
	predicted   bool
	promises    []string
}

var happenings = []happening{
	{"cold", "8 processes × 64 callers on one absent key, a load takes 100ms; 3 runs", 60, 10, 0, 100, false, false, false, []string{"G1 one load", "G3/G7 no errors", "equal answers", "nobody stuck"}},
	{"expiry", "steady reads over ten expiries, a load takes 100ms", 2000, 5, 200, 100, false, false, false, []string{"G1 one load", "G9 never past hard expiry"}},
	{"refresh", "early refresh with β = 1 over ten expiries", 2000, 5, 200, 100, false, false, true, []string{"G1 one refresh", "nobody waits"}},
	{"invalidate", "100 invalidations a second on one hot key under load", 2000, 5, 100, 20, true, false, false, []string{"G1 one load", "G2 no stale fill", "nobody starves"}},
	{"killed", "the process that loads is killed with SIGKILL halfway", 600, 10, 300, 500, false, false, false, []string{"G1 one load and one per lease lost", "nobody stuck"}},
	{"paused", "the process that loads is stopped for 3s, another loads meanwhile", 800, 10, 400, 500, true, false, false, []string{"G2 no stale fill", "nobody stuck"}},
	{"failing", "the origin fails for 10s", 1500, 10, 250, 50, false, true, false, []string{"G5 one attempt per cool-down", "every process hears the cause"}},
	{"outage", "Redis is away for 5s", 1500, 10, 500, 50, false, true, false, []string{"G7 bounded by the budget", "heals"}},
	{"slow", "Redis answers after 300ms for 5s", 1500, 10, 500, 50, false, true, false, []string{"G7 bounded by the budget"}},
	{"hot", "one key, 512 callers, all hits", 1000, 10, 0, 5, false, false, false, []string{"no loads"}},
	{"many", "10 000 keys expire in a window of 60s", 1200, 50, 120, 100, false, false, true, []string{"expiries spread over 80 %"}},
	{"tags", "one tag of 1000 keys is invalidated every second", 1000, 10, 100, 30, true, true, false, []string{"G2 no stale fill", "G1 one load"}},
	{"leaving", "a caller leaves every 10ms", 400, 10, 50, 200, false, false, false, []string{"G3 your context is yours"}},
	{"maxmemory", "Redis is full, noeviction", 500, 10, 60, 50, false, true, false, []string{"values are returned", "leases are released"}},
}

// sample is a report as a bench on a common machine would write it: of the scenarios named, or of all.
func sample(names ...string) *page.Data {
	d := &page.Data{
		Title: "Stampede bench", Kept: true, When: "2026-03-14 15:09 UTC",
		Command:  "prime bench --scenario all --processes 8 --callers 64 --load 100ms --runs 3 --seed 1 --redis redis://127.0.0.1:6379/0 --html report.html",
		Machine:  "AMD EPYC 7B13, 8 cores, Linux 6.12, amd64",
		Versions: "Go 1.26.1, Redis 7.2.5, getorprime v0.4.0",
	}
	dice := rand.New(rand.NewPCG(1, 2))
	for _, h := range happenings {
		if len(names) > 0 && !slices.Contains(names, h.name) {
			continue
		}
		s := page.Section{Scenario: h.name, Title: h.name + ": " + h.title, Server: "Redis 7.2.5 at 127.0.0.1:6379, standalone"}
		for _, who := range habits {
			s.Rows = append(s.Rows, h.row(who, dice))
		}
		d.Sections = append(d.Sections, s)
	}
	return d
}

func (h happening) row(who habit, dice *rand.Rand) page.Row {
	series := h.series(who, dice)
	wake := who.wakeMS * (0.9 + 0.2*dice.Float64())
	hit := 0.25 + 0.1*dice.Float64()
	r := page.Row{
		Strategy: who.name, Ours: who.ours, Series: series, WakeMS: &wake,
		Loads: sum(series.Loads), Calls: sum(series.Calls), Errors: sum(series.Errors),
		P50MS: hit, P90MS: hit * 2.2, P99MS: h.loadMS + wake*0.4, P999MS: h.loadMS + wake*0.8, MaxMS: h.loadMS + wake,
	}
	if h.every == 0 {
		r.P50MS, r.P90MS = h.loadMS+wake*0.2, h.loadMS+wake*0.35
	}
	commands := int64(0)
	for _, n := range series.Commands {
		commands += n
	}
	r.RedisCommands = &commands
	if h.stale {
		n := sum(series.Stale)
		r.StaleReads = &n
	}
	h.judge(&r, who)
	if h.predicted {
		r.Figures = h.figures(r, who)
	}
	return r
}

func (h happening) judge(r *page.Row, who habit) {
	kept := who.keeps(h.name)
	for i, name := range h.promises {
		p := page.Promise{Name: name, Kept: kept || i > 1}
		r.Promises = append(r.Promises, p)
		if !p.Kept {
			r.Broken = append(r.Broken, name)
		}
	}
	r.Verdict = fmt.Sprintf("%s: %d loads for %d calls; last caller back %.1f ms after the load ended", who.name, r.Loads, r.Calls, *r.WakeMS)
	if r.Errors > 0 {
		r.Verdict += fmt.Sprintf("; %d calls failed (cache: redis did not answer within its budget)", r.Errors)
	}
}

func (h happening) figures(r page.Row, who habit) []page.Figure {
	refreshes, early, rate := math.E, 87.5, 0.0021
	absences := float64(max(1, h.steps/max(1, h.every)))
	figures := []page.Figure{{Name: "refreshes per expiry", Predicted: &refreshes, Measured: float64(r.Loads) / absences}}
	if who.loads < sampleProcesses {
		figures = append(figures,
			page.Figure{Name: "mean earliness of a refresh", Unit: "ms", Predicted: &early, Measured: early * (0.8 + who.wakeMS/1000)},
			page.Figure{Name: "chance of a hard miss", Predicted: &rate, Measured: rate * (1 + who.wakeMS/400)},
			page.Figure{Name: "longest gap between refreshes", Unit: "ms", Measured: 1043})
	}
	return figures
}

// series plays the scenario step by step.
func (h happening) series(who habit, dice *rand.Rand) *page.Series {
	s := &page.Series{StepMS: h.stepMS}
	waitSteps := max(1, int((h.loadMS+who.wakeMS)/h.stepMS))
	since := waitSteps + 1
	for i := range h.steps {
		absent := i == 0 || h.every > 0 && i%h.every == 0
		if absent {
			since = 0
		}
		s.Loads = append(s.Loads, when(absent, who.loads+dice.IntN(1+who.loads/8)))
		s.Waiting = append(s.Waiting, when(since < waitSteps, sampleProcesses*sampleCallers*(waitSteps-since)/waitSteps))
		calls := 180 + dice.IntN(60)
		if h.every == 0 && h.name == "cold" {
			calls = when(absent, sampleProcesses*sampleCallers)
		}
		s.Calls = append(s.Calls, calls)
		s.Commands = append(s.Commands, int64(calls*who.perGet+when(absent, 3*who.loads)))
		s.Stale = append(s.Stale, when(h.stale && since < 4, who.stale*(4-since)/4))
		s.Errors = append(s.Errors, when(h.failing && i > h.steps/3 && i < h.steps/3+30 && !who.ours, dice.IntN(20)))
		since++
	}
	return s
}

// when returns n if it is so, else 0.
func when(so bool, n int) int {
	if so {
		return n
	}
	return 0
}

func sum(numbers []int) int {
	total := 0
	for _, n := range numbers {
		total += n
	}
	return total
}
