package proxy

import (
	"io"
	"net"
	"time"
)

// sideBound is how long the server may take to answer on a side connection.
const sideBound = 10 * time.Second

// deliverLater sends b to the server after d on a connection of its own.
func (p *Proxy) deliverLater(d time.Duration, b []byte) {
	p.work.Go(func() {
		if p.pause(d) && p.sendAside(b) == nil {
			p.delivered.Add(1)
		}
	})
}

// sendAside returns when the server has run b.
func (p *Proxy) sendAside(b []byte) error {
	conn, err := net.DialTimeout("tcp", p.target, dialTimeout)
	if err != nil {
		return err
	}
	defer conn.Close()
	ended := make(chan struct{})
	defer close(ended)
	p.work.Go(func() {
		select {
		case <-p.closed:
			_ = conn.Close()
		case <-ended:
		}
	})
	return exchange(conn.(*net.TCPConn), b)
}

// exchange sends b and its end. The server answers b and then closes.
func exchange(conn *net.TCPConn, b []byte) error {
	if err := conn.SetDeadline(time.Now().Add(sideBound)); err != nil {
		return err
	}
	if _, err := conn.Write(b); err != nil {
		return err
	}
	if err := conn.CloseWrite(); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, conn)
	return err
}
