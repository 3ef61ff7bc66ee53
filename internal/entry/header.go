package entry

import (
	"encoding/binary"
	"errors"
	"time"
)

// HeaderSize is the length of a header in bytes; what follows it is the payload.
const HeaderSize = 70

// Format is the version of the wire format. Bytes of another format are a miss,
// never an error, so two binaries can disagree about it without harm.
const Format = 1

// The layout of a header. Numbers are big-endian; instants are milliseconds of
// the server's Unix clock in six bytes.
const (
	offFormat     = 2
	offState      = 3
	offFlags      = 4
	offFailures   = 5
	offSchema     = 6
	offGeneration = 10
	offLease      = 26
	offLeaseUntil = 42
	offWrittenAt  = 48
	offFreshUntil = 54
	offHardUntil  = 60
	offDelta      = 66
)

// The two magic bytes cannot begin any valid UTF-8 text.
const (
	magic0 = 0xF5
	magic1 = 'P'
)

// State says what an entry holds.
type State uint8

// The states of an entry.
const (
	Value    State = 1 // a value, encoded in the payload
	Negative State = 2 // the loader said "not found"
	Stub     State = 3 // nothing yet: a first load is running
	Failed   State = 4 // the load failed; the payload is a [Failure]
	Bypass   State = 5 // the loader said "do not store"
)

// Flags refine a state.
type Flags uint8

// The flags of an entry.
const (
	Waiters    Flags = 1 << iota // another process waits for the running load
	Marked                       // marked stale: served only while it is reloaded
	LastFailed                   // the last attempt to replace this value failed
	Nil                          // the value is a nil pointer; there is no payload
	Local                        // in-process tiers may hold a copy
	Compressed                   // reserved
)

// Header is the part of an entry that the protocol reads and writes. All
// instants are milliseconds of the server's clock since the Unix epoch.
type Header struct {
	State      State
	Flags      Flags
	Failures   uint8 // consecutive failed loads, at most 255
	Schema     uint32
	Generation Token // the lease under which the content was written
	Lease      Token // the running load; zero when there is none
	LeaseUntil int64 // end of the lease; with no lease, end of the cool-down
	WrittenAt  int64
	FreshUntil int64
	HardUntil  int64
	Delta      time.Duration // how long a load takes, smoothed; µs on the wire, at most 71 minutes
}

// Has reports whether all of f are set.
func (f Flags) Has(g Flags) bool { return f&g == g }

// ErrForeign says that bytes are not an entry of this format: older or newer
// software wrote them, or something else did.
var ErrForeign = errors.New("entry: not an entry of this format")

// Parse splits b into its header and payload, which shares b's memory.
// It returns [ErrForeign] for anything that is not an entry of this [Format].
func Parse(b []byte) (Header, []byte, error) {
	if len(b) < HeaderSize || b[0] != magic0 || b[1] != magic1 || b[offFormat] != Format {
		return Header{}, nil, ErrForeign
	}
	h := Header{
		State:      State(b[offState]),
		Flags:      Flags(b[offFlags]),
		Failures:   b[offFailures],
		Schema:     binary.BigEndian.Uint32(b[offSchema:]),
		Generation: Token(b[offGeneration:offLease]),
		Lease:      Token(b[offLease:offLeaseUntil]),
		LeaseUntil: millis(b[offLeaseUntil:]),
		WrittenAt:  millis(b[offWrittenAt:]),
		FreshUntil: millis(b[offFreshUntil:]),
		HardUntil:  millis(b[offHardUntil:]),
		Delta:      time.Duration(binary.BigEndian.Uint32(b[offDelta:])) * time.Microsecond,
	}
	if h.State < Value || h.State > Bypass {
		return Header{}, nil, ErrForeign
	}
	return h, b[HeaderSize:], nil
}

// AppendTo appends the header's [HeaderSize] bytes to dst.
func (h *Header) AppendTo(dst []byte) []byte {
	dst = append(dst, magic0, magic1, Format, byte(h.State), byte(h.Flags), h.Failures)
	dst = binary.BigEndian.AppendUint32(dst, h.Schema)
	dst = append(dst, h.Generation[:]...)
	dst = append(dst, h.Lease[:]...)
	dst = appendMillis(dst, h.LeaseUntil)
	dst = appendMillis(dst, h.WrittenAt)
	dst = appendMillis(dst, h.FreshUntil)
	dst = appendMillis(dst, h.HardUntil)
	us := min(max(h.Delta.Microseconds(), 0), 1<<32-1)
	return binary.BigEndian.AppendUint32(dst, uint32(us))
}

func millis(b []byte) int64 {
	return int64(binary.BigEndian.Uint16(b))<<32 | int64(binary.BigEndian.Uint32(b[2:]))
}

func appendMillis(dst []byte, ms int64) []byte {
	ms = min(max(ms, 0), 1<<48-1)
	dst = binary.BigEndian.AppendUint16(dst, uint16(ms>>32))
	return binary.BigEndian.AppendUint32(dst, uint32(ms))
}
