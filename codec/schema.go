package codec

import (
	"encoding"
	"fmt"
	"hash"
	"hash/fnv"
	"reflect"
	"time"
)

// schemaFormat is hashed first. Raising its number makes every stored entry a miss.
const schemaFormat = "getorprime schema 1"

// Schema returns the hash stored in the header of every entry that c encoded from a
// value of type t. Bytes written by another codec, for another Go type, or for an
// earlier shape of the type have another hash (but for one case in 2³²), and are a
// miss rather than a wrong value.
//
// The hash is FNV-1a over a format constant, c.Name() and a description of t: its
// package path and name, its kind, and for structs each encoded field with name, type
// and the whole tag, through all nested types. It does not depend on the process, the
// build or the machine. A type that encodes itself by its own methods, as far as c
// calls them, is described by its name alone: what it writes is not visible from
// outside, so change [Codec.Name] or the type's name when that changes.
func Schema(c Codec, t reflect.Type) uint32 {
	h := fnv.New32a()
	d := describer{codec: c, out: h, seen: map[reflect.Type]bool{}}
	d.text(schemaFormat)
	d.text(c.Name())
	d.describe(t)
	return h.Sum32()
}

// describer writes a type as text. Types that contain themselves do so through a
// defined type, and seen ends the walk there.
type describer struct {
	codec Codec
	out   hash.Hash32
	seen  map[reflect.Type]bool
}

// text writes a string that users chose with its length, so that no choice of names
// and tags makes two types read the same.
func (d *describer) text(s string) { fmt.Fprintf(d.out, "%d:%s ", len(s), s) }

func (d *describer) describe(t reflect.Type) {
	if t == nil {
		fmt.Fprint(d.out, "nil;")
		return
	}
	if t.PkgPath() != "" {
		d.text(t.PkgPath())
		d.text(t.Name())
		if d.seen[t] || t == reflect.TypeFor[time.Time]() || marshalsItself(d.codec, t) {
			return
		}
		d.seen[t] = true
	}
	d.describeShape(t)
}

func (d *describer) describeShape(t reflect.Type) {
	fmt.Fprintf(d.out, "%s;", t.Kind())
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		d.describe(t.Elem())
	case reflect.Array:
		fmt.Fprintf(d.out, "%d ", t.Len())
		d.describe(t.Elem())
	case reflect.Map:
		d.describe(t.Key())
		d.describe(t.Elem())
	case reflect.Struct:
		d.describeFields(t)
	}
}

func (d *describer) describeFields(t reflect.Type) {
	fmt.Fprint(d.out, "{")
	for f := range t.Fields() {
		if encoded(f) {
			d.text(f.Name)
			d.text(string(f.Tag))
			fmt.Fprintf(d.out, "%t ", f.Anonymous)
			d.describe(f.Type)
		}
	}
	fmt.Fprint(d.out, "}")
}

// encoded reports whether f can influence the bytes. Embedded structs bring in their
// exported fields even if the type's name is unexported, and the tag of a field named
// _msgpack sets options of the whole struct.
func encoded(f reflect.StructField) bool {
	return f.IsExported() || f.Anonymous || f.Name == "_msgpack"
}

// marshalsItself reports whether c leaves the encoding of t to methods of t. Codecs of
// other packages are not known to, so for them the shape counts as well.
func marshalsItself(c Codec, t reflect.Type) bool {
	m, ok := c.(interface{ marshalsItself(reflect.Type) bool })
	return ok && m.marshalsItself(t)
}

// implements reports whether T or *T has the methods of the interface I.
func implements[I any](t reflect.Type) bool {
	i := reflect.TypeFor[I]()
	return t.Implements(i) || reflect.PointerTo(t).Implements(i)
}

func implementsText(t reflect.Type) bool   { return implements[encoding.TextMarshaler](t) }
func implementsBinary(t reflect.Type) bool { return implements[encoding.BinaryMarshaler](t) }
