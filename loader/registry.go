package loader

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Registry finds what was registered for the longest prefix of a key. The zero value
// is an empty registry, ready to use; all methods are safe for concurrent use. Reading
// takes no lock and does not allocate, adding copies the whole table: it is meant for
// few additions and many look-ups.
type Registry[T any] struct {
	mu    sync.Mutex // held by writers
	table atomic.Pointer[table[T]]
}

// table is never changed once it can be seen.
type table[T any] struct {
	values   map[string]T
	prefixes []string // sorted
	lengths  []int    // the distinct lengths of the prefixes, longest first
}

// Add registers v for the keys that begin with prefix. The empty prefix catches every
// key that no other prefix does. A prefix registered before is an error.
func (r *Registry[T]) Add(prefix string, v T) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.load()
	if _, ok := old.values[prefix]; ok {
		return fmt.Errorf("loader: prefix %q is registered already", prefix)
	}
	r.table.Store(old.with(prefix, v))
	return nil
}

// Lookup returns the longest registered prefix of key and what was registered for it.
// Its cost grows with the number of different prefix lengths, not of prefixes.
func (r *Registry[T]) Lookup(key string) (prefix string, v T, ok bool) {
	t := r.load()
	for _, n := range t.lengths {
		if n > len(key) {
			continue
		}
		if v, ok := t.values[key[:n]]; ok {
			return key[:n], v, true
		}
	}
	return "", v, false
}

// Extends returns, sorted, the registered prefixes that begin with prefix and are
// longer. Keys that begin with one of them do not belong to prefix.
func (r *Registry[T]) Extends(prefix string) []string {
	all := r.load().prefixes
	i, found := slices.BinarySearch(all, prefix)
	if found {
		i++
	}
	j := i
	for j < len(all) && strings.HasPrefix(all[j], prefix) {
		j++
	}
	return slices.Clone(all[i:j])
}

// All returns the registered prefixes in ascending order, each with what was
// registered for it, as they are when All is called.
func (r *Registry[T]) All() iter.Seq2[string, T] {
	t := r.load()
	return func(yield func(string, T) bool) {
		for _, p := range t.prefixes {
			if !yield(p, t.values[p]) {
				return
			}
		}
	}
}

func (r *Registry[T]) load() *table[T] {
	if t := r.table.Load(); t != nil {
		return t
	}
	return new(table[T])
}

// with returns a copy of t that has prefix as well.
func (t *table[T]) with(prefix string, v T) *table[T] {
	values := maps.Clone(t.values)
	if values == nil {
		values = make(map[string]T)
	}
	values[prefix] = v
	prefixes := slices.Sorted(maps.Keys(values))
	return &table[T]{values: values, prefixes: prefixes, lengths: lengths(prefixes)}
}

func lengths(prefixes []string) []int {
	all := make([]int, 0, len(prefixes))
	for _, p := range prefixes {
		all = append(all, len(p))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	slices.Reverse(all)
	return all
}
