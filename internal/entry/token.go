package entry

import (
	"crypto/rand"
	"encoding/hex"
)

// Token names one grant of a lease: 128 random bits, new for every attempt to
// get one. A token per process would not do: an older load of the same process
// could fill after somebody's DEL.
type Token [16]byte

// NewToken returns a token that nobody else has.
func NewToken() (t Token) {
	rand.Read(t[:])
	return t
}

// IsZero reports whether t names no lease.
func (t Token) IsZero() bool { return t == Token{} }

// String returns the token in hexadecimal.
func (t Token) String() string { return hex.EncodeToString(t[:]) }

// concat returns the bytes of all tokens, one after the other.
func concat(ts []Token) []byte {
	b := make([]byte, 0, len(ts)*len(Token{}))
	for _, t := range ts {
		b = append(b, t[:]...)
	}
	return b
}
