package proxy

import (
	"net"
	"time"
)

// queueLength is how many parcels may be under way in one direction.
const queueLength = 1024

// parcel is a piece of a byte stream with the time it is due.
type parcel struct {
	bytes []byte
	due   time.Time
}

// queue is one direction of a link: what is put in comes out in order, each
// parcel no earlier than its time.
type queue struct {
	to      *net.TCPConn
	parcels chan parcel
	aborted <-chan struct{}
}

func newQueue(to *net.TCPConn, aborted <-chan struct{}) *queue {
	return &queue{to: to, parcels: make(chan parcel, queueLength), aborted: aborted}
}

// put has b delivered after d. It reports false when the link was aborted.
func (q *queue) put(b []byte, d time.Duration) bool {
	select {
	case q.parcels <- parcel{b, time.Now().Add(d)}:
		return true
	case <-q.aborted:
		return false
	}
}

// end says that nothing more will be put.
func (q *queue) end() { close(q.parcels) }

// deliver writes the parcels until the end. If the receiver is gone, the rest
// is lost.
func (q *queue) deliver() {
	var lost error
	for p := range q.parcels {
		if left := time.Until(p.due); left > 0 && !waitFor(left, q.aborted) {
			return
		}
		if lost == nil {
			_, lost = q.to.Write(p.bytes)
		}
	}
}
