package main

import (
	"strings"
	"testing"
)

func TestRunUsageErrors(t *testing.T) {
	const good = "run --redis redis://localhost --lock a "
	tests := []struct {
		name string
		args string
		want string // in what is printed
	}{
		{"nothing", "run", "--lock"},
		{"no lock", "run --redis redis://localhost true", "--lock"},
		{"empty lock", "run --redis redis://localhost --lock= true", "--lock: must be neither empty"},
		{"lock of no slot", "run --redis redis://localhost --lock }a true", "--lock: must be neither empty nor begin with }"},
		{"no command", good, "<command>"},
		{"no command after dashes", good + "--", "command"},
		{"no Redis", "run --lock a true", "--redis: must be set, or PRIME_REDIS_URL"},
		{"unknown flag", good + "--fast true", "--fast"},
		{"wait and do not", good + "-n -w 1s true", "--wait"},
		{"negative wait", good + "--wait=-1s true", "--wait: must not be negative"},
		{"not a duration", good + "--ttl 5 true", "--ttl"},
		{"short TTL", good + "--ttl 999ms true", "--ttl: must be 1s to 24h, not 999ms"},
		{"long TTL", good + "--ttl 25h true", "--ttl: must be 1s to 24h"},
		{"no holder", good + "--holders 0 true", "--holders: must be 1 to 10000"},
		{"long grace", good + "--ttl 3s --grace 1001ms true", "--grace: must be positive, and at most a third of the TTL, not 1.001s"},
		{"negative grace", good + "--grace=-1s true", "--grace: must be positive"},
		{"negative min hold", good + "--min-hold=-1s true", "--min-hold: must not be negative"},
		{"negative max hold", good + "--max-hold=-1s true", "--max-hold: must not be negative"},
		{"short memory", good + "--slot-ttl 1ms true", "--slot-ttl: must be at least 1s"},
		{"no exit status", good + "-E 256 true", "--busy-status: must be 0 to 255, not 256"},
		{"no other exit status", good + "--ran-status=-1 true", "--ran-status: must be 0 to 255, not -1"},
		{"long info", good + "--info " + strings.Repeat("x", 1025) + " true", "--info: must be at most 1024 bytes long, not 1025"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, stderr := prime(t.Context(), strings.Fields(tt.args)...)
			if status != runUsage || stdout != "" || !strings.Contains(stderr, tt.want) {
				t.Errorf("status %d, stdout %q, stderr %q; want 64, nothing, and %q", status, stdout, stderr, tt.want)
			}
		})
	}
}

func TestRunReportsAllProblems(t *testing.T) {
	_, _, stderr := prime(t.Context(), "run", "--lock", "a", "--ttl", "0s", "-E", "300", "true")
	for _, want := range []string{"--ttl", "--busy-status", "--redis"} {
		if !strings.Contains(stderr, "prime: "+want) {
			t.Errorf("stderr does not say what is wrong with %s:\n%s", want, stderr)
		}
	}
}
