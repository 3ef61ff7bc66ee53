package codec_test

import (
	"errors"
	"testing"

	"github.com/getorprime/getorprime/codec"
)

func TestRawRoundTrip(t *testing.T) {
	s, b := "text", []byte("bytes")
	tests := []struct {
		name  string
		value any
		want  string
	}{
		{"string", s, s},
		{"empty string", "", ""},
		{"bytes", b, "bytes"},
		{"nil bytes", []byte(nil), ""},
		{"defined string", level("high"), "high"},
		{"defined bytes", blob("\x00\xff"), "\x00\xff"},
		{"pointer to string", &s, s},
		{"pointer to bytes", &b, "bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := codec.Raw{}.MarshalAppend([]byte(">"), tt.value)
			if err != nil || string(out) != ">"+tt.want {
				t.Errorf("MarshalAppend = %q, %v; want %q", out, err, ">"+tt.want)
			}
		})
	}
	t.Run("decode", func(t *testing.T) { rawDecodes(t, []byte("\x00in")) })
	t.Run("decode nothing", func(t *testing.T) { rawDecodes(t, nil) })
}

func rawDecodes(t *testing.T, in []byte) {
	t.Helper()
	var (
		s string
		b []byte
		l level
		o blob
	)
	for _, target := range []any{&s, &b, &l, &o} {
		if err := (codec.Raw{}).Unmarshal(in, target); err != nil {
			t.Errorf("Unmarshal into %T: %v", target, err)
		}
	}
	if s != string(in) || string(b) != string(in) || string(l) != string(in) || string(o) != string(in) {
		t.Errorf("Unmarshal(%q) = %q, %q, %q, %q", in, s, b, l, o)
	}
	if b == nil || o == nil {
		t.Error("Unmarshal left a nil slice, want an empty one")
	}
}

func TestRawCopies(t *testing.T) {
	in := []byte("abc")
	var got []byte
	if err := (codec.Raw{}).Unmarshal(in, &got); err != nil {
		t.Fatal(err)
	}
	out, err := codec.Raw{}.MarshalAppend(nil, in)
	if err != nil {
		t.Fatal(err)
	}
	in[0] = 'X'
	if string(got) != "abc" || string(out) != "abc" {
		t.Errorf("a change of the input shows: Unmarshal gave %q, MarshalAppend %q", got, out)
	}
}

// TestRawOwned decodes as Unmarshal does, but for bytes into what it is given.
func TestRawOwned(t *testing.T) {
	in := []byte("abc, and more")[:3]
	var got []byte
	var text string
	for _, v := range []any{&got, &text} {
		if err := (codec.Raw{}).UnmarshalOwned(in, v); err != nil {
			t.Fatal(err)
		}
	}
	in[0] = 'X'
	if string(got) != "Xbc" || cap(got) != 3 || text != "abc" {
		t.Errorf("got %q with room for %d, and %q; want the input itself, without what follows it, and a copy", got, cap(got), text)
	}
	if err := (codec.Raw{}).UnmarshalOwned(nil, &got); err != nil || got == nil || len(got) != 0 {
		t.Errorf("nothing: %v, %v; want an empty slice", got, err)
	}
	if err := (codec.Raw{}).UnmarshalOwned(in, (*[]byte)(nil)); err == nil {
		t.Error("into nil: no error")
	}
}

func TestRawUnsupported(t *testing.T) {
	for _, v := range []any{nil, 1, []string{"a"}, struct{}{}, (*string)(nil), [3]byte{}} {
		out, err := codec.Raw{}.MarshalAppend([]byte("x"), v)
		var want *codec.EncodeError
		if !errors.As(err, &want) || !errors.Is(err, errors.ErrUnsupported) || string(out) != "x" {
			t.Errorf("MarshalAppend(%T) = %q, %v; want x and an EncodeError that is ErrUnsupported", v, out, err)
		}
	}
	for _, v := range []any{new(int), new([]string), new(any), new(*string), (*string)(nil), "s"} {
		err := (codec.Raw{}).Unmarshal([]byte("x"), v)
		var want *codec.DecodeError
		if !errors.As(err, &want) || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Unmarshal into %T = %v, want a DecodeError that is ErrUnsupported", v, err)
		}
	}
}
