package proxy

import "time"

// Fault says what happens to one command. The zero Fault is [Pass].
type Fault struct {
	kind  faultKind
	after time.Duration
}

type faultKind int

const (
	pass faultKind = iota
	delay
	dropReply
	late
	duplicate
)

// Pass forwards the command.
func Pass() Fault { return Fault{} }

// Delay holds the command for d before it is forwarded, and with it all that
// follow on its connection.
func Delay(d time.Duration) Fault { return Fault{delay, d} }

// DropReply forwards the command and lets the server run it, but nothing the
// server sends from now on reaches the client: its connection is closed when
// the reply arrives, or after 50 ms.
func DropReply() Fault { return Fault{dropReply, 0} }

// Late closes the client's connection at once and delivers the command to the
// server after d on a connection of its own, where the reply is discarded: the
// network delivered it after the client gave up. AUTH, HELLO and SELECT are
// repeated on that connection; a transaction is not.
func Late(d time.Duration) Fault { return Fault{late, d} }

// Duplicate forwards the command and delivers a copy after d, as [Late] does:
// the network delivered it twice.
func Duplicate(d time.Duration) Fault { return Fault{duplicate, d} }
