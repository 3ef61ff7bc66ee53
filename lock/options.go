package lock

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	minTTL = 10 * time.Millisecond
	maxTTL = 24 * time.Hour
	// maxHolders bounds a semaphore: each holder is a member of one sorted set.
	maxHolders = 10_000
	maxInfo    = 1024
)

// Options changes how a [Locker] works. The zero value of each field stands for
// its default.
type Options struct {
	// Namespace begins every key and channel. It must not contain {}, which would
	// keep the keys of a lock from sharing a slot of a cluster. Default: "".
	Namespace string
	// TTL is how long a lock outlives its holder's process; it is renewed at each
	// third while it is held. From 10 ms to 24 h. Default: 10 s.
	TTL time.Duration
	// RedisBudget bounds the time that one attempt to acquire, or one release,
	// spends inside Redis commands, whatever timeouts the client has.
	// Default: 500 ms.
	RedisBudget time.Duration
	// Info is what operators are told about the holder, at most 1024 bytes.
	// Default: the host's name and the process id.
	Info string
	// DisablePubSub does without wake-up messages; waiters poll. Default: false.
	DisablePubSub bool
	// Logger gets what has no other receiver. Default: [slog.Default].
	Logger *slog.Logger
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.TTL == 0 {
		d.TTL = 10 * time.Second
	}
	if d.RedisBudget == 0 {
		d.RedisBudget = 500 * time.Millisecond
	}
	if d.Info == "" {
		host, _ := os.Hostname()
		d.Info = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	if d.Logger == nil {
		d.Logger = slog.Default()
	}
	return d
}

// validate reports all problems at once.
func (o *Options) validate() error {
	return errors.Join(
		problem("Options.Namespace", o.Namespace, !strings.Contains(o.Namespace, "{}"), "must not contain {}"),
		problem("Options.TTL", o.TTL, o.TTL >= minTTL && o.TTL <= maxTTL, "must be from 10ms to 24h"),
		problem("Options.RedisBudget", o.RedisBudget, o.RedisBudget >= time.Millisecond, "must be at least 1ms"),
		problem("Options.Info", len(o.Info), len(o.Info) <= maxInfo, "bytes long, must be at most 1024"),
	)
}

// AcquireOptions says what is wanted of one lock. The zero value of each field
// stands for its default; nil is all defaults. A value may be shared by any
// number of goroutines.
type AcquireOptions struct {
	// TTL is how long the lock outlives its holder's process. Default: the
	// locker's.
	TTL time.Duration
	// Wait bounds how long [Locker.Acquire] waits for others. It has nothing to
	// do with TTL. Default: 0, until the context ends.
	Wait time.Duration
	// MaxHold ends the lease that long after it was asked for, whatever its
	// holder does: it is no longer renewed and its context is cancelled. Default:
	// 0, never.
	MaxHold time.Duration
	// Grace is how much earlier than needed the lease's context is cancelled when
	// the lock cannot be renewed, so that the holder has that long to come to an
	// end before the lock can lapse. At most half of the TTL. Default: 0.
	Grace time.Duration
	// Holders is how many may hold the lock at once: with more than one it is a
	// semaphore. All who use one name have to agree on it. Default: 1.
	Holders int
	// Fenced gets the fence along with the lock, in the same round trip, for
	// those who will ask for it. Default: false, [Lease.Fence] gets it when it is
	// first asked for.
	Fenced bool
	// Info is what operators are told about the holder. Default: the locker's.
	Info string
}

func (o *AcquireOptions) withDefaults(l *Options) AcquireOptions {
	var d AcquireOptions
	if o != nil {
		d = *o
	}
	if d.TTL == 0 {
		d.TTL = l.TTL
	}
	if d.Holders == 0 {
		d.Holders = 1
	}
	if d.Info == "" {
		d.Info = l.Info
	}
	return d
}

func (o *AcquireOptions) validate() error {
	return errors.Join(
		problem("AcquireOptions.TTL", o.TTL, o.TTL >= minTTL && o.TTL <= maxTTL, "must be from 10ms to 24h"),
		problem("AcquireOptions.Wait", o.Wait, o.Wait >= 0, "must not be negative"),
		problem("AcquireOptions.MaxHold", o.MaxHold, o.MaxHold >= 0, "must not be negative"),
		problem("AcquireOptions.Grace", o.Grace, o.Grace >= 0 && o.Grace <= o.TTL/2, "must be from 0 to half of the TTL"),
		problem("AcquireOptions.Holders", o.Holders, o.Holders >= 1 && o.Holders <= maxHolders, "must be from 1 to 10000"),
		problem("AcquireOptions.Info", len(o.Info), len(o.Info) <= maxInfo, "bytes long, must be at most 1024"),
	)
}

// problem is generic so that a value that is right is not boxed.
func problem[T any](field string, value T, ok bool, must string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("lock: %s is %v: %s", field, value, must)
}

// checkName refuses names whose keys would not share a slot of a cluster.
func checkName(name string) error {
	if name == "" || strings.HasPrefix(name, "}") {
		return fmt.Errorf("lock: name is %q: must be neither empty nor begin with }", name)
	}
	return nil
}

// checkClient refuses clients on which a lock excludes nobody.
func checkClient(client redis.UniversalClient) error {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("lock: client is nil: pass a *redis.Client or *redis.ClusterClient")
	}
	if _, ok := client.(*redis.Ring); ok {
		return errors.New("lock: client is a *redis.Ring, which moves keys when a shard leaves it: use a *redis.ClusterClient or one *redis.Client")
	}
	return nil
}
