package entry_test

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/getorprime/getorprime/internal/entry"
)

// testOddKeys is about keys that are any bytes, through a whole life.
func testOddKeys(t *testing.T, b *backend) {
	keys := map[string]string{
		"one byte": "k", "spaces": " a  b ", "newline": "a\r\nb\n", "braces": "{a}{b}}{", "empty braces": "{}", "NUL": "a\x00b\x00",
		"not UTF-8": "\xff\xfe\x80\xf5P\x01", "10 kB": strings.Repeat("long ", 2000), "glob": "*?[a-z]\\", "percent": "%d%s",
	}
	for name, key := range keys {
		t.Run(name, func(t *testing.T) {
			p := at(t, b, nil)
			p.key = key
			t.Cleanup(func() { b.client.Del(p.Context(), key) })
			ear := p.listen()
			tok := p.grant()
			p.wantVerdict(entry.Wait)
			p.wantFill(entry.Done, tok, "value of "+key)
			ear.wantHeard("S", tok)
			got, err := p.store.Get(t.Context(), key)
			p.must(err)
			if string(got.Payload) != "value of "+key {
				t.Errorf("read %q", got.Payload)
			}
			p.must(p.store.Invalidate(t.Context(), key))
			ear.wantHeard("I", entry.Token{})
			p.grant(cold)
			p.must(p.store.Invalidate(t.Context(), key))
			p.wantAbsent()
		})
	}
}

// testPayloads is about values of any bytes and none.
func testPayloads(t *testing.T, b *backend) {
	for name, payload := range map[string][]byte{
		"empty": {}, "NUL": {0}, "every byte": everyByte(), "like a header": (&entry.Header{State: entry.Stub}).AppendTo(nil),
		"1 MB": bytes.Repeat([]byte("x\x00\xff"), 1<<20/3),
	} {
		t.Run(name, func(t *testing.T) {
			p := at(t, b, nil)
			p.wantFill(entry.Done, p.grant(), string(payload))
			for range 2 { // with and without the clock
				got, err := p.store.Get(t.Context(), p.key)
				p.must(err)
				if !bytes.Equal(got.Payload, payload) || got.State != entry.Value {
					t.Errorf("read %d bytes, state %v; want %d bytes as written", len(got.Payload), got.State, len(payload))
				}
			}
			if got := p.wantVerdict(entry.Hit); !bytes.Equal(got.Payload, payload) {
				t.Error("ACQUIRE returns other bytes")
			}
		})
	}
}

func everyByte() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// testShortLives is about the shortest times: every key has an end.
func testShortLives(t *testing.T, b *backend) {
	for _, d := range []time.Duration{time.Millisecond, 999 * time.Millisecond, time.Second, 1001 * time.Millisecond} {
		t.Run(d.String(), func(t *testing.T) {
			p := at(t, b, nil)
			brief := func(a *ask) { a.Lease, a.Keep = d, d }
			c := content("v")
			c.Fresh, c.Hard = d, d
			p.acquire(brief)
			p.knowTime()
			p.acquire(brief, cold)
			tok, err := p.store.Seize(t.Context(), p.key, d, d)
			p.must(err)
			p.mortal()
			_, _, err = p.store.Extend(t.Context(), p.key, tok, d, d)
			p.must(err)
			p.mortal()
			_, err = p.store.Fill(t.Context(), p.key, tok, c, grace)
			p.must(err)
			p.mortal()
			_, err = p.store.MarkStale(t.Context(), p.key)
			p.must(err)
			p.mortal()
			p.briefEnds(d)
		})
	}
}

// briefEnds ends leases in the ways that leave a key behind.
func (p *place) briefEnds(d time.Duration) {
	p.Helper()
	ends := map[string]func(entry.Token) error{
		"release": func(tok entry.Token) error { _, err := p.store.Release(p.Context(), p.key, tok); return err },
		"bypass": func(tok entry.Token) error {
			_, err := p.store.ReleaseUnstored(p.Context(), p.key, tok, d)
			return err
		},
		"fail": func(tok entry.Token) error {
			_, _, err := p.store.Fail(p.Context(), p.key, tok, entry.Failure{}, 1, d)
			return err
		},
	}
	for _, hardIn := range []int64{0, 1, d.Milliseconds()} {
		for name, end := range ends {
			if hardIn != 0 {
				p.seed(staleValue.with(func(s *spec) { s.hard = hardIn }))
			}
			tok, err := p.store.Seize(p.Context(), p.key, d, d)
			p.must(err)
			p.must(end(tok))
			if life := p.pttl(); life == -1 {
				p.Errorf("%s beside a value that ends in %d ms leaves a key without end", name, hardIn)
			}
		}
	}
}

// testFailureText is about what travels of an error's text.
func testFailureText(t *testing.T, b *backend) {
	long := strings.Repeat("é", 400)
	for name, c := range map[string]struct{ text, want string }{
		"empty": {"", ""}, "short": {"no\x00luck\n", "no\x00luck\n"}, "512 bytes": {strings.Repeat("x", 512), strings.Repeat("x", 512)},
		"long": {long, long[:512]}, "long, not on a border": {"x" + long, "x" + long[:510]},
	} {
		t.Run(name, func(t *testing.T) {
			p := at(t, b, nil)
			ear := p.listen()
			tok := p.grant()
			_, _, err := p.store.Fail(t.Context(), p.key, tok, entry.Failure{Message: c.text, Panic: true}, 1, cool)
			p.must(err)
			if heard := ear.heard(); len(heard) != 1 || heard[0].Text != c.want || heard[0].Kind != 'P' {
				t.Errorf("heard %+v, want the text", heard)
			}
			got := p.wantVerdict(entry.Cooling)
			if f := got.Entry.Failure(); f.Message != c.want || !f.Panic {
				t.Errorf("failure = %+v, want %q", f, c.want)
			}
		})
	}
}

func TestClip(t *testing.T) {
	tests := []struct {
		name, in string
		n        int
		want     string
	}{
		{"short", "abc", 5, "abc"},
		{"exact", "abc", 3, "abc"},
		{"ASCII", "abcd", 3, "abc"},
		{"border", "aéé", 3, "aé"},
		{"inside a rune", "aéé", 4, "aé"},
		{"inside four bytes", "a😀", 4, "a"},
		{"nothing", "é", 1, ""},
		{"not UTF-8", strings.Repeat("\x80", 20), 10, strings.Repeat("\x80", 10)},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			if got := entry.Clip(c.in, c.n); got != c.want {
				t.Errorf("Clip(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
			}
		})
	}
}

func FuzzClip(f *testing.F) {
	f.Add("aéb😀", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		if n < 0 {
			return
		}
		got := entry.Clip(s, n)
		if len(got) > n || !strings.HasPrefix(s, got) || utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("Clip(%q, %d) = %q", s, n, got)
		}
	})
}
