package entry_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/wake"
)

// fixture returns the bytes of a file under testdata/wire: hexadecimal, with
// comments from # to the end of the line.
//
// These bytes are what other processes, and other versions of this software,
// read and write. A difference means that old and new processes no longer
// understand each other: raise entry.Format, and keep the old files as an
// example of what is now a miss.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "wire", name))
	if err != nil {
		t.Fatal(err)
	}
	var digits strings.Builder
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b
}

// TestRule14Entries holds entries to the frozen format.
func TestRule14Entries(t *testing.T) {
	tests := []struct {
		file    string
		header  entry.Header
		payload string
		failure entry.Failure
	}{
		{file: "entry-value.hex", payload: "payload", header: entry.Header{
			State: entry.Value, Flags: entry.Waiters | entry.Marked | entry.LastFailed, Failures: 3, Schema: 0x01020304,
			Generation: genG, Lease: tokA, LeaseUntil: 1700000000001, WrittenAt: 1700000000002,
			FreshUntil: 1700000000003, HardUntil: 1700000000004, Delta: 250 * time.Millisecond,
		}},
		{file: "entry-nil.hex", header: entry.Header{
			State: entry.Value, Flags: entry.Nil | entry.Local | entry.Compressed, Schema: 0xfffefdfc, Generation: genG,
			WrittenAt: 1700000000000, FreshUntil: 1700000060000, HardUntil: 1<<48 - 1, Delta: (1<<32 - 1) * time.Microsecond,
		}},
		{file: "entry-negative.hex", header: entry.Header{
			State: entry.Negative, Generation: genG, WrittenAt: 1700000000000, FreshUntil: 1700000010000, HardUntil: 1700000010000,
		}},
		{file: "entry-stub.hex", header: entry.Header{State: entry.Stub, Lease: tokA, LeaseUntil: 1700000002000}},
		{file: "entry-failed.hex", payload: "Fno such table: user", failure: entry.Failure{Message: "no such table: user"}, header: entry.Header{
			State: entry.Failed, Failures: 255, Generation: tokA, LeaseUntil: 1700000000250,
		}},
		{file: "entry-panicked.hex", payload: "Pboom é", failure: entry.Failure{Message: "boom é", Panic: true}, header: entry.Header{
			State: entry.Failed, Failures: 1, Generation: tokA, LeaseUntil: 1700000000250,
		}},
		{file: "entry-bypass.hex", header: entry.Header{State: entry.Bypass}},
	}
	for _, c := range tests {
		t.Run(c.file, func(t *testing.T) {
			b := fixture(t, c.file)
			h, payload, err := entry.Parse(b)
			if err != nil {
				t.Fatal(err)
			}
			if h != c.header || string(payload) != c.payload {
				t.Errorf("decoded %+v, %q\nwant    %+v, %q", h, payload, c.header, c.payload)
			}
			if got := append(c.header.AppendTo(nil), c.payload...); !bytes.Equal(got, b) {
				t.Errorf("encoded %x\nwant    %x", got, b)
			}
			e := entry.Entry{Header: h, Payload: payload}
			if got := e.Failure(); got != c.failure {
				t.Errorf("failure %+v, want %+v", got, c.failure)
			}
			if h.State == entry.Failed && !bytes.Equal(c.failure.Encode(), payload) {
				t.Errorf("failure encoded %x, want %x", c.failure.Encode(), payload)
			}
		})
	}
}

// TestRule14Foreign is about bytes that another format or nobody wrote.
func TestRule14Foreign(t *testing.T) {
	good := fixture(t, "entry-value.hex")
	change := func(i int, c byte) []byte {
		b := bytes.Clone(good)
		b[i] = c
		return b
	}
	tests := map[string][]byte{
		"nothing": nil, "text": []byte("hello"), "one byte short": good[:entry.HeaderSize-1], "first byte": change(0, 'x'), "second byte": change(1, 'x'),
		"format 0": change(2, 0), "format 2": change(2, 2), "state 0": change(3, 0), "state 6": change(3, 6),
	}
	for name, b := range tests {
		t.Run(name, func(t *testing.T) {
			h, payload, err := entry.Parse(b)
			if err != entry.ErrForeign || payload != nil || h != (entry.Header{}) {
				t.Errorf("Parse = %+v, %q, %v; want ErrForeign", h, payload, err)
			}
		})
	}
}

// TestRule14Messages holds the messages that the scripts publish to the frozen
// format, and the reader of messages to what the scripts publish.
func TestRule14Messages(t *testing.T) {
	tests := []messageCase{
		{"message-stored.hex", held.with(waiting), doFill, wake.Message{Kind: 'S', Token: tokA}},
		{"message-failed.hex", held, doFail, wake.Message{Kind: 'F', Token: tokA, Text: "no luck"}},
		{"message-panicked.hex", held, doPanic, wake.Message{Kind: 'P', Token: tokA, Text: "no luck"}},
		{"message-released.hex", held.with(waiting), doRelease, wake.Message{Kind: 'R', Token: tokA}},
		{"message-invalidated.hex", held, doInvalidate, wake.Message{Kind: 'I'}},
		{"message-marked.hex", freshValue, doMark, wake.Message{Kind: 'M', Token: tokA}},
	}
	b := embedded(t)
	for _, c := range tests {
		t.Run(c.file, func(t *testing.T) {
			p := at(t, b, nil)
			p.key, p.channel = "user:{7}\xff", "wire"
			p.store = p.another()
			p.store.Mint = func() entry.Token { return tokA }
			p.seed(c.before)
			sub := b.client.Subscribe(t.Context(), p.channel)
			defer sub.Close()
			_, err := sub.Receive(t.Context())
			p.must(err)
			_, err = c.do(p)
			p.must(err)
			got, err := sub.ReceiveMessage(t.Context())
			p.must(err)
			c.want.Topic = p.key
			c.check(t, got.Payload)
		})
	}
}

// messageCase is a script that publishes, and what.
type messageCase struct {
	file   string
	before spec
	do     func(*place) (int, error)
	want   wake.Message
}

func (c messageCase) check(t *testing.T, got string) {
	t.Helper()
	want := fixture(t, c.file)
	if got != string(want) {
		t.Errorf("published %x\nwant      %x", got, want)
	}
	m, err := wake.ParseMessage(string(want))
	if err != nil || !reflect.DeepEqual(m, c.want) {
		t.Errorf("decoded %+v, %v; want %+v", m, err, c.want)
	}
	if again := c.want.AppendTo(nil); !bytes.Equal(again, want) {
		t.Errorf("encoded %x, want %x", again, want)
	}
}

// TestRule14WrittenByScripts is about entries that scripts put together: each
// is read and written again bit for bit.
func TestRule14WrittenByScripts(t *testing.T) {
	b := embedded(t)
	for _, c := range leaseCases {
		if c.after == nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			p := at(t, b, nil)
			p.seed(c.before)
			_, err := c.do(p)
			p.must(err)
			raw, err := b.client.Get(t.Context(), p.key).Bytes()
			p.must(err)
			h, payload, err := entry.Parse(raw)
			p.must(err)
			if again := append(h.AppendTo(nil), payload...); !bytes.Equal(again, raw) {
				t.Errorf("read and written again: %x\nthe script wrote:       %x", again, raw)
			}
		})
	}
}

// FuzzParse is about any bytes: no panic, and what is an entry is written again
// as it was.
func FuzzParse(f *testing.F) {
	names, err := filepath.Glob(filepath.Join("..", "..", "testdata", "wire", "entry-*.hex"))
	if err != nil || len(names) == 0 {
		f.Fatal("no fixtures: ", err)
	}
	for _, n := range names {
		f.Add(fixture(f, filepath.Base(n)))
	}
	h := entry.Header{State: entry.Failed, Generation: genG, Lease: tokA, LeaseUntil: 7}
	f.Add(append(h.AppendTo(nil), "Ptext"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, payload, err := entry.Parse(b)
		if err != nil {
			return
		}
		if again := append(h.AppendTo(nil), payload...); !bytes.Equal(again, b) {
			t.Errorf("%x is written again as %x", b, again)
		}
		e := entry.Entry{Header: h, Payload: payload}
		if f := e.Failure(); h.State != entry.Failed && f != (entry.Failure{}) {
			t.Errorf("state %v tells of a failure %+v", h.State, f)
		}
	})
}

// FuzzHeader is about any header whose numbers fit: it is read as it was written.
func FuzzHeader(f *testing.F) {
	f.Add(uint8(1), uint8(3), uint8(255), uint32(7), []byte("generation and lease of the entry"), int64(1), int64(1<<48-1), uint32(9))
	f.Fuzz(func(t *testing.T, state, flags, failures uint8, schema uint32, tokens []byte, until, hard int64, delta uint32) {
		h := entry.Header{
			State: entry.State(state%5 + 1), Flags: entry.Flags(flags), Failures: failures, Schema: schema,
			LeaseUntil: until & (1<<48 - 1), HardUntil: hard & (1<<48 - 1), FreshUntil: (until ^ hard) & (1<<48 - 1),
			WrittenAt: (until + hard) & (1<<48 - 1), Delta: time.Duration(delta) * time.Microsecond,
		}
		copy(h.Lease[copy(h.Generation[:], tokens)%16:], tokens)
		b := h.AppendTo(nil)
		got, payload, err := entry.Parse(append(b, tokens...))
		if err != nil || got != h || !bytes.Equal(payload, tokens) || len(b) != entry.HeaderSize {
			t.Errorf("%+v is read as %+v, %q, %v", h, got, payload, err)
		}
	})
}

// TestHeaderBounds is about numbers that do not fit: the nearest that do are written.
func TestHeaderBounds(t *testing.T) {
	h := entry.Header{State: entry.Value, LeaseUntil: -1, WrittenAt: 1 << 60, Delta: -time.Second}
	got, _, err := entry.Parse(h.AppendTo(nil))
	if err != nil || got.LeaseUntil != 0 || got.WrittenAt != 1<<48-1 || got.Delta != 0 {
		t.Errorf("read %+v, %v", got, err)
	}
	h.Delta = 100 * time.Hour
	if got, _, _ := entry.Parse(h.AppendTo(nil)); got.Delta != (1<<32-1)*time.Microsecond {
		t.Errorf("delta of 100 h is read as %v", got.Delta)
	}
}
