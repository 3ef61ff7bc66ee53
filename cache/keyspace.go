package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/getorprime/getorprime/internal/command"
	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/flight"
	"github.com/getorprime/getorprime/loader"
)

// Keyspace is the values of one type under one key prefix. It is safe for
// concurrent use.
type Keyspace[V any] struct {
	*space
	pointsTo reflect.Type // for V = *T: T; else nil

	// How values are decoded: from bytes that others may hold too, and from such as
	// the value may keep.
	unmarshal, unmarshalOwned func(b []byte, v any) error
}

// owning is a codec that can decode into the bytes it is given.
type owning interface {
	UnmarshalOwned(b []byte, v any) error
}

// Register makes a keyspace of the keys that begin with prefix, whose values
// are loaded by load. A nil load is allowed: the values then come from
// [Keyspace.GetOrLoad] and [Keyspace.Set] alone. A nil policy stands for
// Options.Defaults.
//
// A prefix can be registered once. Where prefixes overlap, a key belongs to the
// longest; the shorter one's keyspace refuses it with a [*KeyError].
// All problems in policy are reported at once.
func Register[V any](c *Cache, prefix string, load loader.Func[V], policy *Policy) (*Keyspace[V], error) {
	typ := reflect.TypeFor[V]()
	s, err := newSpace(c, prefix, policy, typ)
	if err != nil {
		return nil, err
	}
	k := &Keyspace[V]{space: s}
	if typ.Kind() == reflect.Pointer {
		k.pointsTo = typ.Elem()
	}
	k.unmarshal = s.policy.Codec.Unmarshal
	k.unmarshalOwned = k.unmarshal
	if c, ok := s.policy.Codec.(owning); ok {
		k.unmarshalOwned = c.UnmarshalOwned
	}
	s.load = k.encoding(load)
	s.decode = func(e *entry.Entry) (any, error) { return k.value(e, k.unmarshal) }
	if err := k.tryCodec(); err != nil {
		return nil, fmt.Errorf("cache: Policy of keyspace %q.Codec is %s: cannot encode %v: %w", prefix, s.policy.Codec.Name(), typ, err)
	}
	if err := c.add(s, k); err != nil {
		return nil, err
	}
	return k, nil
}

// tryCodec encodes a zero value, so that a type the codec cannot take is found
// at once.
func (k *Keyspace[V]) tryCodec() error {
	if k.typ.Kind() == reflect.Interface {
		return nil
	}
	zero := reflect.New(k.typ).Elem()
	if k.pointsTo != nil {
		zero = reflect.New(k.pointsTo)
	}
	_, err := k.marshal(zero.Interface())
	return err
}

// GetOrPrime returns the value of id: from Redis if it is there and fresh, else
// from the loader, which runs once over all processes while the others wait for
// its answer.
//
// It returns [loader.ErrNotFound] if the loader said so, now or lately; the
// loader's error if it failed ([*loader.PanicError] if it panicked,
// [*loader.RemoteError] if it failed in another process); ctx's error as soon
// as ctx ends, while the load goes on for the others; [ErrUnavailable] if Redis
// could not be asked; [ErrWaitTimeout], [ErrOverloaded], [ErrReentrant],
// [ErrNoLoader], [ErrClosed], [*KeyError].
//
// The value is the caller's own copy. The loader gets ctx's values, but neither
// its deadline nor its cancellation.
func (k *Keyspace[V]) GetOrPrime(ctx context.Context, id string) (V, error) {
	r, err := k.fetch(ctx, id, k.load, false)
	return r.Value, err
}

// GetOrLoad is [Keyspace.GetOrPrime] with a loader given at the call. Callers
// who share a load get the result of the loader that was called.
func (k *Keyspace[V]) GetOrLoad(ctx context.Context, id string, load loader.Func[V]) (V, error) {
	r, err := k.fetch(ctx, id, k.encoding(load), false)
	return r.Value, err
}

// Fetch is [Keyspace.GetOrPrime] with what there is to know about the answer.
// The result also says what it can beside an error.
func (k *Keyspace[V]) Fetch(ctx context.Context, id string) (Result[V], error) {
	return k.fetch(ctx, id, k.load, false)
}

// Refresh loads the value of id though it may still be fresh, and returns a
// value whose load began after the call. If the load fails the old value stays.
// Errors are those of [Keyspace.GetOrPrime].
func (k *Keyspace[V]) Refresh(ctx context.Context, id string) (V, error) {
	r, err := k.fetch(ctx, id, k.load, true)
	return r.Value, err
}

// Peek returns the value of id if it is in Redis and fresh, or stale within
// Policy.StaleWhileRevalidate, and never loads. It returns [ErrMiss] if it is not, and [loader.ErrNotFound] if that is what is
// known of it.
func (k *Keyspace[V]) Peek(ctx context.Context, id string) (V, error) {
	var zero V
	c, err := k.newCall(ctx, id, nil)
	if err != nil {
		return zero, err
	}
	f, err := c.read(command.WithBudget(ctx, k.cache.opts.RedisBudget))
	switch {
	case err != nil:
		return zero, err
	case f.down != nil:
		return zero, f.down
	case f.verdict == gone:
		return zero, loader.ErrNotFound
	case f.verdict != fresh && f.verdict != stale:
		return zero, ErrMiss
	}
	value, err := k.value(&f.Entry, k.unmarshalOwned)
	if err != nil {
		return zero, fmt.Errorf("%w: %w", ErrMiss, err)
	}
	return value, nil
}

// Set makes v the value of id, for the policy's TTL, over whatever is there and
// whatever is being loaded. When it returns without an error, every process
// sees v or something newer. Entries of old versions are deleted.
func (k *Keyspace[V]) Set(ctx context.Context, id string, v V) error {
	c, err := k.newCall(ctx, id, nil)
	if err != nil {
		return err
	}
	enc, err := k.encode(v)
	if err != nil {
		return err
	}
	if err := c.set(command.WithBudget(ctx, k.cache.opts.RedisBudget), &loaded{encoded: enc}); err != nil {
		return err
	}
	return k.cache.invalidate(ctx, k.targets(id)[1:])
}

// Invalidate deletes the entries of ids in all versions. See [Cache.Invalidate].
func (k *Keyspace[V]) Invalidate(ctx context.Context, ids ...string) error {
	var all []target
	for _, id := range ids {
		if _, err := k.key(id); err != nil {
			return err
		}
		all = append(all, k.targets(id)...)
	}
	return k.cache.invalidate(ctx, all)
}

// MarkStale makes the values of ids stale at once: they are still the answer, marked
// stale, while they are refreshed in the background, until their hard expiry. A
// load that is running is void. Entries of old versions are deleted, and so is
// what is no value.
func (k *Keyspace[V]) MarkStale(ctx context.Context, ids ...string) error {
	var old []target
	for _, id := range ids {
		key, err := k.key(id)
		if err != nil {
			return err
		}
		if err := k.markStale(ctx, key); err != nil {
			return err
		}
		old = append(old, k.targets(id)[1:]...)
	}
	return k.cache.invalidate(ctx, old)
}

// fetch gets the answer for one caller and decodes the caller's own copy. If
// that fails it gets another answer, and then one that was not stored.
func (k *Keyspace[V]) fetch(ctx context.Context, id string, load loadFunc, refresh bool) (Result[V], error) {
	c, err := k.newCall(ctx, id, load)
	if err != nil {
		return Result[V]{name: k.cache.opts.Name}, err
	}
	c.refresh = refresh
	ctx = command.WithBudget(ctx, k.cache.opts.RedisBudget)
	for _, next := range []func(*call, context.Context) (*answer, error){(*call).answer, (*call).answer, (*call).unstoredAnswer} {
		var a *answer
		c.joined = false
		if a, err = next(c, ctx); err != nil {
			return Result[V]{name: k.cache.opts.Name}, err
		}
		r := k.result(a)
		r.Joined = c.joined
		if a.err != nil {
			return r, a.err
		}
		unmarshal := k.unmarshal
		if a.source == FromRedis { // what the call has read itself is nobody else's
			unmarshal = k.unmarshalOwned
		}
		if r.Value, err = k.value(&a.Entry, unmarshal); err == nil {
			return r, nil
		}
		c.spurn(ctx, &a.Entry, err)
	}
	return Result[V]{name: k.cache.opts.Name}, err
}

// result describes a.
func (k *Keyspace[V]) result(a *answer) Result[V] {
	return Result[V]{
		Stale: a.stale, Degraded: a.degraded, fellBack: a.fellBack,
		Source: a.source, Age: age(&a.Entry), TTL: left(&a.Entry), Stored: a.stored,
		name: k.cache.opts.Name, notFound: a.State == entry.Negative,
	}
}

// encoding returns load with its values encoded.
func (k *Keyspace[V]) encoding(load loader.Func[V]) loadFunc {
	if load == nil {
		return nil
	}
	return func(ctx context.Context, id string) (encoded, error) {
		v, err := load(ctx, id)
		if err != nil {
			return encoded{}, err
		}
		return k.encode(v)
	}
}

// encode turns a value into bytes; a nil pointer is a flag, not bytes.
func (k *Keyspace[V]) encode(v V) (encoded, error) {
	if k.pointsTo != nil && reflect.ValueOf(v).IsNil() {
		return encoded{null: true}, nil
	}
	room, err := k.marshal(v)
	if err != nil {
		return encoded{}, err
	}
	payload := room[entry.HeaderSize:]
	k.size.Store(int64(len(payload)))
	return encoded{payload: payload, room: room}, nil
}

// marshal encodes v behind room for a header.
func (k *Keyspace[V]) marshal(v any) (room []byte, err error) {
	room = make([]byte, 0, entry.HeaderSize+min(k.size.Load(), largeValue))
	room, err = k.policy.Codec.MarshalAppend(append(room, noHeader...), v)
	if err == nil && !bytes.HasPrefix(room, noHeader) {
		err = errNoAppend
	}
	return room, err
}

var errNoAppend = errors.New("MarshalAppend does not append to the slice it is given")

// noHeader takes the place of a header while a value is encoded.
var noHeader = bytes.Repeat([]byte{0xA5}, entry.HeaderSize)

// largeValue is the size, in bytes, up to which a buffer is made for a value in
// advance.
const largeValue = 4 << 10

// value decodes a copy of the value in e. For V = *T the codec gets a new *T.
func (k *Keyspace[V]) value(e *entry.Entry, unmarshal func([]byte, any) error) (v V, err error) {
	if e.Flags.Has(entry.Nil) {
		return v, nil
	}
	if k.pointsTo == nil {
		err = unmarshal(e.Payload, &v)
		return v, err
	}
	p := reflect.New(k.pointsTo)
	if err := unmarshal(e.Payload, p.Interface()); err != nil {
		return v, err
	}
	return p.Convert(k.typ).Interface().(V), nil
}

func (k *Keyspace[V]) core() *space { return k.space }

func (k *Keyspace[V]) fetchAny(ctx context.Context, id string) (any, error) {
	v, err := k.GetOrPrime(ctx, id)
	return v, err
}

// unstoredAnswer loads a value of the caller's own that is not stored.
func (c *call) unstoredAnswer(ctx context.Context) (*answer, error) {
	own := fmt.Sprintf("%s, unstored, %d", c.key, c.start) // shared with nobody, whose load may be older
	a, _, err := c.cache.flights.Do(ctx, own, func(f *flight.Flight[*answer]) (*answer, bool) {
		a := c.newPriming(f).loadUnstored()
		return a, a != nil
	})
	if err != nil {
		return nil, grounded(ctx, err)
	}
	return a, nil
}

// set takes the lease from whoever has it and stores l under it. If the lease
// is taken in turn before that, by another Set, a refresh, or a late delivery of
// this one's first request, the value before l may be there and fresh still: it
// goes, so that whoever comes next loads.
func (c *call) set(ctx context.Context, l *loaded) error {
	r, began := c.request(), c.cache.tick()
	tok, err := c.cache.store.Seize(ctx, c.key, r.Lease, r.Keep)
	if err != nil {
		return c.trouble(ctx, "setting", err)
	}
	kept := context.WithoutCancel(ctx)
	stored, err := c.cache.store.Fill(kept, c.key, tok, c.content(l, 0), c.policy.LoadTimeout)
	switch {
	case err != nil:
		_, freed := c.cache.store.Release(kept, c.key, tok)
		return errors.Join(c.unavailable(kept, "setting", err), freed)
	case stored == entry.Lost:
		return c.cache.invalidate(kept, []target{{c.space, c.key}})
	}
	c.cache.doubts.remove(c.key, began)
	c.cache.cools.end(c.key)
	c.cache.flights.Detach(c.key)
	c.emit(ctx, ValueSet, c.key, 0, nil)
	return nil
}
