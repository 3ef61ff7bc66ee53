package proxy

import (
	"bytes"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// replyGrace is how long a client whose reply is dropped may wait for its
// connection to be closed.
const replyGrace = 50 * time.Millisecond

// link is one client's connection with its counterpart to the server.
//
// Four goroutines serve it: one reads and one writes in each direction, with
// a queue between them in which bytes wait for their time.
type link struct {
	proxy          *Proxy
	client, server *net.TCPConn
	aborted        chan struct{}
	once           sync.Once

	lost bool // bytes disappeared; guarded by proxy.mu

	left    chan struct{} // closed when no more commands are read
	silent  atomic.Bool   // no more replies to the client
	replied chan struct{} // a reply was dropped; holds one
	setUp   []byte        // commands to repeat on a side connection
}

func newLink(p *Proxy, client, server *net.TCPConn) *link {
	return &link{
		proxy: p, client: client, server: server,
		aborted: make(chan struct{}),
		left:    make(chan struct{}),
		replied: make(chan struct{}, 1),
	}
}

// abort closes both sides at once.
func (l *link) abort() {
	l.once.Do(func() {
		close(l.aborted)
		_ = l.client.Close()
		_ = l.server.Close()
	})
}

// run serves the link until the server has closed its side and everything it
// sent has been passed on. A client that leaves ends the server's input, to
// which the server answers by closing.
func (l *link) run() {
	up, down := newQueue(l.server, l.aborted), newQueue(l.client, l.aborted)
	var wg sync.WaitGroup
	wg.Go(func() { l.readCommands(up) })
	wg.Go(func() { l.writeCommands(up) })
	wg.Go(func() { l.readReplies(down) })
	down.deliver()
	l.abort()
	wg.Wait()
}

func (l *link) readCommands(up *queue) {
	defer up.end()
	defer close(l.left)
	in := newCommandReader(l.client)
	for {
		cmd, err := in.next()
		if err != nil || !l.forward(cmd, up) {
			return
		}
	}
}

// forward lets a command meet its fault. It reports whether the client's next
// command shall be read.
func (l *link) forward(cmd command, up *queue) bool {
	if l.proxy.swallow(l) {
		return true
	}
	toServer, _ := l.proxy.delays()
	fault := l.proxy.fault(cmd.args)
	l.remember(cmd)
	switch fault.kind {
	case delay:
		toServer += fault.after
	case duplicate:
		l.proxy.deliverLater(fault.after, l.onSide(cmd))
	case late:
		l.silent.Store(true)
		l.proxy.deliverLater(fault.after, l.onSide(cmd))
		_ = l.client.Close()
		return false
	case dropReply:
		l.silent.Store(true)
	}
	return up.put(cmd.raw, toServer) && fault.kind != dropReply
}

// remember keeps the commands that decide how later ones are understood.
func (l *link) remember(cmd command) {
	if len(cmd.args) == 0 {
		return
	}
	switch string(bytes.ToUpper(cmd.args[0])) {
	case "AUTH", "HELLO", "SELECT":
		l.setUp = append(l.setUp, cmd.raw...)
	}
}

// onSide returns what to send on a side connection to have cmd run as here.
func (l *link) onSide(cmd command) []byte { return slices.Concat(l.setUp, cmd.raw) }

// writeCommands delivers commands until the client has sent its last one.
func (l *link) writeCommands(up *queue) {
	up.deliver()
	// The server runs what it has been sent before it sees the end.
	_ = l.server.CloseWrite()
	if l.silent.Load() {
		l.awaitDropped()
		_ = l.client.Close()
	}
}

// awaitDropped waits for a reply that the client will not see.
func (l *link) awaitDropped() {
	grace := time.NewTimer(replyGrace)
	defer grace.Stop()
	select {
	case <-l.replied:
	case <-grace.C:
	case <-l.aborted:
	}
}

func (l *link) readReplies(down *queue) {
	defer down.end()
	buf := make([]byte, 32<<10)
	for {
		n, err := l.server.Read(buf)
		if n > 0 && !l.pass(buf[:n], down) {
			return
		}
		if err != nil {
			l.hideEnd()
			return
		}
	}
}

// hideEnd keeps a client in a black hole from seeing that the server closed.
func (l *link) hideEnd() {
	if !l.proxy.swallow(l) {
		return
	}
	select {
	case <-l.left:
	case <-l.aborted:
	}
}

// pass hands bytes to the client, or loses them. It reports false when the
// link has been aborted.
func (l *link) pass(b []byte, down *queue) bool {
	if l.silent.Load() {
		select {
		case l.replied <- struct{}{}:
		default:
		}
		return true
	}
	if l.proxy.swallow(l) || l.proxy.losing.Load() && bytes.Contains(b, []byte("$7\r\nmessage\r\n")) {
		return true
	}
	_, toClient := l.proxy.delays()
	return down.put(bytes.Clone(b), toClient)
}
