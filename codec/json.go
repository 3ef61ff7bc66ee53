package codec

import (
	"encoding/json"
	"reflect"
)

// JSON encodes values with encoding/json, without escaping HTML. What holds there
// holds here: []byte becomes base64, and bytes of a string that are not UTF-8 are
// replaced. Use [MsgPack] or [Raw] where those matter.
type JSON struct{}

// Name returns "json".
func (JSON) Name() string { return "json" }

// MarshalAppend appends the JSON encoding of v to dst. Channels, functions, complex
// numbers and a value that contains itself are an [*EncodeError].
func (c JSON) MarshalAppend(dst []byte, v any) ([]byte, error) {
	out, err := appendJSON(dst, v)
	if err != nil {
		return dst, encodeError(c.Name(), v, err)
	}
	return out, nil
}

// Unmarshal decodes b into the value v points to. Anything but white space after the
// value is a [*DecodeError].
func (c JSON) Unmarshal(b []byte, v any) error {
	if err := readJSON(b, v); err != nil {
		return decodeError(c.Name(), v, err)
	}
	return nil
}

func appendJSON(dst []byte, v any) (out []byte, err error) {
	defer recoverTo(&err)
	var w appendWriter
	w.reset(dst)
	enc := json.NewEncoder(&w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(addressable(v)); err != nil {
		return nil, err
	}
	return w.b[:len(w.b)-1], nil // Encode ends each value with a newline
}

func readJSON(b []byte, v any) (err error) {
	defer recoverTo(&err)
	return json.Unmarshal(b, v)
}

// marshalsItself tells which types this codec leaves to their own methods.
func (JSON) marshalsItself(t reflect.Type) bool {
	return implements[json.Marshaler](t) || implementsText(t)
}
