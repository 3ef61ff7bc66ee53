package bench_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/bench"
)

func TestValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*bench.Options)
		want   []string // options named, in order
	}{
		{"as it is", func(*bench.Options) {}, nil},
		{"largest", func(o *bench.Options) {
			o.Processes, o.Callers, o.Load, o.TTL, o.Runs = 256, 128, time.Minute, 24*time.Hour, 100
		}, nil},
		{"smallest", func(o *bench.Options) {
			o.Processes, o.Callers, o.Load, o.TTL, o.Runs = 1, 1, 1, 100*time.Millisecond, 1
		}, nil},
		{"nothing but a scenario", func(o *bench.Options) { *o = bench.Options{Scenario: "early"} }, nil},
		{"nothing at all", func(o *bench.Options) { *o = bench.Options{} }, nil},
		{"many callers in few processes", func(o *bench.Options) { o.Processes, o.Callers = 1, 4096 }, nil},
		{"unknown scenario", func(o *bench.Options) { o.Scenario = "hot" }, []string{"scenario"}},
		{"unknown strategies", func(o *bench.Options) { o.Strategies = []string{"x", "none", "y"} }, []string{"strategy", "strategy"}},
		{"no process", func(o *bench.Options) { o.Processes = -1 }, []string{"processes"}},
		{"too many processes", func(o *bench.Options) { o.Processes = 257 }, []string{"processes"}},
		{"no caller", func(o *bench.Options) { o.Callers = -1 }, []string{"callers"}},
		{"too many callers", func(o *bench.Options) { o.Callers = 4097 }, []string{"callers"}},
		{"too many callers together", func(o *bench.Options) { o.Processes, o.Callers = 256, 4096 }, []string{"callers"}},
		{"negative load", func(o *bench.Options) { o.Load = -1 }, []string{"load"}},
		{"long load", func(o *bench.Options) { o.Load = time.Minute + 1 }, []string{"load"}},
		{"short TTL", func(o *bench.Options) { o.TTL = 100*time.Millisecond - 1 }, []string{"ttl"}},
		{"long TTL", func(o *bench.Options) { o.TTL = 24*time.Hour + 1 }, []string{"ttl"}},
		{"negative rate", func(o *bench.Options) { o.Rate = -1 }, []string{"rate"}},
		{"long duration", func(o *bench.Options) { o.Duration = time.Hour }, []string{"duration"}},
		{"no run", func(o *bench.Options) { o.Runs = -1 }, []string{"runs"}},
		{"too many runs", func(o *bench.Options) { o.Runs = 101 }, []string{"runs"}},
		{"not a URL of Redis", func(o *bench.Options) { o.RedisURL = "http://localhost" }, []string{"redis"}},
		{"all at once", func(o *bench.Options) { o.Processes, o.Load, o.Runs = -1, -1, -1 }, []string{"processes", "load", "runs"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options()
			tt.change(o)
			err := o.Validate()
			var lines []string
			if err != nil {
				lines = strings.Split(err.Error(), "\n")
			}
			if len(lines) != len(tt.want) {
				t.Fatalf("Validate = %v, want %d problems", err, len(tt.want))
			}
			for i, line := range lines {
				if !strings.HasPrefix(line, "--"+tt.want[i]+": ") {
					t.Errorf("problem %q does not begin with --%s", line, tt.want[i])
				}
			}
		})
	}
}

func TestRunRefusesInvalidOptions(t *testing.T) {
	o := options()
	o.Runs = -1
	_, err := bench.Run(t.Context(), o)
	var problem *bench.OptionError
	if !errors.As(err, &problem) || problem.Option != "runs" {
		t.Errorf("Run = %v, want an *OptionError for runs", err)
	}
}

func TestPasswordStaysOutOfProblems(t *testing.T) {
	for _, url := range []string{"redis://u:secret@h:bad/0", "redis://u:secret@h/notanumber", "redis://u:sec%zzret@h", "secret"} {
		o := options()
		o.RedisURL = url
		if err := o.Validate(); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: Validate = %v, want an error without the password", url, err)
		}
	}
}
