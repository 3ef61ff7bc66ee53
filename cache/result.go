package cache

import (
	"fmt"
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
	// Age is how long ago the value was stored; 0 for one just loaded.
	Age time.Duration
	// TTL is how long the value stays fresh; 0 if it was not stored.
	TTL time.Duration
	// Joined says that the caller shared a load that was under way.
	Joined bool
	// Stored says that the value is in Redis.
	Stored bool

	name     string
	notFound bool
}

// CacheStatus returns the value of a Cache-Status header, as in
// "getorprime; hit; ttl=42" (RFC 9211).
func (r *Result[V]) CacheStatus() string {
	var b strings.Builder
	b.WriteString(token(r.name))
	switch {
	case r.Source == FromRedis && r.Stored:
		fmt.Fprintf(&b, "; hit; ttl=%d", int(r.TTL.Seconds()))
	default:
		b.WriteString("; fwd=miss")
		if r.Stored {
			fmt.Fprintf(&b, "; stored; ttl=%d", int(r.TTL.Seconds()))
		}
		if r.Joined || r.Source == FromPeer {
			b.WriteString("; collapsed")
		}
	}
	if r.notFound {
		b.WriteString(`; detail="not found"`)
	}
	return b.String()
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
