package cache

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/getorprime/getorprime/codec"
	"github.com/getorprime/getorprime/internal/entry"
)

// space is what the protocol needs to know of a keyspace, whatever its values'
// type is: to it a value is bytes.
type space struct {
	cache  *Cache
	prefix string
	policy Policy
	typ    reflect.Type
	schema uint32
	load   loadFunc // nil: no loader registered
	decode func(*entry.Entry) (any, error)
	gates  []*semaphore.Weighted // the bulkheads: the keyspace's, the cache's
	delta  atomic.Int64          // how long a load takes here, smoothed, in ns
	size   atomic.Int64          // of the value encoded last, in bytes

	// longer are the registered prefixes that begin with this one.
	longer atomic.Pointer[[]string]
}

// loadFunc loads and encodes one value.
type loadFunc func(ctx context.Context, id string) (encoded, error)

// encoded is a value as its codec wrote it.
type encoded struct {
	payload []byte
	room    []byte // the slice that payload is the end of, with room for a header before it; or nil
	null    bool   // a nil pointer, which never reaches the codec
}

// registered is a keyspace whose type of values is not known.
type registered interface {
	core() *space
	fetchAny(ctx context.Context, id string) (any, error)
}

func newSpace(c *Cache, prefix string, p *Policy, typ reflect.Type) (*space, error) {
	s := &space{cache: c, prefix: prefix, policy: p.withDefaults(c.opts.Defaults), typ: typ}
	if err := s.policy.problems().err("cache: Policy of keyspace " + fmt.Sprintf("%q", prefix)); err != nil {
		return nil, err
	}
	setDefault(&s.policy.WaitTimeout, s.policy.LoadTimeout+c.opts.LeaseTTL)
	s.schema = codec.Schema(s.policy.Codec, typ)
	s.longer.Store(new([]string))
	s.gates = append(s.gates, semaphore.NewWeighted(int64(s.policy.MaxConcurrentLoads)))
	if c.gate != nil {
		s.gates = append(s.gates, c.gate)
	}
	return s, nil
}

// add registers s under its prefix. A prefix can be registered once, and no two
// keyspaces may build the same keys.
func (c *Cache) add(s *space, r registered) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.spaces.All() {
		if o := other.core(); o.prefix != s.prefix && (s.uses(o) || o.uses(s)) {
			return fmt.Errorf("cache: keyspace %q would share its keys with keyspace %q: choose another Version or prefix", s.prefix, o.prefix)
		}
	}
	if err := c.spaces.Add(s.prefix, r); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	for _, other := range c.spaces.All() {
		o := other.core()
		longer := c.spaces.Extends(o.prefix)
		o.longer.Store(&longer)
	}
	return nil
}

// uses reports whether s writes or deletes the keys of o.
func (s *space) uses(o *space) bool {
	return slices.Contains(s.versions(""), o.physical(o.policy.Version, ""))
}

// physical builds the Redis key of id in a version. All keys are built here.
func (s *space) physical(version, id string) string {
	if version != "" {
		version += "|"
	}
	return s.cache.opts.Namespace + version + s.prefix + id
}

// key returns the Redis key of id, or a [*KeyError].
func (s *space) key(id string) (string, error) {
	if id == "" {
		return "", s.emptyID()
	}
	if longer := *s.longer.Load(); len(longer) > 0 {
		full := s.prefix + id
		if i := slices.IndexFunc(longer, func(p string) bool { return strings.HasPrefix(full, p) }); i >= 0 {
			return "", &KeyError{Key: full, Prefix: s.prefix, Reason: fmt.Sprintf("belongs to keyspace %q", longer[i])}
		}
	}
	return s.physical(s.policy.Version, id), nil
}

// versions returns the keys of id in the current and all old versions.
func (s *space) versions(id string) []string {
	keys := []string{s.physical(s.policy.Version, id)}
	for _, v := range s.policy.OldVersions {
		keys = append(keys, s.physical(v, id))
	}
	return keys
}

func (s *space) emptyID() error {
	return &KeyError{Key: s.prefix, Prefix: s.prefix, Reason: "has an empty id"}
}

// request is the kind of lease this keyspace asks for.
func (s *space) request() entry.Request {
	return entry.Request{Lease: s.cache.opts.LeaseTTL, Keep: s.policy.LoadTimeout + s.cache.opts.LeaseTTL}
}

// expect is how long a load takes that last ran there with delta, or else here.
func (s *space) expect(delta time.Duration) time.Duration {
	if delta > 0 {
		return delta
	}
	return time.Duration(s.delta.Load())
}

// ended returns why ctx ended, or nil. A deadline that has passed counts even
// before ctx has noticed.
func ended(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) {
			return context.DeadlineExceeded
		}
		return nil
	}
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
