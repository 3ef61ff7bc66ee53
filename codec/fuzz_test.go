package codec_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/getorprime/getorprime/codec"
)

// targets are fresh values of the kinds of type a decoder treats differently.
func targets() []any {
	return []any{
		new(any), new(user), new(string), new([]byte), new(int8), new(uint64), new(float32), new(bool),
		new([]string), new([]address), new([3]int), new(map[string]string), new(map[string]any), new(map[int]address),
		new(*address), new(pointerJSON), new(level), new(blob), new(node),
	}
}

// decodeAll wants each target decoded, or a DecodeError.
func decodeAll(t *testing.T, c codec.Codec, in []byte) {
	before := bytes.Clone(in)
	for _, v := range targets() {
		err := c.Unmarshal(in, v)
		var de *codec.DecodeError
		if err != nil && !errors.As(err, &de) {
			t.Errorf("%s: Unmarshal(%x) into %T: %v", c.Name(), in, v, err)
		}
		if !bytes.Equal(in, before) {
			t.Fatalf("%s: Unmarshal into %T changed its input", c.Name(), v)
		}
		if err == nil {
			encodeAgain(t, c, v)
		}
	}
}

// encodeAgain wants that what came out of a decoder goes back in.
func encodeAgain(t *testing.T, c codec.Codec, v any) {
	b, err := c.MarshalAppend(nil, v)
	if err != nil {
		t.Errorf("%s: MarshalAppend(%#v): %v", c.Name(), v, err)
		return
	}
	fresh := reflect.New(reflect.TypeOf(v).Elem()).Interface()
	if err := c.Unmarshal(b, fresh); err != nil {
		t.Errorf("%s: %#v became %x, which does not decode: %v", c.Name(), v, b, err)
	}
}

func seed(f *testing.F, c codec.Codec) {
	for _, v := range []any{nil, "", "text", []byte{1}, -1, 1.5, true, sampleUser(), pointerlessMap(), [3]int{1, 2, 3}, chain(5)} {
		b, err := c.MarshalAppend(nil, v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

func FuzzMsgPackUnmarshal(f *testing.F) {
	seed(f, codec.MsgPack{})
	f.Add([]byte("\xdf\xff\xff\xff\xff"))
	f.Add([]byte("\xdd\xff\xff\xff\xff\x01"))
	f.Add([]byte("\xc6\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, in []byte) { decodeAll(t, codec.MsgPack{}, in) })
}

func FuzzJSONUnmarshal(f *testing.F) {
	seed(f, codec.JSON{})
	f.Fuzz(func(t *testing.T, in []byte) { decodeAll(t, codec.JSON{}, in) })
}

func FuzzCompressUnmarshal(f *testing.F) {
	c := codec.Compress(codec.Raw{}, 0)
	for _, s := range []string{"", "short", strings.Repeat("long", 1000)} {
		b, err := c.MarshalAppend(nil, s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var got []byte
		err := c.Unmarshal(in, &got)
		var de *codec.DecodeError
		if err != nil && !errors.As(err, &de) {
			t.Errorf("Unmarshal(%x) = %v, want a DecodeError", in, err)
		}
		if err == nil {
			bytesRoundTrip(t, c, got)
		}
	})
}

func FuzzRawRoundTrip(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("\x00\xff"))
	f.Fuzz(func(t *testing.T, in []byte) { bytesRoundTrip(t, codec.Raw{}, in) })
}

func FuzzCompressRoundTrip(f *testing.F) {
	f.Add([]byte(nil), 0)
	f.Add(bytes.Repeat([]byte("ab"), 500), 100)
	f.Fuzz(func(t *testing.T, in []byte, threshold int) {
		for _, inner := range []codec.Codec{codec.Raw{}, codec.MsgPack{}, codec.JSON{}} {
			bytesRoundTrip(t, codec.Compress(inner, threshold), in)
		}
	})
}

func bytesRoundTrip(t *testing.T, c codec.Codec, in []byte) {
	b, err := c.MarshalAppend([]byte("head"), in)
	if err != nil || !bytes.HasPrefix(b, []byte("head")) {
		t.Fatalf("%s: MarshalAppend(%x) = %x, %v", c.Name(), in, b, err)
	}
	var got []byte
	if err := c.Unmarshal(b[4:], &got); err != nil || !bytes.Equal(got, in) {
		t.Errorf("%s: Unmarshal(%x) = %x, %v; want %x", c.Name(), b[4:], got, err, in)
	}
}
