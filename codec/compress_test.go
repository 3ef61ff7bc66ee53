package codec_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/getorprime/getorprime/codec"
)

const (
	storedByte     = 0
	compressedByte = 1
)

func TestCompressThreshold(t *testing.T) {
	noise := make([]byte, 1000)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	tests := []struct {
		name      string
		threshold int
		payload   string
		want      byte
	}{
		{"empty", 0, "", storedByte},
		{"one byte under", 101, strings.Repeat("a", 100), storedByte},
		{"at the threshold", 100, strings.Repeat("a", 100), compressedByte},
		{"always", -1, strings.Repeat("a", 100), compressedByte},
		{"does not compress", 0, string(noise), storedByte},
		{"larger than the bound", 0, strings.Repeat("a", 64<<20+1), storedByte},
		{"larger than a pooled buffer", 100, strings.Repeat("abc", 1<<20), compressedByte},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := codec.Compress(codec.Raw{}, tt.threshold)
			out, err := c.MarshalAppend([]byte("head"), tt.payload)
			if err != nil {
				t.Fatal(err)
			}
			if out[4] != tt.want {
				t.Errorf("leading byte = %d, want %d", out[4], tt.want)
			}
			if n := len(out) - 5; n > len(tt.payload) || tt.want == compressedByte && n > len(tt.payload)/2 {
				t.Errorf("%d bytes became %d", len(tt.payload), n)
			}
			var got string
			if err := c.Unmarshal(out[4:], &got); err != nil || got != tt.payload {
				t.Errorf("Unmarshal = %d bytes, %v; want the %d of before", len(got), err, len(tt.payload))
			}
		})
	}
}

// TestCompressThresholdChanges reads entries that a program with another threshold
// wrote: the name, and so the schema, is the same.
func TestCompressThresholdChanges(t *testing.T) {
	small, large := codec.Compress(codec.JSON{}, 0), codec.Compress(codec.JSON{}, 1<<20)
	if small.Name() != large.Name() {
		t.Fatalf("names %q and %q differ", small.Name(), large.Name())
	}
	want := strings.Repeat("x", 500)
	for _, pair := range [][2]codec.Codec{{small, large}, {large, small}} {
		b, err := pair[0].MarshalAppend(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if err := pair[1].Unmarshal(b, &got); err != nil || got != want {
			t.Errorf("Unmarshal = %q, %v; want %q", got, err, want)
		}
	}
}

func TestCompressDecodeErrors(t *testing.T) {
	block := func(length uint64, rest ...byte) []byte {
		return append(binary.AppendUvarint([]byte{compressedByte}, length), rest...)
	}
	tests := []struct {
		name string
		in   []byte
		want string
	}{
		{"no bytes", nil, "no bytes"},
		{"unknown leading byte", []byte{9, 1, 2}, "unknown compression 9"},
		{"no block", []byte{compressedByte}, "corrupt"},
		{"corrupt block", block(5, 0xff, 0xff), "corrupt"},
		{"one byte above the bound", block(64<<20 + 1), "at most 67108864 allowed"},
		{"longer than any block", block(1 << 40), "s2: corrupt"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var v []byte
			err := codec.Compress(codec.Raw{}, 0).Unmarshal(tt.in, &v)
			var got *codec.DecodeError
			if !errors.As(err, &got) || got.Codec != "raw+s2" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want a DecodeError of raw+s2 with %q", err, tt.want)
			}
		})
	}
}

// TestCompressDoesNotShareScratch decodes two payloads after each other through the
// pooled buffer and looks whether the first value changed.
func TestCompressDoesNotShareScratch(t *testing.T) {
	for _, inner := range []codec.Codec{codec.Raw{}, codec.MsgPack{}, codec.JSON{}} {
		c := codec.Compress(inner, 0)
		var first, second []byte
		for _, p := range []struct {
			fill byte
			into *[]byte
		}{{'a', &first}, {'b', &second}} {
			b, err := c.MarshalAppend(nil, bytes.Repeat([]byte{p.fill}, 1000))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Unmarshal(b, p.into); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(first, bytes.Repeat([]byte{'a'}, 1000)) {
			t.Errorf("%s: the first value changed with the second call", c.Name())
		}
	}
}
