package codec

import (
	"bytes"
	"fmt"
	"reflect"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// MsgPack encodes values as MessagePack, with the bytes that msgpack.Marshal of
// github.com/vmihailenco/msgpack/v5 writes; its struct tags are `msgpack:"name"`.
// An empty slice or map stays apart from a nil one; a time comes back in the local
// zone. A value nested deeper than 10 000 levels, or one that contains itself, is an
// error. A msgpack.CustomEncoder has to write MessagePack values and nothing else.
type MsgPack struct{}

// maxPooled is the largest payload whose coder is used again, in bytes: a coder keeps
// the buffers it grew.
const maxPooled = 1 << 20

type msgpackEncoder struct {
	enc *msgpack.Encoder
	w   boundedWriter
}

type msgpackDecoder struct {
	dec *msgpack.Decoder
	r   bytes.Reader
}

var (
	msgpackEncoders = sync.Pool{New: func() any {
		return &msgpackEncoder{enc: msgpack.NewEncoder(nil)}
	}}
	msgpackDecoders = sync.Pool{New: func() any {
		return &msgpackDecoder{dec: msgpack.NewDecoder(nil)}
	}}
)

// Name returns "msgpack".
func (MsgPack) Name() string { return "msgpack" }

// MarshalAppend appends the MessagePack encoding of v to dst. Channels, functions and
// complex numbers are an [*EncodeError].
func (c MsgPack) MarshalAppend(dst []byte, v any) ([]byte, error) {
	out, err := appendMsgPack(dst, v)
	if err != nil {
		return dst, encodeError(c.Name(), v, err)
	}
	return out, nil
}

// Unmarshal decodes b into the value v points to. Bytes left over are a [*DecodeError].
func (c MsgPack) Unmarshal(b []byte, v any) error {
	if err := readMsgPack(b, v); err != nil {
		return decodeError(c.Name(), v, err)
	}
	return nil
}

// appendMsgPack puts the encoder back only after success: an error or a panic may
// leave it in the middle of something.
func appendMsgPack(dst []byte, v any) (out []byte, err error) {
	defer recoverTo(&err)
	e := msgpackEncoders.Get().(*msgpackEncoder)
	e.w.reset(dst)
	e.enc.Reset(&e.w)
	if err := e.enc.Encode(addressable(v)); err != nil {
		return nil, err
	}
	out, err = e.w.finish()
	msgpackEncoders.Put(e)
	return out, err
}

func readMsgPack(b []byte, v any) (err error) {
	defer recoverTo(&err)
	if err := checkWhole(b); err != nil {
		return err
	}
	d := msgpackDecoders.Get().(*msgpackDecoder)
	d.r.Reset(b)
	d.dec.Reset(&d.r)
	if err := d.dec.Decode(v); err != nil {
		return err
	}
	if n := d.r.Len(); n > 0 {
		return fmt.Errorf("%d bytes left over", n)
	}
	if len(b) <= maxPooled {
		d.r.Reset(nil)
		msgpackDecoders.Put(d)
	}
	return nil
}

// marshalsItself tells which types this codec leaves to their own methods.
func (MsgPack) marshalsItself(t reflect.Type) bool {
	return implements[msgpack.CustomEncoder](t) || implements[msgpack.Marshaler](t) ||
		implementsBinary(t) || implementsText(t)
}
