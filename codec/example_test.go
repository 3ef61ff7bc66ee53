package codec_test

import (
	"fmt"
	"log"
	"reflect"
	"strings"

	"github.com/getorprime/getorprime/codec"
)

type Product struct {
	Name  string
	Price int `json:"price" msgpack:"price"`
}

func ExampleMsgPack() {
	b, err := codec.MsgPack{}.MarshalAppend(nil, Product{Name: "tea", Price: 5})
	if err != nil {
		log.Fatal(err)
	}
	var p Product
	if err := (codec.MsgPack{}).Unmarshal(b, &p); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q\n%+v\n", b, p)
	// Output:
	// "\x82\xa4Name\xa3tea\xa5price\x05"
	// {Name:tea Price:5}
}

func ExampleJSON() {
	b, err := codec.JSON{}.MarshalAppend([]byte("stored: "), Product{Name: "tea", Price: 5})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(b))
	// Output: stored: {"Name":"tea","price":5}
}

func ExampleRaw() {
	b, err := codec.Raw{}.MarshalAppend(nil, "as it is")
	fmt.Println(string(b), err)
	_, err = codec.Raw{}.MarshalAppend(nil, 42)
	fmt.Println(err)
	// Output:
	// as it is <nil>
	// codec: raw cannot encode int: unsupported operation
}

func ExampleCompress() {
	c := codec.Compress(codec.JSON{}, 1024)
	short, err := c.MarshalAppend(nil, strings.Repeat("tea ", 10))
	if err != nil {
		log.Fatal(err)
	}
	long, err := c.MarshalAppend(nil, strings.Repeat("tea ", 1000))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Name(), len(short), len(long) < 100)
	// Output: json+s2 43 true
}

func ExampleSchema() {
	type product struct{ Name string }
	type article struct{ Title string }
	a := codec.Schema(codec.MsgPack{}, reflect.TypeFor[product]())
	b := codec.Schema(codec.MsgPack{}, reflect.TypeFor[article]())
	fmt.Println("may be decoded as the other type:", a == b)
	// Output: may be decoded as the other type: false
}
