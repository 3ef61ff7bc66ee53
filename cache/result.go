package cache

import (
	"strconv"
	"strings"
	"time"
)

// Source says where a value came from.
type Source int

// The sources of a value.
const (
	// FromRedis: the first read found it.
	FromRedis Source = iota
	// FromLoad: this process loaded it, for this caller or for one it joined.
	FromLoad
	// FromPeer: another process loaded it while this one waited.
	FromPeer
)

// String returns "redis", "load" or "peer", fit for a metric's label.
func (s Source) String() string {
	return [...]string{"redis", "load", "peer"}[s]
}

// Result is a value and how it was come by.
type Result[V any] struct {
	Value  V
	Source Source
	// Age is how long ago the value was stored, to a millisecond; 0 for one just
	// loaded.
	Age time.Duration
	// TTL is how long the value stays fresh, negative how long it has not been, to a
	// millisecond; 0 if it was not stored.
	TTL time.Duration
	// Stale says that the value is past its TTL, which TTL < 0 then tells, or was
	// marked stale.
	Stale bool
	// Degraded says that Redis could not be asked: the value was loaded for this
	// process alone.
	Degraded bool
	// Joined says that the caller shared a load that was under way.
	Joined bool
	// Stored says that the value is in Redis.
	Stored bool

	name     string
	notFound bool
	fellBack bool
}

// CacheStatus returns the value of a Cache-Status header, as in
// "getorprime; hit; ttl=42" (RFC 9211). A stale value that was answered at once
// is a hit with a negative ttl; one that stood in for a load is fwd=stale.
func (r *Result[V]) CacheStatus() string {
	b := []string{token(r.name)}
	add := func(when bool, param string) {
		if when {
			b = append(b, param)
		}
	}
	hit := r.Source == FromRedis && r.Stored && !r.fellBack
	add(hit, "hit")
	add(!hit && r.fellBack, "fwd=stale")
	add(!hit && !r.fellBack, "fwd=miss")
	add(!hit && !r.fellBack && r.Stored, "stored")
	add(r.Stored, "ttl="+strconv.Itoa(int(r.TTL.Seconds())))
	add(r.Joined || r.Source == FromPeer, "collapsed")
	add(r.notFound, `detail="not found"`)
	add(r.Degraded, `detail="redis unavailable"`)
	return strings.Join(b, "; ")
}

// token returns s as a structured field's token where it is one, else as a
// string (RFC 8941, section 3.3).
func token(s string) string {
	for i, c := range []byte(s) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '*'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0)) {
			return `"` + s + `"`
		}
	}
	return s
}
