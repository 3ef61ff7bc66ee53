// Package proxy puts a faulty network between clients and one Redis server.
//
// A [Proxy] listens on a loopback port and forwards connections. While it
// runs, the network can be made slow ([Proxy.SetDelay]), gone ([Proxy.Cut]) or
// silent ([Proxy.BlackHole]), and mended ([Proxy.Heal]). A hook
// ([Proxy.OnCommand]) sees each command before the server does and names its
// [Fault]: lose the reply, deliver the command after the client gave up, or twice, or late.
//
// Pipelines and subscriptions work through it. It speaks plain RESP, no TLS.
//
// toxiproxy, the usual library, works on bytes: it can neither choose by
// command nor deliver one on another connection.
package proxy

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// dialTimeout bounds connecting to the server.
	dialTimeout = 2 * time.Second
	// healBound is how long Heal tries to get the port back.
	healBound = 5 * time.Second
	// retryPause lies between attempts to accept or to listen.
	retryPause = 5 * time.Millisecond
)

// Proxy forwards connections to one server. Its methods may be called from
// any goroutine.
type Proxy struct {
	target string
	addr   string
	closed chan struct{}
	work   sync.WaitGroup

	delivered atomic.Int64
	losing    atomic.Bool

	mu        sync.Mutex   // guards the rest
	listener  net.Listener // nil while cut
	shut      bool
	links     map[*link]struct{}
	hook      func(cmd [][]byte) Fault
	toServer  time.Duration
	toClient  time.Duration
	blackHole bool
}

// New starts a proxy to the server at target, a host:port, on a free loopback
// port. The server need not run yet; a connection made while it does not is closed
// at once. New fails if no port can be bound. The caller closes the proxy.
func New(target string) (*Proxy, error) {
	p := &Proxy{target: target, closed: make(chan struct{}), links: map[*link]struct{}{}}
	if err := p.listen("127.0.0.1:0"); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Proxy) listen(addr string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut || p.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	p.listener, p.addr = l, l.Addr().String()
	p.work.Go(func() { p.accept(l) })
	return nil
}

// Addr returns the address that clients connect to, as host:port. It never
// changes.
func (p *Proxy) Addr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addr
}

// SetDelay makes every command take toServer longer to reach the server, and
// every reply toClient longer to reach the client. Order is kept and nothing
// waits for what was sent before it, as on a long line. It holds for what is
// read from now on.
func (p *Proxy) SetDelay(toServer, toClient time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.toServer, p.toClient = toServer, toClient
}

// OnCommand has hook choose the fault of every command read from now on; nil
// ends that. The hook is called from many goroutines at once and must return
// soon. cmd holds the command's name and arguments; it must not be changed,
// nor kept after the hook has returned.
func (p *Proxy) OnCommand(hook func(cmd [][]byte) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook = hook
}

// Cut closes all connections, with what is under way on them, and refuses new
// ones until [Proxy.Heal]. What [Late] and [Duplicate] are yet to deliver still
// arrives.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopListening()
	p.abort(func(*link) bool { return true })
}

// LoseMessages loses, while it is set, all that reaches subscribers in one
// packet with a published message; the rest passes.
func (p *Proxy) LoseMessages(lose bool) { p.losing.Store(lose) }

// BlackHole makes the network silent until [Proxy.Heal]: connections stay and
// can be made, and what is sent over them disappears.
func (p *Proxy) BlackHole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blackHole = true
}

// Heal ends [Proxy.Cut] and [Proxy.BlackHole]. Connections that lost bytes
// meanwhile are closed. It leaves delays and the hook as they are. It fails if
// another process has taken the port and keeps it.
func (p *Proxy) Heal() error {
	p.mu.Lock()
	p.blackHole = false
	p.abort(func(l *link) bool { return l.lost })
	addr := p.addr
	p.mu.Unlock()

	deadline := time.Now().Add(healBound)
	for {
		err := p.listen(addr)
		if err == nil || time.Now().After(deadline) || !p.pause(retryPause) {
			return err
		}
	}
}

// Delivered returns how many commands the server has run and answered on a
// side connection, for [Late] and [Duplicate].
func (p *Proxy) Delivered() int64 { return p.delivered.Load() }

// Close ends all connections, cancels deliveries that are still to come, and
// waits for the proxy's goroutines. Closing it again does nothing.
func (p *Proxy) Close() {
	p.mu.Lock()
	if !p.shut {
		p.shut = true
		close(p.closed)
	}
	p.stopListening()
	p.abort(func(*link) bool { return true })
	p.mu.Unlock()
	p.work.Wait()
}

// stopListening is called with mu held.
func (p *Proxy) stopListening() {
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
}

// abort ends the links that doomed picks. It is called with mu held.
func (p *Proxy) abort(doomed func(*link) bool) {
	for l := range p.links {
		if doomed(l) {
			l.abort()
		}
	}
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			p.work.Go(func() { p.connect(conn.(*net.TCPConn)) })
		case errors.Is(err, net.ErrClosed), !p.pause(retryPause):
			return
		}
	}
}

// connect serves one client to its end.
func (p *Proxy) connect(client *net.TCPConn) {
	defer client.Close()
	server, err := net.DialTimeout("tcp", p.target, dialTimeout)
	if err != nil {
		return
	}
	defer server.Close()
	l := newLink(p, client, server.(*net.TCPConn))
	if !p.add(l) {
		return
	}
	defer p.remove(l)
	l.run()
}

// add reports false if the network was cut since the connection was accepted.
func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		return false
	}
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// swallow reports whether bytes read on l disappear, and notes that they did.
func (p *Proxy) swallow(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.blackHole {
		l.lost = true
	}
	return p.blackHole
}

// fault asks the hook. A command without a name is not shown to it.
func (p *Proxy) fault(cmd [][]byte) Fault {
	p.mu.Lock()
	hook := p.hook
	p.mu.Unlock()
	if hook == nil || len(cmd) == 0 {
		return Pass()
	}
	return hook(cmd)
}

func (p *Proxy) delays() (toServer, toClient time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.toServer, p.toClient
}

// pause waits for d. It reports false at once when the proxy is closed.
func (p *Proxy) pause(d time.Duration) bool { return waitFor(d, p.closed) }

// waitFor waits for d, and reports false if stop was closed before.
func waitFor(d time.Duration, stop <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	}
}
