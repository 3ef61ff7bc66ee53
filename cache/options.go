package cache

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxLease is the longest lease: a lease-until further ahead is taken for a
// broken clock.
const maxLease = 60 * time.Second

// Options changes how a [Cache] works. The zero value of each field stands for
// its default.
type Options struct {
	// Namespace begins every key and the name of the wake-up channel. Default: "".
	Namespace string
	// Name is the cache's name in Cache-Status headers (RFC 9211).
	// Default: "getorprime".
	Name string
	// Defaults are the policy for what a keyspace's own policy leaves unset.
	// Default: the defaults given at [Policy].
	Defaults *Policy
	// RedisBudget bounds the time one call spends inside Redis commands, all of
	// them together, whatever timeouts the client has. Default: 500 ms.
	RedisBudget time.Duration
	// LeaseTTL is how long the lease of a running load outlives its process. It
	// is renewed while the load runs. At most 60 s. Default: 2 s.
	LeaseTTL time.Duration
	// MaxConcurrentLoads bounds the loads of all keyspaces together in this
	// process. Default: 0, no bound beyond the keyspaces' own.
	MaxConcurrentLoads int
	// AllowReplicaReads accepts a client that may read from replicas, which gives
	// up the promise that nothing invalidated is served. Default: false.
	AllowReplicaReads bool
	// DisablePubSub does without wake-up messages; waiters poll. Default: false.
	DisablePubSub bool
	// Observer is told of every event. Default: nil, which costs nothing.
	Observer Observer
	// Logger gets what has no other receiver. Default: [slog.Default].
	Logger *slog.Logger
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	setDefault(&d.Name, "getorprime")
	setDefault(&d.RedisBudget, 500*time.Millisecond)
	setDefault(&d.LeaseTTL, 2*time.Second)
	if d.Logger == nil {
		d.Logger = slog.Default()
	}
	return d
}

// setDefault sets *p to d if it is zero.
func setDefault[T comparable](p *T, d T) {
	var zero T
	if *p == zero {
		*p = d
	}
}

// validate reports all problems at once.
func (o *Options) validate() error {
	var p problems
	p.check(o.RedisBudget >= time.Millisecond, "RedisBudget", o.RedisBudget, "must be at least 1ms")
	p.check(o.LeaseTTL >= 10*time.Millisecond && o.LeaseTTL <= maxLease, "LeaseTTL", o.LeaseTTL, "must be from 10ms to 1m0s")
	p.check(o.MaxConcurrentLoads >= 0, "MaxConcurrentLoads", o.MaxConcurrentLoads, "must not be negative")
	p.check(printable(o.Name), "Name", fmt.Sprintf("%q", o.Name), "must be printable ASCII without quotes")
	defaults := o.Defaults.withDefaults(nil)
	p.join("Defaults.", defaults.problems())
	return p.err("cache: Options")
}

func printable(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) < 0
}

// problems collects what is wrong with a struct of options, field first.
type problems []string

func (p *problems) check(ok bool, field string, value any, must string) {
	if !ok {
		*p = append(*p, fmt.Sprintf("%s is %v: %s", field, value, must))
	}
}

func (p *problems) join(prefix string, others problems) {
	for _, o := range others {
		*p = append(*p, prefix+o)
	}
}

func (p problems) err(what string) error {
	if len(p) == 0 {
		return nil
	}
	errs := make([]error, len(p))
	for i, s := range p {
		errs[i] = fmt.Errorf("%s.%s", what, s)
	}
	return errors.Join(errs...)
}

// checkClient refuses clients on which the promises cannot hold.
func checkClient(client redis.UniversalClient, allowReplicas bool) error {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("cache: client is nil: pass a *redis.Client or *redis.ClusterClient")
	}
	switch c := client.(type) {
	case *redis.Ring:
		return errors.New("cache: client is a *redis.Ring, which loses writes when a shard leaves it: use a *redis.ClusterClient or one *redis.Client")
	case *redis.Client:
		if c.Options().ClientSideCacheConfig != nil {
			return errors.New("cache: client has ClientSideCacheConfig set, which answers from a copy that may be older than an invalidation: unset it")
		}
	case *redis.ClusterClient:
		o := c.Options()
		if !allowReplicas && (o.ReadOnly || o.RouteByLatency || o.RouteRandomly) {
			return errors.New("cache: client reads from replicas (ReadOnly, RouteByLatency or RouteRandomly), which may answer with what was invalidated: unset it, or accept that with Options.AllowReplicaReads")
		}
	}
	return nil
}
