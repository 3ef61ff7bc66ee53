package cache

import (
	"math"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/entry"
)

// TestJudge tables the boundaries of every age: fresh until 1000, stale for 200
// ms more, a fallback for 500, gone for good at HardUntil.
func TestJudge(t *testing.T) {
	lease := entry.Token{1}
	value := entry.Header{State: entry.Value, WrittenAt: 0, FreshUntil: 1000, HardUntil: 1500}
	swr, sie := &Policy{StaleWhileRevalidate: 200 * time.Millisecond}, &Policy{StaleWhileRevalidate: 200 * time.Millisecond, StaleIfError: 500 * time.Millisecond}
	with := func(h entry.Header, change func(*entry.Header)) entry.Header { change(&h); return h }
	for _, c := range []struct {
		name string
		h    entry.Header
		now  int64
		p    *Policy
		want verdict
	}{
		{"just before its expiry", value, 999, sie, fresh},
		{"at its expiry", value, 1000, sie, stale},
		{"without windows", value, 1000, &Policy{}, missing},
		{"at the end of the stale window", value, 1199, sie, stale},
		{"past the stale window", value, 1200, sie, fallback},
		{"past the stale window, no other", value, 1200, swr, missing},
		{"just before its hard expiry", value, 1499, sie, fallback},
		{"at its hard expiry", value, 1500, sie, missing},
		{"a shorter hard expiry than the policy's", with(value, func(h *entry.Header) { h.HardUntil = 1100 }), 1100, sie, missing},
		{"marked, fresh", with(value, func(h *entry.Header) { h.Flags = entry.Marked }), 10, sie, stale},
		{"marked, late", with(value, func(h *entry.Header) { h.Flags = entry.Marked }), 1499, &Policy{}, stale},
		{"marked, at its hard expiry", with(value, func(h *entry.Header) { h.Flags = entry.Marked }), 1500, sie, missing},
		{"being loaded", with(value, func(h *entry.Header) { h.Lease, h.LeaseUntil = lease, 9000 }), 1100, sie, stale},
		{"not found", entry.Header{State: entry.Negative, FreshUntil: 1000, HardUntil: 1000}, 999, sie, gone},
		{"not found, expired", entry.Header{State: entry.Negative, FreshUntil: 1000, HardUntil: 1000}, 1000, sie, missing},
		{"failed", entry.Header{State: entry.Failed, LeaseUntil: 1000}, 999, sie, cooling},
		{"failed, cooled down", entry.Header{State: entry.Failed, LeaseUntil: 1000}, 1000, sie, missing},
		{"failed, being loaded again", entry.Header{State: entry.Failed, Lease: lease, LeaseUntil: 1000}, 999, sie, missing},
		{"a stub", entry.Header{State: entry.Stub, Lease: lease, LeaseUntil: 9000}, 10, sie, missing},
		{"bypass", entry.Header{State: entry.Bypass}, 10, sie, missing},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := judge(&entry.Entry{Header: c.h, Known: true, Now: c.now}, c.p); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
	if got := judge(&entry.Entry{}, sie); got != absent {
		t.Errorf("no entry: got %d, want %d", got, absent)
	}
	if got := judge(&entry.Entry{Foreign: true}, sie); got != missing {
		t.Errorf("foreign bytes: got %d, want %d", got, missing)
	}
}

func TestResting(t *testing.T) {
	lease := entry.Token{1}
	for _, c := range []struct {
		name string
		h    entry.Header
		want bool
	}{
		{"idle", entry.Header{}, false},
		{"being loaded", entry.Header{Lease: lease, LeaseUntil: 101}, true},
		{"lapsed lease", entry.Header{Lease: lease, LeaseUntil: 100}, false},
		{"cooling down", entry.Header{Flags: entry.LastFailed, LeaseUntil: 101}, true},
		{"cooled down", entry.Header{Flags: entry.LastFailed, LeaseUntil: 100}, false},
		{"failed before, being loaded", entry.Header{Flags: entry.LastFailed, Lease: lease, LeaseUntil: 101}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := resting(&entry.Entry{Header: c.h, Now: 100}); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestEarly compares the draw with its closed form: probability e^(−left/(β·δ)).
func TestEarly(t *testing.T) {
	e := func(left, life int64, delta time.Duration) *entry.Entry {
		return &entry.Entry{Header: entry.Header{FreshUntil: life, Delta: delta}, Now: life - left}
	}
	const n = 20000
	for _, c := range []struct{ beta, left float64 }{{0.5, 50}, {1, 50}, {1, 200}, {2, 200}} {
		hits := 0
		for i := range n {
			if early(e(int64(c.left), 10000, 100*time.Millisecond), c.beta, (float64(i)+0.5)/n) {
				hits++
			}
		}
		if got, want := float64(hits)/n, math.Exp(-c.left/(c.beta*100)); math.Abs(got-want) > 0.001 {
			t.Errorf("β %v, %v ms left: drawn with probability %.4f, want %.4f", c.beta, c.left, got, want)
		}
	}
	for name, never := range map[string]bool{
		"off":                    early(e(1, 1000, time.Second), off, 1e-9),
		"δ unknown":              early(e(1, 1000, 0), 1, 1e-9),
		"in the first half":      early(e(501, 1000, time.Hour), 1, 1e-9),
		"u = 1 with time left":   early(e(1, 1000, time.Second), 1, 1),
		"longer than the TTL, u": early(e(999, 1000, time.Minute), 1, 1e-300),
	} {
		if never {
			t.Errorf("%s: drawn", name)
		}
	}
}
