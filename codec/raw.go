package codec

import (
	"errors"
	"reflect"
	"slices"
)

// Raw stores []byte, string and types defined from them byte for byte. The stored
// entry has no other content, so a nil slice comes back empty. Every other type is an
// error that wraps [errors.ErrUnsupported].
type Raw struct{}

// Name returns "raw".
func (Raw) Name() string { return "raw" }

// MarshalAppend appends a copy of v, a []byte or string or a pointer to one, to dst.
func (c Raw) MarshalAppend(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case []byte:
		return append(dst, v...), nil
	case string:
		return append(dst, v...), nil
	}
	rv := reflect.Indirect(reflect.ValueOf(v))
	switch {
	case isString(rv):
		return append(dst, rv.String()...), nil
	case isBytes(rv):
		return append(dst, rv.Bytes()...), nil
	}
	return dst, encodeError(c.Name(), v, errors.ErrUnsupported)
}

// Unmarshal stores a copy of b in the []byte or string that v points to.
func (c Raw) Unmarshal(b []byte, v any) error {
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		return decodeError(c.Name(), v, errors.ErrUnsupported)
	}
	switch rv = rv.Elem(); {
	case isString(rv):
		rv.SetString(string(b))
	case isBytes(rv):
		rv.SetBytes(append([]byte{}, b...))
	default:
		return decodeError(c.Name(), v, errors.ErrUnsupported)
	}
	return nil
}

// UnmarshalOwned is Unmarshal for a caller who has no further use for b: a []byte
// gets b itself.
func (c Raw) UnmarshalOwned(b []byte, v any) error {
	if p, ok := v.(*[]byte); ok && p != nil && len(b) > 0 {
		*p = slices.Clip(b)
		return nil
	}
	return c.Unmarshal(b, v)
}

func isString(v reflect.Value) bool { return v.Kind() == reflect.String }

func isBytes(v reflect.Value) bool {
	return v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8
}
