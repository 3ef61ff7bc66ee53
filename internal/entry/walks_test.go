package entry_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/wake"
)

// milliseconds returns durations.
func milliseconds(ms ...int) []time.Duration {
	all := make([]time.Duration, len(ms))
	for i, n := range ms {
		all[i] = time.Duration(n) * time.Millisecond
	}
	return all
}

// TestModel compares the protocol on an embedded Redis with the model, to the
// millisecond: time passes as the test wants.
func TestModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { walkEmbedded(t, 0, walks) })
}

// walks is how many random sequences [TestModel] makes.
const walks = 60

// FuzzModel goes on where TestModel ends.
func FuzzModel(f *testing.F) {
	f.Add(uint64(walks))
	f.Fuzz(func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) { walkEmbedded(t, seed, 1) })
	})
}

// walkEmbedded makes n sequences on a Redis of their own. It must be called
// within a bubble.
func walkEmbedded(t *testing.T, seed, n uint64) {
	m := miniredis.NewMiniRedis()
	defer m.Close()
	client := inMemory(m)
	defer client.Close()
	sub := m.NewSubscriber()
	defer sub.Close()
	sub.Subscribe("channel")
	heard := collect(sub)
	for i := range n {
		w := newWalk(t, client, seed+i)
		w.times, w.steps = milliseconds(1, 2, 10, 50, 200, 1000, 61_000), milliseconds(0, 1, 2, 9, 10, 11, 50, 190, 1000, 20_000)
		w.now = func() int64 { return time.Now().UnixMilli() }
		w.pass = func(d time.Duration) {
			time.Sleep(d)
			m.FastForward(d)
			w.model.pass(d)
		}
		w.stored = func() ([]byte, time.Duration) {
			b, err := m.Get(w.key)
			if err != nil {
				return nil, 0
			}
			return []byte(b), m.TTL(w.key)
		}
		w.heard = heard
		w.run(40)
	}
}

// inMemory returns a client whose connections lead to m without a network, which
// a bubble's clock would not wait for.
func inMemory(m *miniredis.Miniredis) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:6379", MaxRetries: -1,
		Dialer: func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
	})
}

// collect returns a function that returns what was published since its last call.
func collect(sub *miniredis.Subscriber) func() []wake.Message {
	var mu sync.Mutex
	var all []wake.Message
	go func() {
		for got := range sub.Messages() {
			m, err := wake.ParseMessage(got.Message)
			if err != nil {
				m.Text = err.Error()
			}
			mu.Lock()
			all = append(all, m)
			mu.Unlock()
		}
	}()
	return func() []wake.Message {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		got := all
		all = nil
		return got
	}
}

func newWalk(t *testing.T, client redis.UniversalClient, seed uint64) *walk {
	w := &walk{
		T: t, ctx: t.Context(), seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), raw: client, key: fmt.Sprintf("key %d", seed),
		store: entry.NewStore(client, "channel", 5*time.Second),
	}
	w.mint()
	return w
}

// mint makes the store's tokens known to the walk.
func (w *walk) mint() {
	w.store.Mint = func() entry.Token {
		w.minted = entry.NewToken()
		return w.minted
	}
}

// testModel compares the protocol with the model where time cannot be set: the
// entry is made older instead.
func testModel(t *testing.T, b *backend) {
	for seed := range uint64(10) {
		p := at(t, b, nil)
		w := newWalk(t, b.client, seed)
		w.key, w.store = p.key, p.store
		w.mint()
		// No sum of steps comes within 5 s of a time.
		w.times, w.steps, w.slack = milliseconds(5_000, 15_000, 35_000, 65_000), milliseconds(0, 10_000, 20_000, 50_000), 4*time.Second
		w.now, w.heard = p.now, p.listen().heard
		w.stored = func() ([]byte, time.Duration) {
			if p.pttl() == -2 {
				return nil, 0
			}
			raw, err := b.client.Get(t.Context(), p.key).Bytes()
			p.must(err)
			return raw, p.pttl()
		}
		w.pass = func(d time.Duration) {
			w.older(d)
			w.model.older(d)
		}
		w.run(40)
	}
}

// older makes the key as it will be after d.
func (w *walk) older(d time.Duration) {
	b, ttl := w.stored()
	if b == nil {
		return
	}
	if ttl -= d; ttl <= 0 {
		w.check(w.raw.Del(w.ctx, w.key).Err())
		return
	}
	if h, payload, err := entry.Parse(b); err == nil {
		b = append(before(h, d).AppendTo(nil), payload...)
	}
	w.check(w.raw.Set(w.ctx, w.key, b, ttl).Err())
}

// older makes what the model holds as it will be after d.
func (m *model) older(d time.Duration) {
	if m.content == absent {
		return
	}
	m.Header = *before(m.Header, d)
	m.expires -= d.Milliseconds()
	m.pass(0)
}

// before returns h with its instants moved back by d.
func before(h entry.Header, d time.Duration) *entry.Header {
	for _, at := range []*int64{&h.LeaseUntil, &h.WrittenAt, &h.FreshUntil, &h.HardUntil} {
		if *at != 0 {
			*at -= d.Milliseconds()
		}
	}
	return &h
}
