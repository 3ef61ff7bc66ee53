package codec

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
)

// The byte before every payload of a compressing codec.
const (
	stored     = 0 // the inner codec's bytes follow
	compressed = 1 // one s2 block follows
)

// maxDecompressed is the largest payload that is compressed or decompressed, in bytes.
// A block of a dozen bytes can expand to any length it states.
const maxDecompressed = 64 << 20

// Compress returns a codec that encodes with inner and compresses what is at least
// threshold bytes long, if that makes it shorter. A threshold of zero or less tries
// every payload; a nil inner is [MsgPack]. One leading byte tells a compressed payload
// from a stored one, so the threshold may change while old entries live.
//
// The compression is s2 (github.com/klauspost/compress/s2). A cache decompresses on
// every hit, so the speed of decoding counts more than the further bytes that zstd
// would save. An s2 block also states its decoded length in front, so that
// more than 64 MiB is refused before anything is allocated; larger payloads are stored
// as they are.
func Compress(inner Codec, threshold int) Codec {
	if inner == nil {
		inner = MsgPack{}
	}
	return &compressor{inner: inner, threshold: threshold, name: inner.Name() + "+s2"}
}

type compressor struct {
	inner     Codec
	threshold int
	name      string
}

var scratchBuffers = sync.Pool{New: func() any { return new([]byte) }}

// Name returns the inner codec's name followed by "+s2".
func (c *compressor) Name() string { return c.name }

// MarshalAppend appends one leading byte and the payload to dst. Errors are inner's.
func (c *compressor) MarshalAppend(dst []byte, v any) ([]byte, error) {
	out, err := c.inner.MarshalAppend(append(dst, stored), v)
	if err != nil {
		return dst, err
	}
	start := len(dst) + 1
	if n := len(out) - start; n >= c.threshold && n <= maxDecompressed {
		out = compressTail(out, start)
	}
	return out, nil
}

// compressTail replaces b[start:] by its s2 block and marks it so in the byte before,
// unless the block is no shorter.
func compressTail(b []byte, start int) []byte {
	scratch := scratchBuffers.Get().(*[]byte)
	defer release(scratch)
	need := s2.MaxEncodedLen(len(b) - start)
	*scratch = slices.Grow((*scratch)[:0], need)[:need]
	block := s2.Encode(*scratch, b[start:])
	if len(block) >= len(b)-start {
		return b
	}
	b[start-1] = compressed
	return append(b[:start], block...)
}

// Unmarshal decodes b into v. A payload that is neither stored nor an s2 block of
// bounded length is a [*DecodeError]; other errors are inner's.
func (c *compressor) Unmarshal(b []byte, v any) error {
	switch {
	case len(b) == 0:
		return decodeError(c.name, v, errors.New("no bytes"))
	case b[0] == stored:
		return c.inner.Unmarshal(b[1:], v)
	case b[0] == compressed:
		return c.unmarshalBlock(b[1:], v)
	}
	return decodeError(c.name, v, fmt.Errorf("unknown compression %d", b[0]))
}

func (c *compressor) unmarshalBlock(block []byte, v any) error {
	n, err := s2.DecodedLen(block)
	if err != nil {
		return decodeError(c.name, v, err)
	}
	if n > maxDecompressed {
		return decodeError(c.name, v, fmt.Errorf("%d bytes decompressed, at most %d allowed", n, maxDecompressed))
	}
	scratch := scratchBuffers.Get().(*[]byte)
	defer release(scratch)
	*scratch = slices.Grow((*scratch)[:0], n)[:n]
	plain, err := s2.Decode(*scratch, block)
	if err != nil {
		return decodeError(c.name, v, err)
	}
	return c.inner.Unmarshal(plain, v)
}

// release hands scratch to the next call, unless a rare large payload grew it.
func release(scratch *[]byte) {
	if cap(*scratch) <= maxPooled {
		scratchBuffers.Put(scratch)
	}
}

// marshalsItself asks the inner codec: compression does not look at types.
func (c *compressor) marshalsItself(t reflect.Type) bool {
	return marshalsItself(c.inner, t)
}
