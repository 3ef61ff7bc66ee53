package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// relay takes the signals that prime gets. Before the command is started they end the waiting for the lock, afterwards they are passed on to it.
type relay struct {
	signals chan os.Signal
	wg      sync.WaitGroup

	mu     sync.Mutex // guards what follows
	send   func(os.Signal)
	early  os.Signal // what ended the waiting
	cancel context.CancelFunc
}

// newRelay begins to listen; cancel ends the waiting. What is ignored, as HUP under nohup, stays so, for the command too.
func newRelay(cancel context.CancelFunc) *relay {
	r := &relay{signals: make(chan os.Signal, 16), cancel: cancel}
	for _, sig := range relayed {
		if !signal.Ignored(sig) {
			signal.Notify(r.signals, sig)
		}
	}
	r.wg.Go(func() {
		for sig := range r.signals {
			r.take(sig)
		}
	})
	return r
}

// close ends the listening.
func (r *relay) close() {
	signal.Stop(r.signals)
	close(r.signals)
	r.wg.Wait()
}

func (r *relay) take(sig os.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.send != nil:
		r.send(sig)
	case endsWaiting(sig):
		r.early = sig
		r.cancel()
	}
}

// attach starts the command, unless a signal came before. No signal is lost between the two.
func (r *relay) attach(start func() (send func(os.Signal), err error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.early != nil {
		return context.Canceled
	}
	var err error
	r.send, err = start()
	return err
}

// detach drops the signals that come after the command has ended.
func (r *relay) detach() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.send = func(os.Signal) {}
}

// interrupted returns the number of the signal that came before the command was started, 0 if none did.
func (r *relay) interrupted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	sig, _ := r.early.(syscall.Signal)
	return int(sig)
}
