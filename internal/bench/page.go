package bench

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/getorprime/getorprime/internal/bench/page"
)

// WritePage writes the report as a page with charts, which needs nothing but itself. command is the line that repeats the bench.
func (r *Report) WritePage(w io.Writer, command string) error {
	d := &page.Data{
		Title: "getorprime: the stampede bench", Command: command, Machine: machine(), Versions: versions(),
		When: time.Now().UTC().Format("2 January 2006, 15:04 UTC"), Kept: len(r.Broken()) == 0,
	}
	for _, s := range r.Sections {
		section := page.Section{Scenario: s.Scenario, Title: s.Title, Server: s.Server}
		for _, row := range s.Rows {
			section.Rows = append(section.Rows, row.page())
		}
		d.Sections = append(d.Sections, section)
	}
	return page.Write(w, d)
}

func (r *Row) page() page.Row {
	p := page.Row{
		Strategy: r.Strategy, Ours: r.ours, Loads: r.Loads, Calls: r.Calls, Errors: r.Errors, StaleReads: r.StaleReads,
		P50MS: r.P50MS, P90MS: r.P90MS, P99MS: r.P99MS, P999MS: r.P999MS, MaxMS: r.MaxMS, WakeMS: r.WakeMS,
		RedisCommands: r.RedisCommands, Broken: r.Broken, Verdict: r.Verdict,
	}
	for _, name := range r.promises {
		p.Promises = append(p.Promises, page.Promise{Name: name, Kept: !slices.Contains(r.Broken, name)})
	}
	for _, f := range r.Figures {
		p.Figures = append(p.Figures, page.Figure{Name: f.Name, Unit: f.Unit, Predicted: f.Predicted, Measured: f.Measured})
	}
	if s := r.Series; s != nil {
		p.Series = &page.Series{StepMS: s.StepMS, Loads: s.Loads, Calls: s.Calls, Errors: s.Errors, Waiting: s.Waiting, Stale: s.Stale, Commands: s.Commands}
	}
	return p
}

// machine says what the bench runs on.
func machine() string {
	words := fmt.Sprintf("%s/%s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return words
	}
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return words + ", " + strings.TrimSpace(value)
		}
	}
	return words
}

// versions names those of what took part.
func versions() string {
	words := runtime.Version()
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return words
	}
	for _, dep := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if short := map[string]string{
			"github.com/getorprime/getorprime": "getorprime", "github.com/redis/go-redis/v9": "go-redis", "github.com/alicebob/miniredis/v2": "miniredis",
		}[dep.Path]; short != "" {
			words += ", " + short + " " + dep.Version
		}
	}
	return words
}
