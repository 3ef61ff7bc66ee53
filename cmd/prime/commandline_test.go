package main

import (
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
)

func TestHelpGolden(t *testing.T) {
	tests := []struct {
		file string
		args []string
	}{
		{"help.txt", []string{"--help"}},
		{"bench-help.txt", []string{"bench", "--help"}},
		{"run-help.txt", []string{"run", "--help"}},
		{"locks-help.txt", []string{"locks", "--help"}},
		{"version-help.txt", []string{"version", "--help"}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			status, stdout, stderr := prime(t.Context(), tt.args...)
			if status != exitOK || stderr != "" {
				t.Errorf("status %d, stderr %q; want 0 and nothing", status, stderr)
			}
			golden(t, tt.file, stdout)
		})
	}
}

func TestUsageErrors(t *testing.T) {
	tests := []struct {
		name string
		args string
		want string // in what is printed
	}{
		{"nothing", "", "expected one of"},
		{"unknown command", "dance", "dance"},
		{"unknown flag", "bench --fast", "--fast"},
		{"argument", "bench all", "all"},
		{"not a number", "bench --callers many", "--callers"},
		{"not a duration", "bench --load 5", "--load"},
		{"negative seed", "bench --seed -1", "--seed"},
		{"negative processes", "bench --processes=-1", "--processes: must be 1 to 256, not -1"},
		{"too many processes", "bench --processes 257", "--processes: must be 1 to 256, not 257"},
		{"too many callers", "bench --callers 4097", "--callers: must be 1 to 4096, not 4097"},
		{"too many together", "bench --processes 256 --callers 4096", "--callers: 256 processes × 4096 callers"},
		{"negative runs", "bench --runs=-1", "--runs"},
		{"negative load", "bench --load=-1s", "--load: must be 0s to 1m0s"},
		{"short TTL", "bench --ttl 1ms", "--ttl: must be 100ms"},
		{"unknown strategy", "bench --strategy none,luck", `--strategy: "luck" is not one of none`},
		{"unknown scenario", "bench --scenario hot", `--scenario: "hot" is not one of cold`},
		{"not a URL of Redis", "bench --redis http://h", "--redis: not a URL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, stderr := prime(t.Context(), strings.Fields(tt.args)...)
			if status != exitUsage || stdout != "" || !strings.Contains(stderr, tt.want) {
				t.Errorf("status %d, stdout %q, stderr %q; want 2, nothing, and %q", status, stdout, stderr, tt.want)
			}
			for line := range strings.Lines(stderr) {
				if !strings.HasPrefix(line, "prime: ") {
					t.Errorf("line %q does not say who complains", line)
				}
			}
		})
	}
}

func TestAllProblemsAreReported(t *testing.T) {
	_, _, stderr := prime(t.Context(), "bench", "--processes=-1", "--runs=-1")
	if got := strings.Count(stderr, "\n"); got != 2 {
		t.Errorf("%d lines, want one for each of two problems:\n%s", got, stderr)
	}
}

func TestVersion(t *testing.T) {
	status, stdout, stderr := prime(t.Context(), "version")
	if status != exitOK || stderr != "" || !strings.HasPrefix(stdout, "prime ") || !strings.Contains(stdout, runtime.Version()) {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	_, stdout, _ = prime(t.Context(), "version", "--json")
	var got map[string]string
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if got["version"] == "" || got["go"] != runtime.Version() || got["platform"] != runtime.GOOS+"/"+runtime.GOARCH {
		t.Errorf("version --json = %v", got)
	}
}

func TestUnwritableOutputIsAFailure(t *testing.T) {
	closed, w := io.Pipe()
	closed.CloseWithError(errors.New("disk full"))
	var stderr strings.Builder
	if status := run(t.Context(), []string{"version"}, w, &stderr); status != exitFailure || !strings.Contains(stderr.String(), "disk full") {
		t.Errorf("status %d, stderr %q; want 1 and the reason", status, stderr.String())
	}
}
