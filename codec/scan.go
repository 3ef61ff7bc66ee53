package codec

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// maxDepth is how many arrays and maps may be nested in one MessagePack value; the
// decoder of encoding/json has the same limit.
const maxDepth = 10_000

// errTooDeep and errTruncated are what a scan finds.
var (
	errTooDeep   = fmt.Errorf("nested deeper than %d", maxDepth)
	errTruncated = errors.New("fewer bytes than announced")
)

// checkWhole reports MessagePack bytes that would make the decoder end the process
// rather than return an error: nested so deep that its recursion outgrows the stack,
// or announcing more than there is, since it allocates what is announced (five bytes
// ask for a map of 2³² entries). What else is wrong with b is left to the decoder.
func checkWhole(b []byte) error {
	complete, err := walk(b)
	if err == nil && !complete {
		return errTruncated
	}
	return err
}

// checkDepth looks at the first bytes of a value that is still being written.
func checkDepth(b []byte) error {
	_, err := walk(b)
	return err
}

// walk reports whether b ends where a value does, or that it is nested too deep.
func walk(b []byte) (complete bool, err error) {
	var shallow [32]uint64 // so that few values need an allocation
	open := shallow[:0]    // values still to come, per open container
	for len(b) > 0 {
		size, children := header(b)
		if size > uint64(len(b)) {
			return false, nil
		}
		b = b[size:]
		open = count(open, children)
		if len(open) > maxDepth {
			return false, errTooDeep
		}
	}
	return len(open) == 0, nil
}

// count takes one value from the innermost container, opens it if it has children,
// and closes the containers that are complete.
func count(open []uint64, children uint64) []uint64 {
	n := len(open)
	if n > 0 {
		open[n-1]--
	}
	if children > 0 {
		return append(open, children)
	}
	for ; n > 0 && open[n-1] == 0; n-- {
		open = open[:n-1]
	}
	return open
}

// header returns the size in bytes of the value at the start of b, without its
// children, and the number of the children.
func header(b []byte) (size, children uint64) {
	c := b[0]
	switch {
	case msgpcode.IsFixedMap(c):
		return 1, 2 * uint64(c&msgpcode.FixedMapMask)
	case msgpcode.IsFixedArray(c):
		return 1, uint64(c & msgpcode.FixedArrayMask)
	case msgpcode.IsFixedString(c):
		return 1 + uint64(c&msgpcode.FixedStrMask), 0
	case c == msgpcode.Map16 || c == msgpcode.Map32:
		w := 2 << (c - msgpcode.Map16)
		return uint64(1 + w), 2 * number(b, w)
	case c == msgpcode.Array16 || c == msgpcode.Array32:
		w := 2 << (c - msgpcode.Array16)
		return uint64(1 + w), number(b, w)
	}
	return scalarSize(b), 0
}

// scalarSize returns the size in bytes of the value at the start of b, which is
// neither an array nor a map.
func scalarSize(b []byte) uint64 {
	switch c := b[0]; c {
	case msgpcode.Uint8, msgpcode.Int8:
		return 2
	case msgpcode.Uint16, msgpcode.Int16:
		return 3
	case msgpcode.Uint32, msgpcode.Int32, msgpcode.Float:
		return 5
	case msgpcode.Uint64, msgpcode.Int64, msgpcode.Double:
		return 9
	case msgpcode.Bin8, msgpcode.Bin16, msgpcode.Bin32:
		return sized(b, 1<<(c-msgpcode.Bin8))
	case msgpcode.Str8, msgpcode.Str16, msgpcode.Str32:
		return sized(b, 1<<(c-msgpcode.Str8))
	case msgpcode.Ext8, msgpcode.Ext16, msgpcode.Ext32:
		return sized(b, 1<<(c-msgpcode.Ext8)) + 1
	case msgpcode.FixExt1, msgpcode.FixExt2, msgpcode.FixExt4, msgpcode.FixExt8, msgpcode.FixExt16:
		return 2 + 1<<(c-msgpcode.FixExt1)
	}
	return 1
}

// sized is the size of a value whose length stands in the w bytes after its code.
func sized(b []byte, w int) uint64 { return 1 + uint64(w) + number(b, w) }

// number reads the w big-endian bytes after the code; bytes beyond the end are zero.
func number(b []byte, w int) uint64 {
	var buf [8]byte
	copy(buf[8-w:], b[1:min(1+w, len(b))])
	return binary.BigEndian.Uint64(buf[:])
}
