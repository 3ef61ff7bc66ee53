package wake

// Watch is one waiter's interest in a topic. See [Bus.Watch].
type Watch struct {
	bus   *Bus
	topic string
	c     chan struct{}

	// The rest is guarded by bus.mu.
	prev, next *Watch // the topic's other watches
	linked     bool
	failure    Message
	failed     bool
}

// C returns the channel that receives when a message named the topic or the
// subscription was (re)established, which may have been preceded by messages nobody
// heard. Signals that are not received are merged into one. The channel is never
// closed.
func (w *Watch) C() <-chan struct{} { return w.c }

// Failure returns the latest message since the watch began that announced the
// failure of a load ([Failed] or [Panicked]), and whether there was one. Its Token
// tells whether it is the load that was awaited.
func (w *Watch) Failure() (Message, bool) {
	w.bus.mu.Lock()
	defer w.bus.mu.Unlock()
	return w.failure, w.failed
}

// Stop ends the watch. It may be called more than once.
func (w *Watch) Stop() {
	w.bus.mu.Lock()
	defer w.bus.mu.Unlock()
	w.bus.unlinkLocked(w)
}

func (w *Watch) wake() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}

// linkLocked puts w at the head of its topic's list.
func (b *Bus) linkLocked(w *Watch) {
	if head := b.watches[w.topic]; head != nil {
		w.next, head.prev = head, w
	}
	b.watches[w.topic] = w
	w.linked = true
	b.count++
	b.touched = true
}

// unlinkLocked takes w out of its topic's list, if it is there, and returns the watch
// that followed it.
func (b *Bus) unlinkLocked(w *Watch) *Watch {
	if !w.linked {
		return nil
	}
	next := w.next
	if next != nil {
		next.prev = w.prev
	}
	switch {
	case w.prev != nil:
		w.prev.next = next
	case next != nil:
		b.watches[w.topic] = next
	default:
		delete(b.watches, w.topic)
	}
	w.prev, w.next, w.linked = nil, nil, false
	b.count--
	return next
}
