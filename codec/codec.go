// Package codec turns values into the bytes that are kept in Redis, and back.
//
// # Choosing
//
// [MsgPack] is the default: compact, quick, and it keeps the difference between an
// empty and a nil slice. [JSON] is for entries that people or programs in other
// languages read. [Raw] stores []byte and string as they are. [Compress] wraps any
// of them and packs payloads above a size.
//
// A program may bring its own [Codec]; it needs three methods and no registration.
//
// # What a reader of foreign bytes is told
//
// A codec cannot see by itself that bytes were written for another type: MessagePack
// and JSON skip unknown fields, so the bytes of struct{Name} decode into
// struct{Title} as a zero value with no error. [Schema] is the answer. It is a hash
// over the codec's name and the shape of the Go type, is stored beside the payload,
// and is compared before [Codec.Unmarshal] is called.
//
// # Errors
//
// The codecs of this package return [*EncodeError] and [*DecodeError]. A panic in a
// method they call, such as a MarshalJSON that dereferences nil, becomes such an error.
package codec

// Codec encodes and decodes the values of one cache. Implementations are safe for
// concurrent use.
type Codec interface {
	// Name identifies the encoding. It is a part of every stored entry's schema hash,
	// so entries written under another name are a miss.
	Name() string

	// MarshalAppend appends the encoding of v to dst and returns the extended slice.
	// It does not keep v, nor dst. On error the returned slice is dst as it was given,
	// and the spare capacity of dst may have been written to.
	MarshalAppend(dst []byte, v any) ([]byte, error)

	// Unmarshal decodes all of b into v, which is a non-nil pointer to a fresh value.
	// Bytes left over are an error. It must neither change b nor keep it after
	// returning: several goroutines may decode the same bytes at the same time.
	// Where they are nobody else's, a codec that has one is called by a method
	// UnmarshalOwned in its place, which may let v keep them: see [Raw].
	Unmarshal(b []byte, v any) error
}
