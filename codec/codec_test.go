package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getorprime/getorprime/codec"
	"github.com/vmihailenco/msgpack/v5"
)

type address struct {
	Street string
	Zip    *string
}

type user struct {
	ID      int64 `json:"id" msgpack:"id"`
	Name    string
	Tags    []string
	Scores  map[string]float64
	Home    *address
	Friends []*user
	Joined  time.Time
	Balance big.Int // (*big.Int).MarshalText has a pointer receiver
}

type level string

type blob []byte

// pointerJSON marshals itself only through its address.
type pointerJSON struct{ N int }

func (p *pointerJSON) MarshalJSON() ([]byte, error)           { return json.Marshal([]int{p.N}) }
func (p *pointerJSON) UnmarshalJSON(b []byte) error           { return json.Unmarshal(b, &[]*int{&p.N}) }
func (p *pointerJSON) EncodeMsgpack(e *msgpack.Encoder) error { return e.EncodeInt(int64(p.N)) }
func (p *pointerJSON) DecodeMsgpack(d *msgpack.Decoder) (err error) {
	p.N, err = d.DecodeInt()
	return err
}

type panicky struct{ Value any }

func (p panicky) MarshalJSON() ([]byte, error)    { panic(p.Value) }
func (p panicky) MarshalMsgpack() ([]byte, error) { panic(p.Value) }
func (p *panicky) UnmarshalJSON([]byte) error     { panic(errBoom) }
func (p *panicky) UnmarshalMsgpack([]byte) error  { panic(errBoom) }

var errBoom = errors.New("boom")

func sampleUser() user {
	zip := "8001"
	return user{
		ID: math.MaxInt64, Name: "Ada\x00<&>", Tags: []string{"a", ""},
		Scores: map[string]float64{"x": 0.5}, Home: &address{Street: "Bahnhofstrasse", Zip: &zip},
		Friends: []*user{{Name: "Grace"}, nil},
		Joined:  time.Date(2024, 2, 29, 12, 0, 0, 5, time.UTC), Balance: *big.NewInt(-42),
	}
}

// structured are the codecs that take any type.
func structured() []codec.Codec {
	return []codec.Codec{
		codec.MsgPack{},
		codec.JSON{},
		codec.Compress(codec.MsgPack{}, 0), codec.Compress(codec.JSON{}, 64), codec.Compress(nil, 1<<20),
	}
}

func TestName(t *testing.T) {
	tests := []struct {
		codec codec.Codec
		want  string
	}{
		{codec.MsgPack{}, "msgpack"},
		{codec.JSON{}, "json"},
		{codec.Raw{}, "raw"},
		{codec.Compress(codec.JSON{}, 10), "json+s2"},
		{codec.Compress(nil, 10), "msgpack+s2"},
	}
	for _, tt := range tests {
		if got := tt.codec.Name(); got != tt.want {
			t.Errorf("Name = %q, want %q", got, tt.want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	tests := []struct {
		name  string
		value any
	}{
		{"empty string", ""},
		{"string", "grüezi"},
		{"empty bytes", []byte{}},
		{"bytes", []byte{0, 255}},
		{"zero int", 0},
		{"extreme ints", []int64{math.MinInt64, math.MaxInt64}},
		{"uint64", uint64(math.MaxUint64)},
		{"float", math.SmallestNonzeroFloat64},
		{"false", false},
		{"duration", 90 * time.Second},
		{"defined string", level("high")},
		{"defined bytes", blob("x")},
		{"empty strings", []string{}},
		{"nil slice", []string(nil)},
		{"empty slice of structs", []address{}},
		{"empty map", map[string]int{}},
		{"map of ints", map[int]address{-1: {Street: "s"}}},
		{"array", [2]bool{true, false}},
		{"zero struct", address{}},
		{"empty struct", struct{}{}},
		{"struct", sampleUser()},
		{"pointer", &address{Street: "s"}},
		{"nil pointer", (*address)(nil)},
		{"pointer receivers", pointerJSON{N: 7}},
		{"time", time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)},
	}
	for _, c := range structured() {
		for _, tt := range tests {
			t.Run(c.Name()+"/"+tt.name, func(t *testing.T) { roundTrip(t, c, tt.value) })
		}
	}
}

// roundTrip encodes behind a prefix, which has to stay, and decodes into a fresh value.
func roundTrip(t *testing.T, c codec.Codec, value any) {
	t.Helper()
	out, err := c.MarshalAppend([]byte("head"), value)
	if err != nil {
		t.Fatalf("MarshalAppend(%#v): %v", value, err)
	}
	payload, ok := bytes.CutPrefix(out, []byte("head"))
	if !ok {
		t.Fatalf("MarshalAppend changed what it appends to: %q", out)
	}
	before := bytes.Clone(payload)
	got := reflect.New(reflect.TypeOf(value))
	if err := c.Unmarshal(payload, got.Interface()); err != nil {
		t.Fatalf("Unmarshal(%q): %v", payload, err)
	}
	if !bytes.Equal(before, payload) {
		t.Errorf("Unmarshal changed its input from %q to %q", before, payload)
	}
	if got := normal(got.Elem().Interface()); !reflect.DeepEqual(got, normal(value)) {
		t.Errorf("got %#v, want %#v", got, value)
	}
}

// normal brings times to UTC, which is all DeepEqual could differ in.
func normal(v any) any {
	switch v := v.(type) {
	case time.Time:
		return v.UTC()
	case user:
		v.Joined = v.Joined.UTC()
		for i, f := range v.Friends {
			if f != nil {
				n := normal(*f).(user)
				v.Friends[i] = &n
			}
		}
		return v
	}
	return v
}

func TestTrailingBytes(t *testing.T) {
	for _, c := range structured() {
		t.Run(c.Name(), func(t *testing.T) {
			b, err := c.MarshalAppend(nil, "value")
			if err != nil {
				t.Fatal(err)
			}
			var s string
			var want *codec.DecodeError
			if err := c.Unmarshal(append(b, 1), &s); !errors.As(err, &want) {
				t.Errorf("Unmarshal with a byte too many = %v, want a DecodeError", err)
			}
		})
	}
}

func TestEncodeErrors(t *testing.T) {
	cyclic := &user{Name: "self"}
	cyclic.Friends = []*user{cyclic}
	loop := map[string]any{}
	loop["loop"] = loop
	tests := []struct {
		name     string
		value    any
		typeName string
	}{
		{"channel", make(chan int), "chan int"},
		{"nil channel in a struct", struct{ C chan int }{}, "struct { C chan int }"},
		{"function", func() {}, "func()"},
		{"complex", 1i, "complex128"},
		{"panic with a string", panicky{"oops"}, "codec_test.panicky"},
		{"panic with an error", panicky{errBoom}, "codec_test.panicky"},
		{"cycle through a pointer", cyclic, "*codec_test.user"},
		{"cycle through a map", loop, "map[string]interface {}"},
	}
	for _, c := range structured() {
		for _, tt := range tests {
			t.Run(c.Name()+"/"+tt.name, func(t *testing.T) {
				out, err := c.MarshalAppend([]byte("head"), tt.value)
				var got *codec.EncodeError
				if !errors.As(err, &got) {
					t.Fatalf("error = %v, want an EncodeError", err)
				}
				if got.Type != tt.typeName || got.Codec != strings.TrimSuffix(c.Name(), "+s2") {
					t.Errorf("error names %s and %s, want %s and %s", got.Codec, got.Type, c.Name(), tt.typeName)
				}
				if string(out) != "head" {
					t.Errorf("MarshalAppend returned %q beside its error, want dst as it was", out)
				}
			})
		}
	}
}

func TestErrorsUnwrap(t *testing.T) {
	for _, c := range []codec.Codec{codec.MsgPack{}, codec.JSON{}} {
		_, err := c.MarshalAppend(nil, panicky{errBoom})
		if !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "panicky: ") {
			t.Errorf("%s: encode error = %v, want one that names the type and is %v", c.Name(), err, errBoom)
		}
		b, err := c.MarshalAppend(nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		var p panicky
		err = c.Unmarshal(b, &p)
		if !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "into codec_test.panicky: ") {
			t.Errorf("%s: decode error = %v, want one that names the type and is %v", c.Name(), err, errBoom)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, c := range append(structured(), codec.Raw{}) {
		for _, target := range []any{nil, user{}, (*user)(nil), new(chan int)} {
			var want *codec.DecodeError
			if err := c.Unmarshal([]byte("\x00\x01"), target); !errors.As(err, &want) {
				t.Errorf("%s: Unmarshal into %T = %v, want a DecodeError", c.Name(), target, err)
			}
		}
	}
}

// TestMsgPackNilTime has bytes on which the library panics.
func TestMsgPackNilTime(t *testing.T) {
	in := []byte("\x81\xa6Joined\xc0")
	var want *codec.DecodeError
	if err := (codec.MsgPack{}).Unmarshal(in, new(user)); !errors.As(err, &want) || !strings.Contains(err.Error(), "panic: ") {
		t.Errorf("Unmarshal of nil as a time = %v, want a DecodeError from a panic", err)
	}
}

// TestSharedBytes lets many callers of one load decode the same bytes, for the race
// detector, and shows that none sees what another does with its copy.
func TestSharedBytes(t *testing.T) {
	for _, c := range structured() {
		b, err := c.MarshalAppend(nil, sampleUser())
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				var u user
				if err := c.Unmarshal(b, &u); err != nil || u.Tags[0] != "a" || u.Home.Street != "Bahnhofstrasse" {
					t.Errorf("%s: Unmarshal = %+v, %v", c.Name(), u, err)
					return
				}
				u.Tags[0], u.Home.Street = "changed", "changed"
			})
		}
		wg.Wait()
	}
}
