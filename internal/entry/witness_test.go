package entry_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/wake"
)

// ear hears what is published on a channel.
type ear struct {
	p   *place
	sub *redis.PubSub
}

// listen subscribes to the channel of the place.
func (p *place) listen() *ear {
	p.Helper()
	sub := p.backend.client.Subscribe(p.Context(), p.channel)
	p.Cleanup(func() { sub.Close() })
	_, err := sub.ReceiveTimeout(p.Context(), 5*time.Second)
	p.must(err)
	return &ear{p, sub}
}

// heard returns the messages since the last call. A marker published at the
// node that holds the key comes after all that its scripts published.
func (e *ear) heard() []wake.Message {
	e.p.Helper()
	marker := "marker " + fmt.Sprint(serial.Add(1))
	const publish = `return redis.call('PUBLISH', ARGV[1], ARGV[2])`
	e.p.must(e.p.backend.client.Eval(e.p.Context(), publish, []string{e.p.key}, e.p.channel, marker).Err())
	var all []wake.Message
	for {
		got, err := e.sub.ReceiveTimeout(e.p.Context(), 5*time.Second)
		e.p.must(err)
		m := got.(*redis.Message)
		if m.Payload == marker {
			return all
		}
		parsed, err := wake.ParseMessage(m.Payload)
		e.p.must(err)
		all = append(all, parsed)
	}
}

// wantHeard checks the messages since the last call: kinds in order, each about
// this key and naming tok.
func (e *ear) wantHeard(kinds string, tok entry.Token) {
	e.p.Helper()
	var got strings.Builder
	for _, m := range e.heard() {
		got.WriteString(string(rune(m.Kind)))
		if m.Topic != e.p.key || m.Token != tok {
			e.p.Errorf("message %c names %q and %x, want %q and %v", m.Kind, m.Topic, m.Token, e.p.key, tok)
		}
	}
	if got.String() != kinds {
		e.p.Errorf("heard %q, want %q", got.String(), kinds)
	}
}

// hook lets a test stand between a store and its client.
type hook struct {
	process func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error
}

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return h.process(ctx, cmd, next) }
}

// hooked returns a place whose store's commands pass through process.
func hooked(t *testing.T, b *backend, process func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error) *place {
	t.Helper()
	// With this option the store runs the client's hooks.
	c := b.dial(t, func(o *redis.UniversalOptions) { o.ContextTimeoutEnabled = true })
	c.AddHook(hook{process})
	return at(t, b, c)
}

// tap is a connection whose traffic a test sees.
type tap struct {
	net.Conn
	wrote func([]byte)
	read  func(net.Conn, []byte) (int, error)
}

func (c *tap) Write(b []byte) (int, error) {
	c.wrote(b)
	return c.Conn.Write(b)
}

func (c *tap) Read(b []byte) (int, error) { return c.read(c.Conn, b) }
