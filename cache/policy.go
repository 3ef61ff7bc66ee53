package cache

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/getorprime/getorprime/codec"
)

// Policy says how the values of one keyspace are kept and loaded. The zero
// value of each field stands for its default; negative values are errors except
// where −1 is said to turn something off. Durations are kept in milliseconds.
type Policy struct {
	// TTL is how long a loaded value is fresh, before jitter. At least 1 ms.
	// Default: 1 min.
	TTL time.Duration
	// Jitter shortens each TTL by a random share of up to this much, so that
	// what was loaded together does not expire together. At most 0.5; −1: none.
	// Default: 0.1.
	Jitter float64
	// StaleWhileRevalidate is how long after its TTL a value is still the answer,
	// marked stale, while it is refreshed in the background. Default: 0, not.
	StaleWhileRevalidate time.Duration
	// StaleIfError is how long after its TTL a value is still the answer, marked
	// stale, if the load that should replace it fails or is slow (SoftTimeout).
	// Default: 0, not.
	StaleIfError time.Duration
	// EarlyRefresh is β of the XFetch draw by which a hit may start a background
	// refresh before the value expires, earlier the longer a load takes. Larger
	// is earlier. −1: never. Default: 1.
	EarlyRefresh float64
	// SoftTimeout is how long a caller waits for a load when there is a stale
	// value to answer with instead; the load goes on. Default: 0, as long as it
	// takes.
	SoftTimeout time.Duration
	// OnOutage says what a call does when Redis cannot be asked.
	// Default: [LoadLocally].
	OnOutage Outage
	// NotFoundTTL is how long "not found" is kept. −1: not kept.
	// Default: 10 s.
	NotFoundTTL time.Duration
	// ErrorCooldown is how long after a failed load everybody gets its error
	// instead of another attempt. It doubles with each failure in a row.
	// Default: 250 ms.
	ErrorCooldown time.Duration
	// ErrorCooldownMax bounds the doubling. Default: 5 s.
	ErrorCooldownMax time.Duration
	// LoadTimeout is the deadline of a load's context, and the time after which
	// a load that ignores it is given up. Default: 30 s.
	LoadTimeout time.Duration
	// WaitTimeout bounds the wait for a load in another process; then the call
	// fails with [ErrWaitTimeout]. Default: LoadTimeout + Options.LeaseTTL.
	WaitTimeout time.Duration
	// MaxConcurrentLoads bounds the loads of this keyspace that run at the same
	// time in this process; further ones wait, up to LoadTimeout, then fail with
	// [ErrOverloaded]. Default: 64.
	MaxConcurrentLoads int
	// Codec turns values into bytes and back. Default: [codec.MsgPack].
	Codec codec.Codec
	// Version begins the keys, after the namespace, so that programs with
	// different versions of a type do not overwrite each other's entries. It
	// must not contain "|". Default: "", none.
	Version string
	// OldVersions are versions whose entries Invalidate and Set delete as well;
	// "" stands for keys without a version. Default: none.
	OldVersions []string
}

// Outage is what a call does when Redis cannot be asked.
type Outage int

// The outage policies.
const (
	// LoadLocally loads once per process, within the bulkhead, and stores
	// nothing; results are marked degraded.
	LoadLocally Outage = iota + 1
	// FailFast returns [ErrUnavailable].
	FailFast
)

var policyDefaults = Policy{
	EarlyRefresh: 1, OnOutage: LoadLocally,
	TTL: time.Minute, Jitter: 0.1, NotFoundTTL: 10 * time.Second,
	ErrorCooldown: 250 * time.Millisecond, ErrorCooldownMax: 5 * time.Second,
	LoadTimeout: 30 * time.Second, MaxConcurrentLoads: 64, Codec: codec.MsgPack{},
}

// withDefaults returns a copy of p with unset fields taken from defaults, and
// then from the package's.
func (p *Policy) withDefaults(defaults *Policy) Policy {
	var d Policy
	if p != nil {
		d = *p
	}
	for _, from := range []*Policy{defaults, &policyDefaults} {
		if from != nil {
			d.inherit(from)
		}
	}
	d.OldVersions = slices.Clone(d.OldVersions)
	return d
}

func (p *Policy) inherit(d *Policy) {
	setDefault(&p.TTL, d.TTL)
	setDefault(&p.Jitter, d.Jitter)
	setDefault(&p.StaleWhileRevalidate, d.StaleWhileRevalidate)
	setDefault(&p.StaleIfError, d.StaleIfError)
	setDefault(&p.EarlyRefresh, d.EarlyRefresh)
	setDefault(&p.SoftTimeout, d.SoftTimeout)
	setDefault(&p.OnOutage, d.OnOutage)
	setDefault(&p.NotFoundTTL, d.NotFoundTTL)
	setDefault(&p.ErrorCooldown, d.ErrorCooldown)
	setDefault(&p.ErrorCooldownMax, d.ErrorCooldownMax)
	setDefault(&p.LoadTimeout, d.LoadTimeout)
	setDefault(&p.WaitTimeout, d.WaitTimeout)
	setDefault(&p.MaxConcurrentLoads, d.MaxConcurrentLoads)
	setDefault(&p.Version, d.Version)
	if p.Codec == nil {
		p.Codec = d.Codec
	}
	if p.OldVersions == nil {
		p.OldVersions = d.OldVersions
	}
}

// off is the value of a field that turns its feature off.
const off = -1

func (p *Policy) problems() (l problems) {
	l.check(p.TTL >= time.Millisecond, "TTL", p.TTL, "must be at least 1ms")
	l.check(p.Jitter == off || (p.Jitter > 0 && p.Jitter <= 0.5), "Jitter", p.Jitter, "must be from 0 to 0.5, or -1 for none")
	l.check(p.StaleWhileRevalidate >= 0, "StaleWhileRevalidate", p.StaleWhileRevalidate, "must not be negative")
	l.check(p.StaleIfError >= 0, "StaleIfError", p.StaleIfError, "must not be negative")
	l.check(p.EarlyRefresh == off || p.EarlyRefresh > 0, "EarlyRefresh", p.EarlyRefresh, "must be positive, or -1 for never")
	l.check(p.SoftTimeout >= 0, "SoftTimeout", p.SoftTimeout, "must not be negative")
	l.check(p.OnOutage == LoadLocally || p.OnOutage == FailFast, "OnOutage", int(p.OnOutage), "must be LoadLocally or FailFast")
	l.check(p.NotFoundTTL == off || p.NotFoundTTL >= time.Millisecond, "NotFoundTTL", p.NotFoundTTL, "must be at least 1ms, or -1 to keep none")
	l.check(p.ErrorCooldown >= time.Millisecond, "ErrorCooldown", p.ErrorCooldown, "must be at least 1ms")
	l.check(p.ErrorCooldownMax >= p.ErrorCooldown, "ErrorCooldownMax", p.ErrorCooldownMax, fmt.Sprintf("must be at least ErrorCooldown, which is %v", p.ErrorCooldown))
	l.check(p.LoadTimeout >= time.Millisecond, "LoadTimeout", p.LoadTimeout, "must be at least 1ms")
	l.check(p.WaitTimeout == 0 || p.WaitTimeout >= time.Millisecond, "WaitTimeout", p.WaitTimeout, "must be at least 1ms")
	l.check(p.MaxConcurrentLoads > 0, "MaxConcurrentLoads", p.MaxConcurrentLoads, "must be positive")
	l.check(!strings.Contains(p.Version, "|"), "Version", fmt.Sprintf("%q", p.Version), `must not contain "|"`)
	for i, v := range p.OldVersions {
		field := fmt.Sprintf("OldVersions[%d]", i)
		l.check(!strings.Contains(v, "|"), field, fmt.Sprintf("%q", v), `must not contain "|"`)
		l.check(v != p.Version, field, fmt.Sprintf("%q", v), "must differ from Version")
	}
	return l
}

// staleFor is how long after its TTL a value may still be an answer.
func (p *Policy) staleFor() time.Duration {
	return max(p.StaleWhileRevalidate, p.StaleIfError)
}

// cooldown returns how long the attempts rest after that many failures in a row.
func (p *Policy) cooldown(failures uint8) time.Duration {
	d := p.ErrorCooldown
	for i := uint8(1); i < failures && d < p.ErrorCooldownMax; i++ {
		d *= 2
	}
	return min(d, p.ErrorCooldownMax)
}
