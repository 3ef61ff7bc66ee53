package wake

import (
	"encoding/binary"
	"errors"
)

// Kind is what happened to the key a message names: one upper-case ASCII letter.
// A letter unknown here is passed on as it is: a newer version may have more to
// say, and waking for it costs one poll.
type Kind byte

// The kinds of message.
const (
	// Stored: a value, or a "not found", was written.
	Stored Kind = 'S'
	// Failed: the load returned an error; Text is the error's.
	Failed Kind = 'F'
	// Panicked: the load panicked; Text is the panic's.
	Panicked Kind = 'P'
	// Released: the lease was given back without an answer.
	Released Kind = 'R'
	// Invalidated: the entry was deleted, and any running load is void.
	Invalidated Kind = 'I'
	// MarkedStale: the value was marked stale, and any running load is void.
	MarkedStale Kind = 'M'
)

// Message is what is published on a namespace's one channel.
//
// On the wire it is the kind (1 byte), the token (16 bytes), the length of the topic
// (4 bytes, big-endian), the topic, and the text up to the end.
type Message struct {
	Kind  Kind
	Token [16]byte // lease token the message is about; zero when there was none
	Topic string   // full Redis key, any bytes
	Text  string   // error text of Failed and Panicked, else empty
}

const (
	tokenStart  = 1
	lengthStart = tokenStart + 16
	topicStart  = lengthStart + 4
)

var (
	errShort = errors.New("wake: message is cut short")
	errKind  = errors.New("wake: message kind is not an upper-case letter")
)

// ParseMessage decodes a published payload. It returns an error when the payload is
// cut short or does not begin with an upper-case letter. Topic and Text share the
// payload's memory; nothing is allocated.
func ParseMessage(payload string) (Message, error) {
	if len(payload) < topicStart {
		return Message{}, errShort
	}
	if payload[0] < 'A' || payload[0] > 'Z' {
		return Message{}, errKind
	}
	m := Message{Kind: Kind(payload[0])}
	copy(m.Token[:], payload[tokenStart:])
	rest := payload[topicStart:]
	n := topicLength(payload)
	if uint64(n) > uint64(len(rest)) {
		return Message{}, errShort
	}
	m.Topic, m.Text = rest[:n], rest[n:]
	return m, nil
}

func topicLength(payload string) uint32 {
	var size [4]byte
	copy(size[:], payload[lengthStart:])
	return binary.BigEndian.Uint32(size[:])
}

// AppendTo appends the wire form to dst and returns it.
func (m Message) AppendTo(dst []byte) []byte {
	dst = append(dst, byte(m.Kind))
	dst = append(dst, m.Token[:]...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(m.Topic)))
	dst = append(dst, m.Topic...)
	return append(dst, m.Text...)
}

// failure reports whether the message announces the failure of a load.
func (m Message) failure() bool { return m.Kind == Failed || m.Kind == Panicked }
