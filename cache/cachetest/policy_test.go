package cachetest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/cache/cachetest"
	"github.com/getorprime/getorprime/loader"
)

// step is one call, after some time has passed and something was done.
type step struct {
	after time.Duration
	do    func(*testing.T, *cache.Keyspace[string])
	loads error // what loads come to from now on; nil: to the next version

	want  string
	stale bool
	err   error
}

func invalidate(t *testing.T, k *cache.Keyspace[string]) { must(t, k.Invalidate(t.Context(), "a")) }

func markStale(t *testing.T, k *cache.Keyspace[string]) { must(t, k.MarkStale(t.Context(), "a")) }

func set(t *testing.T, k *cache.Keyspace[string]) { must(t, k.Set(t.Context(), "a", "set")) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// In each case the first load of the key comes to v1, the next to v2.
var policies = []struct {
	name   string
	policy cache.Policy
	steps  []step
	loads  int
}{
	{
		"a TTL of hours",
		cache.Policy{TTL: 6 * time.Hour},
		[]step{
			{want: "v1"},
			{after: 5 * time.Hour, want: "v1"},
			{after: time.Hour - time.Minute, want: "v1"},
			{after: time.Minute, want: "v2"},
			{after: 6 * time.Hour, want: "v3"},
		},
		3,
	},
	{
		"a TTL of a millisecond",
		cache.Policy{TTL: time.Millisecond},
		[]step{{want: "v1"}, {after: time.Millisecond, want: "v2"}, {after: time.Millisecond, want: "v3"}},
		3,
	},
	{
		"a TTL of ten years",
		cache.Policy{TTL: 87600 * time.Hour},
		[]step{{want: "v1"}, {after: 87599 * time.Hour, want: "v1"}, {after: time.Hour, want: "v2"}},
		2,
	},
	{
		"no time at all",
		cache.Policy{TTL: time.Minute},
		[]step{{want: "v1"}, {after: 0, want: "v1"}},
		1,
	},
	{
		"stale while revalidate",
		cache.Policy{TTL: time.Hour, StaleWhileRevalidate: 2 * time.Hour},
		[]step{
			{want: "v1"},
			{after: 90 * time.Minute, want: "v1", stale: true},
			{want: "v2"},
			{after: time.Hour, want: "v2", stale: true},
		},
		3,
	},
	{
		"stale past the window: hard expiry",
		cache.Policy{TTL: time.Hour, StaleWhileRevalidate: 2 * time.Hour},
		[]step{{want: "v1"}, {after: 3 * time.Hour, want: "v2"}},
		2,
	},
	{
		"stale if error",
		cache.Policy{TTL: time.Hour, StaleIfError: 24 * time.Hour},
		[]step{
			{want: "v1"},
			{after: time.Hour, loads: errBroken, want: "v1", stale: true},
			{after: 23 * time.Hour, loads: errBroken, want: "v1", stale: true},
			{after: 30 * time.Minute, want: "v4"},
		},
		4,
	},
	{
		"an error past the window: hard expiry",
		cache.Policy{TTL: time.Hour, StaleIfError: 24 * time.Hour},
		[]step{{want: "v1"}, {after: 25 * time.Hour, loads: errBroken, err: errBroken}},
		2,
	},
	{
		"stale if error, but it works",
		cache.Policy{TTL: time.Hour, StaleIfError: 24 * time.Hour},
		[]step{{want: "v1"}, {after: time.Hour, want: "v2"}},
		2,
	},
	{
		"not found is kept",
		cache.Policy{TTL: 24 * time.Hour, NotFoundTTL: 30 * time.Minute},
		[]step{
			{loads: loader.ErrNotFound, err: loader.ErrNotFound},
			{after: 29 * time.Minute, err: loader.ErrNotFound},
			{after: time.Minute, want: "v2"},
			{after: 23 * time.Hour, want: "v2"},
		},
		2,
	},
	{
		"an error cools down",
		cache.Policy{ErrorCooldown: time.Hour, ErrorCooldownMax: 3 * time.Hour},
		[]step{
			{loads: errBroken, err: errBroken},
			{after: 59 * time.Minute, err: errBroken},
			{after: time.Minute, loads: errBroken, err: errBroken},
		},
		2,
	},
	{
		"invalidated",
		cache.Policy{TTL: 24 * time.Hour},
		[]step{{want: "v1"}, {after: time.Hour, do: invalidate, want: "v2"}, {after: 23 * time.Hour, want: "v2"}, {after: time.Hour, want: "v3"}},
		3,
	},
	{
		"marked stale",
		cache.Policy{TTL: 24 * time.Hour},
		[]step{{want: "v1"}, {after: time.Hour, do: markStale, want: "v1", stale: true}, {want: "v2"}},
		2,
	},
	{
		"set",
		cache.Policy{TTL: 24 * time.Hour},
		[]step{{want: "v1"}, {after: 23 * time.Hour, do: set, want: "set"}, {after: 23 * time.Hour, want: "set"}, {after: time.Hour, want: "v2"}},
		2,
	},
}

func TestPolicies(t *testing.T) {
	for _, c := range policies {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ca, clock := cachetest.New(t, nil)
			var s source
			k := register(t, ca, s.load, c.policy)
			for i, step := range c.steps {
				clock.Advance(step.after)
				s.answers(step.loads)
				if step.do != nil {
					step.do(t, k)
				}
				got, err := k.Fetch(t.Context(), "a")
				if got.Value != step.want || got.Stale != step.stale || !errors.Is(err, step.err) {
					t.Errorf("call %d: got %q, stale %v, %v; want %q, stale %v, %v", i+1, got.Value, got.Stale, err, step.want, step.stale, step.err)
				}
				clock.Settle()
			}
			if got := s.count(); got != c.loads {
				t.Errorf("%d loads, want %d", got, c.loads)
			}
		})
	}
}

// TestAgeAndTTL checks that what a result says of itself goes by the clock too.
func TestAgeAndTTL(t *testing.T) {
	c, clock := cachetest.New(t, nil)
	var s source
	k := register(t, c, s.load, cache.Policy{TTL: 24 * time.Hour})
	if _, err := k.Fetch(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	clock.Advance(7 * time.Hour)
	got, err := k.Fetch(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if got.Age < 7*time.Hour || got.Age > 7*time.Hour+time.Minute || got.TTL > 17*time.Hour || got.TTL < 17*time.Hour-time.Minute {
		t.Errorf("age %v, TTL %v; want 7h and 17h", got.Age, got.TTL)
	}
}

func TestPeekAfterExpiry(t *testing.T) {
	c, clock := cachetest.New(t, nil)
	var s source
	k := register(t, c, s.load, cache.Policy{TTL: time.Hour})
	if _, err := k.GetOrPrime(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if got, err := k.Peek(t.Context(), "a"); got != "v1" || err != nil {
		t.Errorf("before: %q, %v; want v1", got, err)
	}
	clock.Advance(time.Hour)
	if _, err := k.Peek(t.Context(), "a"); !errors.Is(err, cache.ErrMiss) {
		t.Errorf("after: %v, want %v", err, cache.ErrMiss)
	}
}
