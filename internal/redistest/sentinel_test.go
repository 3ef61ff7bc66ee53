package redistest_test

import (
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/redistest"
)

// TestSentinel kills the primary and expects the client to find the other one.
func TestSentinel(t *testing.T) {
	s := redistest.StartSentinel(t)
	client := s.Client(t)
	if err := client.Set(t.Context(), "k", "v", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if s.Promoted() {
		t.Error("the replica is the primary before any failover")
	}
	replica := s.Replica.Client(t)
	redistest.Eventually(t, 5*time.Second, func() bool {
		return replica.Get(t.Context(), "k").Val() == "v"
	}, "the replica has the key")
	s.Primary.Kill()
	began := time.Now()
	redistest.Eventually(t, 20*time.Second, s.Promoted, "promotion of the replica")
	redistest.Eventually(t, 20*time.Second, func() bool {
		return client.Get(t.Context(), "k").Val() == "v"
	}, "the client finds the new primary")
	t.Logf("failover took %v", time.Since(began))
}
