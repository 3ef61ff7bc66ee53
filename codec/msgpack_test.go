package codec_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/getorprime/getorprime/codec"
	"github.com/vmihailenco/msgpack/v5"
)

func TestMsgPackBytes(t *testing.T) {
	u := sampleUser()
	for _, v := range []any{nil, "", 7, level("x"), []string{"a"}, address{Street: "s"}, &u, pointerlessMap()} {
		want, err := msgpack.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := codec.MsgPack{}.MarshalAppend(nil, v)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("MarshalAppend(%T) = %x, %v; want %x as msgpack.Marshal", v, got, err, want)
		}
	}
}

func pointerlessMap() map[string]any { return map[string]any{"k": []any{int64(1), "v", nil}} }

// TestMsgPackAppends wants no copy where the slice has room.
func TestMsgPackAppends(t *testing.T) {
	dst := make([]byte, 3, 256)
	out, err := codec.MsgPack{}.MarshalAppend(dst, "value")
	if err != nil {
		t.Fatal(err)
	}
	if &out[0] != &dst[0] {
		t.Error("MarshalAppend moved a slice that had room")
	}
}

// TestMsgPackReusesAfterErrors runs good calls between bad ones, which would show a
// coder that went back to the pool half-way.
func TestMsgPackReusesAfterErrors(t *testing.T) {
	c := codec.MsgPack{}
	want, err := msgpack.Marshal("good")
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := c.MarshalAppend(nil, panicky{"oops"}); err == nil {
			t.Fatal("no error for a panic")
		}
		if err := c.Unmarshal([]byte{msgpackTruncatedMap}, new(panicky)); err == nil {
			t.Fatal("no error for truncated bytes")
		}
		got, err := c.MarshalAppend(nil, "good")
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("MarshalAppend after an error = %q, %v; want %q", got, err, want)
		}
		var s string
		if err := c.Unmarshal(got, &s); err != nil || s != "good" {
			t.Fatalf("Unmarshal after an error = %q, %v; want good", s, err)
		}
	}
}

const msgpackTruncatedMap = 0x81 // a map of one pair that does not follow

type node struct{ Next *node }

func chain(n int) *node {
	var head *node
	for range n {
		head = &node{Next: head}
	}
	return head
}

// TestMsgPackDepth holds what may be written and what may be read to the same limit.
func TestMsgPackDepth(t *testing.T) {
	c := codec.MsgPack{}
	tests := []struct {
		name    string
		depth   int
		wantErr bool
	}{
		{"shallow", 10, false},
		{"deepest", 10_000, false},
		{"one too deep", 10_001, true},
		{"far too deep", 1_000_000, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := c.MarshalAppend(nil, chain(tt.depth))
			if (err != nil) != tt.wantErr {
				t.Errorf("MarshalAppend of a chain of %d: error = %v, want one: %v", tt.depth, err, tt.wantErr)
			}
			arrays := append(bytes.Repeat([]byte{0x91}, tt.depth), 0xc0)
			err = c.Unmarshal(arrays, new(any))
			if (err != nil) != tt.wantErr {
				t.Errorf("Unmarshal of %d arrays: error = %v, want one: %v", tt.depth, err, tt.wantErr)
			}
		})
	}
}

// TestMsgPackDepthSkipsContent has long bytes of every kind whose content would read
// as nested arrays, and must not be counted; and nesting behind them, which must be.
func TestMsgPackDepthSkipsContent(t *testing.T) {
	c := codec.MsgPack{}
	content := strings.Repeat("\x91", 20_000)
	nested := string(bytes.Repeat([]byte{0x91}, 20_000)) + "\xc0"
	scalars := map[string]string{
		"str16": "\xda\x4e\x20" + content, "str32": "\xdb\x00\x00\x4e\x20" + content,
		"bin16": "\xc5\x4e\x20" + content, "bin32": "\xc6\x00\x00\x4e\x20" + content,
		"str8": "\xd9\x20" + content[:32], "bin8": "\xc4\x20" + content[:32], "fixstr": "\xbf" + content[:31],
		"uint8": "\xcc\x91", "uint16": "\xcd\x91\x91", "uint32": "\xce" + content[:4], "uint64": "\xcf" + content[:8],
		"int8": "\xd0\x91", "int16": "\xd1\x91\x91", "int32": "\xd2" + content[:4], "int64": "\xd3" + content[:8],
		"float32": "\xca" + content[:4], "float64": "\xcb" + content[:8], "fixint": "\x01", "true": "\xc3",
		"fixmap": "\x81\xa1k\xc0", "map16": "\xde\x00\x01\xa1k\xc0", "map32": "\xdf\x00\x00\x00\x01\xa1k\xc0",
		"array16": "\xdc\x00\x01\xc0", "array32": "\xdd\x00\x00\x00\x01\xc0", "empty array": "\x90", "empty map": "\x80",
	}
	for name, scalar := range scalars {
		t.Run(name, func(t *testing.T) {
			many := "\xdc\x4e\x20" + strings.Repeat("\xc2", 19_999) + scalar
			if err := c.Unmarshal([]byte(many), new(any)); err != nil {
				t.Errorf("flat content: %v", err)
			}
			err := c.Unmarshal([]byte("\x92"+scalar+nested), new(any))
			if err == nil || !strings.Contains(err.Error(), "nested deeper than 10000") {
				t.Errorf("nesting behind it: error = %v, want one about the depth", err)
			}
		})
	}
}

// TestMsgPackForeignStruct is why Schema exists: the codec itself cannot tell.
func TestMsgPackForeignStruct(t *testing.T) {
	type stored struct{ Name string }
	type wanted struct{ Title string }
	b, err := codec.MsgPack{}.MarshalAppend(nil, stored{Name: "Ada"})
	if err != nil {
		t.Fatal(err)
	}
	var got wanted
	if err := (codec.MsgPack{}).Unmarshal(b, &got); err != nil || got != (wanted{}) {
		t.Fatalf("Unmarshal = %+v, %v; the premise was a zero value and no error", got, err)
	}
	if s, w := schemaOf[stored](codec.MsgPack{}), schemaOf[wanted](codec.MsgPack{}); s == w {
		t.Errorf("Schema = %#x for both types, so the bytes would pass as a zero value", s)
	}
}

func TestMsgPackTooLarge(t *testing.T) {
	_, err := codec.MsgPack{}.MarshalAppend(nil, make([]byte, 512<<20))
	var want *codec.EncodeError
	if !errors.As(err, &want) || !strings.Contains(err.Error(), "larger than 536870912 bytes") {
		t.Errorf("error = %v, want one about the size", err)
	}
}

func BenchmarkMarshal(b *testing.B) {
	u := sampleUser()
	b.Run("library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := msgpack.Marshal(&u); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, c := range benchmarked() {
		b.Run(c.Name(), func(b *testing.B) {
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if buf, err = c.MarshalAppend(buf[:0], u); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	b.Run("library", func(b *testing.B) {
		u := sampleUser()
		in, err := msgpack.Marshal(&u)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := msgpack.Unmarshal(in, new(user)); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, c := range benchmarked() {
		in, err := c.MarshalAppend(nil, sampleUser())
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Unmarshal(in, new(user)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchmarked() []codec.Codec {
	return []codec.Codec{codec.MsgPack{}, codec.JSON{}, codec.Compress(codec.MsgPack{}, 0)}
}
