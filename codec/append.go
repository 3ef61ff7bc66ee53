package codec

import (
	"fmt"
	"reflect"
	"slices"
)

// firstGrowth is the spare capacity a writer starts with, in bytes: encoders write
// in pieces of one to nine bytes, and growing from nothing by those allocates often.
const firstGrowth = 64

// appendWriter is an io.Writer and io.ByteWriter that appends to a slice.
type appendWriter struct {
	b []byte
}

func (w *appendWriter) reset(dst []byte) { w.b = slices.Grow(dst, firstGrowth) }

// Write appends p; it never fails.
func (w *appendWriter) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	return len(p), nil
}

// maxSize is the longest string Redis stores unless it is configured otherwise
// (proto-max-bulk-len), in bytes.
const maxSize = 512 << 20

// boundedWriter is an appendWriter that ends the encoding of a value too large or
// too deep to be stored. An encoder that follows a cycle in the value would
// otherwise recurse until the runtime ends the process, which no recover can stop.
type boundedWriter struct {
	appendWriter
	start int // where this encoding begins in b
	check int // length of b at which the depth is looked at next
}

func (w *boundedWriter) reset(dst []byte) {
	w.appendWriter.reset(dst)
	w.start = len(dst)
	w.check = len(dst) + maxDepth
}

// Write appends p, or reports that the value is too large or too deep.
func (w *boundedWriter) Write(p []byte) (int, error) {
	if len(w.b)-w.start+len(p) > maxSize {
		return 0, errTooLarge
	}
	w.b = append(w.b, p...)
	return len(p), w.verify()
}

// WriteByte appends c, or reports that the value is too large or too deep.
func (w *boundedWriter) WriteByte(c byte) error {
	w.b = append(w.b, c)
	return w.verify()
}

// verify looks only each time the size has doubled, so that all looks together
// cost about as much as one over the whole.
func (w *boundedWriter) verify() error {
	if len(w.b) <= w.check {
		return nil
	}
	written := w.b[w.start:]
	w.check = w.start + 2*len(written)
	return checkDepth(written)
}

// finish returns the extended slice, if a decoder will take what was appended.
func (w *boundedWriter) finish() ([]byte, error) {
	out := w.b
	w.b = nil
	return out, checkWhole(out[w.start:])
}

var errTooLarge = fmt.Errorf("larger than %d bytes", maxSize)

// addressable returns a pointer to a copy of v if v is of a defined or composite type
// held by value. Encoders reach a method such as (*T).MarshalJSON only through an
// address, while decoding always has one: without the copy one direction would use
// the method and the other would not.
func addressable(v any) any {
	rv := reflect.ValueOf(v)
	if !rv.IsValid() || rv.Kind() == reflect.Pointer {
		return v
	}
	composite := rv.Kind() == reflect.Struct || rv.Kind() == reflect.Array
	if !composite && rv.Type().PkgPath() == "" {
		return v
	}
	p := reflect.New(rv.Type())
	p.Elem().Set(rv)
	return p.Interface()
}
