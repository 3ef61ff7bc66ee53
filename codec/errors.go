package codec

import (
	"fmt"
	"reflect"
)

// EncodeError reports a value that could not be encoded.
type EncodeError struct {
	Codec string // name of the codec
	Type  string // Go type of the value
	Err   error  // what went wrong; never nil
}

// Error names the codec, the type and the cause.
func (e *EncodeError) Error() string {
	return fmt.Sprintf("codec: %s cannot encode %s: %v", e.Codec, e.Type, e.Err)
}

// Unwrap returns the cause.
func (e *EncodeError) Unwrap() error { return e.Err }

// DecodeError reports bytes that are not an encoding of the wanted type.
type DecodeError struct {
	Codec string // name of the codec
	Type  string // Go type that was asked for
	Err   error  // what went wrong; never nil
}

// Error names the codec, the type and the cause.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("codec: %s cannot decode into %s: %v", e.Codec, e.Type, e.Err)
}

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Err }

func encodeError(codec string, v any, err error) error {
	return &EncodeError{Codec: codec, Type: fmt.Sprintf("%T", v), Err: err}
}

// decodeError names the type behind the pointer v: the one the caller thinks of.
func decodeError(codec string, v any, err error) error {
	name := fmt.Sprintf("%T", v)
	if t := reflect.TypeOf(v); t != nil && t.Kind() == reflect.Pointer {
		name = t.Elem().String()
	}
	return &DecodeError{Codec: codec, Type: name, Err: err}
}

// recoverTo turns a panic into an error. It must be deferred itself: recover works
// only in the deferred function.
func recoverTo(err *error) {
	switch r := recover().(type) {
	case nil:
	case error:
		*err = fmt.Errorf("panic: %w", r)
	default:
		*err = fmt.Errorf("panic: %v", r)
	}
}
