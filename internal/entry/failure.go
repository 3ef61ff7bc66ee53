package entry

import (
	"time"
	"unicode/utf8"
)

// Failure is why a load failed, as other processes learn it.
type Failure struct {
	Message string // at most [MaxMessage] bytes of it travel
	Panic   bool
}

// MaxMessage is how many bytes of a failure's message travel.
const MaxMessage = 512

// failureLinger is how much longer than its cool-down a failure stays, for
// waiters that look late and for the count of consecutive failures.
const failureLinger = 10 * time.Second

// The first byte of an encoded failure, and of the wake-up message about it.
const (
	kindFailed = 'F'
	kindPanic  = 'P'
)

func (f Failure) encode() []byte {
	kind := byte(kindFailed)
	if f.Panic {
		kind = kindPanic
	}
	return append([]byte{kind}, clip(f.Message, MaxMessage)...)
}

// Failure reads why the load failed from an entry in state Failed. For an entry
// that does not say it returns a zero Failure.
func (e *Entry) Failure() Failure {
	if e.State != Failed || len(e.Payload) == 0 {
		return Failure{}
	}
	return Failure{Message: string(e.Payload[1:]), Panic: e.Payload[0] == kindPanic}
}

// clip returns the longest prefix of s of at most n bytes that splits no rune.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end := n
	for end > 0 && n-end < utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	if !utf8.RuneStart(s[end]) { // not UTF-8
		end = n
	}
	return s[:end]
}
