package codec_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/getorprime/getorprime/codec"
	"github.com/vmihailenco/msgpack/v5"
)

func schemaOf[T any](c codec.Codec) uint32 { return codec.Schema(c, reflect.TypeFor[T]()) }

type (
	frozenLeaf struct {
		Name string `json:"name,omitempty" msgpack:"n"`
		note string
	}
	frozenTree struct {
		frozenLeaf
		Left, Right *frozenTree
		Leaves      map[string][]frozenLeaf
		At          time.Time
		Any         any
		Sum         [4]byte
	}
	frozenBox[T any] struct{ Value T }
)

// TestSchemaFrozen holds the hashes to what is stored in running systems: changing
// one turns every stored entry of that kind into a miss. If that is meant, raise the
// format constant, so that it is one change for all.
func TestSchemaFrozen(t *testing.T) {
	_ = frozenLeaf{note: "unexported, and so not a part of the shape"}
	mp := codec.MsgPack{}
	tests := []struct {
		name string
		got  uint32
		want uint32
	}{
		{"string", schemaOf[string](mp), 0x03754e14},
		{"string as json", schemaOf[string](codec.JSON{}), 0xd437b7b5},
		{"string compressed", schemaOf[string](codec.Compress(mp, 1)), 0x2b13ae9e},
		{"bytes raw", schemaOf[[]byte](codec.Raw{}), 0xb5055eb6},
		{"time", schemaOf[time.Time](mp), 0x151bb5e8},
		{"any", schemaOf[any](mp), 0x4bdf0b72},
		{"leaf", schemaOf[frozenLeaf](mp), 0xcee296d1},
		{"pointer to leaf", schemaOf[*frozenLeaf](mp), 0xd44041b8},
		{"tree", schemaOf[frozenTree](mp), 0x49747651},
		{"generic", schemaOf[frozenBox[frozenLeaf]](mp), 0xa377f17f},
		{"no type", codec.Schema(mp, nil), 0x5db2af42},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: Schema = %#08x, want %#08x", tt.name, tt.got, tt.want)
		}
	}
}

type (
	sameA struct{ Name string }
	sameB struct{ Name string }
)

type unexported struct{ Name string }

// TestSchemaDiffers compares types that a codec would decode into each other.
func TestSchemaDiffers(t *testing.T) {
	c := codec.MsgPack{}
	hashes := map[uint32]string{}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[sameA](), reflect.TypeFor[sameB](), reflect.TypeFor[*sameA](), reflect.TypeFor[[]sameA](),
		reflect.TypeFor[[2]sameA](), reflect.TypeFor[[3]sameA](), reflect.TypeFor[map[string]sameA](), reflect.TypeFor[map[sameA]string](),
		reflect.TypeFor[struct{ Name string }](), reflect.TypeFor[struct{ Title string }](), reflect.TypeFor[struct{ Name int }](),
		reflect.TypeFor[struct{ Name, Title string }](), reflect.TypeFor[struct{ Title, Name string }](),
		reflect.TypeFor[struct {
			Name string `json:"n"`
		}](),
		reflect.TypeFor[struct {
			Name string `msgpack:"n"`
		}](),
		reflect.TypeFor[struct{ Inner struct{ Name string } }](), reflect.TypeFor[struct{ Inner struct{ Title string } }](),
		reflect.TypeFor[struct{ unexported }](), reflect.TypeFor[struct{ Unexported unexported }](),
		reflect.TypeFor[struct {
			_msgpack struct{} `msgpack:",as_array"`
			Name     string
		}](),
		reflect.TypeFor[int](), reflect.TypeFor[int64](), reflect.TypeFor[time.Duration](), reflect.TypeFor[time.Time](),
		reflect.TypeFor[string](), reflect.TypeFor[level](), reflect.TypeFor[[]byte](), reflect.TypeFor[blob](), reflect.TypeFor[any](),
		reflect.TypeFor[frozenBox[int]](), reflect.TypeFor[frozenBox[sameA]](), reflect.TypeFor[frozenBox[sameB]](),
		reflect.TypeFor[node](), reflect.TypeFor[url.URL](), reflect.TypeFor[struct{}](),
	} {
		h := codec.Schema(c, typ)
		if other, ok := hashes[h]; ok {
			t.Errorf("%v and %v have the same schema %#x", other, typ, h)
		}
		hashes[h] = fmt.Sprint(typ)
	}
}

func TestSchemaSame(t *testing.T) {
	c := codec.MsgPack{}
	tests := []struct {
		name string
		a, b reflect.Type
	}{
		{"unexported fields do not count", reflect.TypeFor[struct {
			Name  string
			cache int
		}](), reflect.TypeFor[struct{ Name string }]()},
		{"byte is uint8", reflect.TypeFor[[]byte](), reflect.TypeFor[[]uint8]()},
		{"channels are of one kind", reflect.TypeFor[chan int](), reflect.TypeFor[chan string]()},
	}
	for _, tt := range tests {
		if a, b := codec.Schema(c, tt.a), codec.Schema(c, tt.b); a != b {
			t.Errorf("%s: Schema = %#x and %#x, want the same", tt.name, a, b)
		}
	}
}

func TestSchemaCodec(t *testing.T) {
	hashes := map[uint32]string{}
	for _, c := range []codec.Codec{
		codec.MsgPack{}, codec.JSON{}, codec.Raw{}, codec.Compress(codec.MsgPack{}, 1), codec.Compress(codec.JSON{}, 1), foreign{},
	} {
		h := schemaOf[string](c)
		if other, ok := hashes[h]; ok {
			t.Errorf("%s and %s have the same schema %#x", other, c.Name(), h)
		}
		hashes[h] = c.Name()
	}
}

// foreign is a codec of another package.
type foreign struct{ codec.JSON }

func (foreign) Name() string { return "foreign" }

// opaque types: their shape counts exactly where the codec ignores their methods. Two
// local types of one name stand for two builds with another shape of the type.
func TestSchemaOwnMarshalling(t *testing.T) {
	jsonA, jsonB := customJSONv1(), customJSONv2()
	binA, binB := customBinaryV1(), customBinaryV2()
	packed := codec.Compress(codec.MsgPack{}, 1)
	tests := []struct {
		name     string
		codec    codec.Codec
		a, b     reflect.Type
		wantSame bool
	}{
		{"JSON calls MarshalJSON", codec.JSON{}, jsonA, jsonB, true},
		{"MsgPack does not", codec.MsgPack{}, jsonA, jsonB, false},
		{"MsgPack calls EncodeMsgpack", codec.MsgPack{}, binA, binB, true},
		{"a compressed one does as well", packed, binA, binB, true},
		{"JSON does not", codec.JSON{}, binA, binB, false},
		{"Raw calls nothing", codec.Raw{}, binA, binB, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.a.Name() != tt.b.Name() || tt.a == tt.b {
				t.Fatalf("%v and %v are no two types of one name", tt.a, tt.b)
			}
			a, b := codec.Schema(tt.codec, tt.a), codec.Schema(tt.codec, tt.b)
			if (a == b) != tt.wantSame {
				t.Errorf("Schema = %#x and %#x, want the same: %v", a, b, tt.wantSame)
			}
		})
	}
}

type jsonMethod struct{}

func (jsonMethod) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

type msgpackMethod struct{}

func (*msgpackMethod) EncodeMsgpack(e *msgpack.Encoder) error { return e.EncodeNil() }

// The methods are promoted from the embedded fields: local types cannot declare any.
func customJSONv1() reflect.Type {
	type custom struct {
		jsonMethod
		Old int
	}
	return reflect.TypeFor[custom]()
}

func customJSONv2() reflect.Type {
	type custom struct {
		jsonMethod
		New string
	}
	return reflect.TypeFor[custom]()
}

func customBinaryV1() reflect.Type {
	type custom struct {
		msgpackMethod
		Old int
	}
	return reflect.TypeFor[custom]()
}

func customBinaryV2() reflect.Type {
	type custom struct {
		msgpackMethod
		New string
	}
	return reflect.TypeFor[custom]()
}

// TestSchemaOldShape is the case of two builds of one program: the type kept its name
// and got another field.
func TestSchemaOldShape(t *testing.T) {
	before, after := shapeV1(), shapeV2()
	if before.Name() != after.Name() || before.PkgPath() != after.PkgPath() {
		t.Fatalf("%v and %v do not have one name", before, after)
	}
	for _, c := range structured() {
		if a, b := codec.Schema(c, before), codec.Schema(c, after); a == b {
			t.Errorf("%s: Schema = %#x before and after a field was renamed", c.Name(), a)
		}
	}
}

func shapeV1() reflect.Type {
	type shape struct{ Name string }
	return reflect.TypeFor[[]*shape]().Elem().Elem()
}

func shapeV2() reflect.Type {
	type shape struct{ Title string }
	return reflect.TypeFor[[]*shape]().Elem().Elem()
}

var (
	_ json.Marshaler        = jsonMethod{}
	_ msgpack.CustomEncoder = (*msgpackMethod)(nil)
)
