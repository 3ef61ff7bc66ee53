package cache

import (
	"context"
	"reflect"
)

// GetOrPrime is [Keyspace.GetOrPrime] for a full key: its keyspace is the one
// with the longest registered prefix. V is the type of that keyspace's values,
// or an interface which that type satisfies, any included; anything else is a
// [*TypeError]. A key without a keyspace is [ErrNoLoader].
func GetOrPrime[V any](ctx context.Context, c *Cache, key string) (V, error) {
	var zero V
	r, id, err := c.lookup(key)
	if err != nil {
		return zero, err
	}
	if k, ok := r.(*Keyspace[V]); ok {
		return k.GetOrPrime(ctx, id)
	}
	s, want := r.core(), reflect.TypeFor[V]()
	if want.Kind() != reflect.Interface || !s.typ.Implements(want) {
		return zero, &TypeError{Prefix: s.prefix, Have: s.typ.String(), Want: want.String()}
	}
	v, err := r.fetchAny(ctx, id)
	if err != nil || v == nil {
		return zero, err
	}
	return v.(V), nil
}
