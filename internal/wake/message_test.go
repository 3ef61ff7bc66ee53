package wake_test

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/getorprime/getorprime/internal/wake"
)

var (
	countingToken = [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	fullToken     = [16]byte([]byte(strings.Repeat("\xff", 16)))
)

var wireMessages = map[string]wake.Message{
	"stored":      {Kind: wake.Stored, Token: countingToken, Topic: "user:7"},
	"failed":      {Kind: wake.Failed, Token: countingToken, Topic: "user:7", Text: "db is away"},
	"panicked":    {Kind: wake.Panicked, Token: fullToken, Topic: "k", Text: "boom"},
	"released":    {Kind: wake.Released, Token: countingToken, Topic: "user:7"},
	"invalidated": {Kind: wake.Invalidated, Topic: "\x00\xff\n"},
	"markedstale": {Kind: wake.MarkedStale},
}

// fixtures reads testdata/messages.txt: wire bytes by name.
func fixtures(tb testing.TB) map[string]string {
	tb.Helper()
	text, err := os.ReadFile("testdata/messages.txt")
	if err != nil {
		tb.Fatal(err)
	}
	wire := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if fields[0] == "#" {
			continue
		}
		b, err := hex.DecodeString(strings.Join(fields[1:], ""))
		if err != nil {
			tb.Fatalf("%s: %v", fields[0], err)
		}
		wire[fields[0]] = string(b)
	}
	return wire
}

func TestMessageWireFormIsFrozen(t *testing.T) {
	wire := fixtures(t)
	if got, want := len(wire), len(wireMessages); got != want {
		t.Errorf("fixtures = %d, want %d", got, want)
	}
	for name, want := range wireMessages {
		t.Run(name, func(t *testing.T) {
			if got := string(want.AppendTo(nil)); got != wire[name] {
				t.Errorf("AppendTo = %x, want %x", got, wire[name])
			}
			got, err := wake.ParseMessage(wire[name])
			if err != nil || got != want {
				t.Errorf("ParseMessage = %+v, %v; want %+v", got, err, want)
			}
		})
	}
}

func TestAppendToKeepsPrefix(t *testing.T) {
	m := wireMessages["failed"]
	got, want := string(m.AppendTo([]byte("before"))), "before"+string(m.AppendTo(nil))
	if got != want {
		t.Errorf("AppendTo = %q, want %q", got, want)
	}
}

func TestParseMessageRefusesDamage(t *testing.T) {
	whole := fixtures(t)["stored"]
	for name, payload := range map[string]string{
		"empty":                 "",
		"kind alone":            whole[:1],
		"cut in the token":      whole[:16],
		"cut in the length":     whole[:20],
		"cut in the topic":      whole[:len(whole)-1],
		"length beyond the end": whole[:17] + "\xff\xff\xff\xff" + whole[21:],
		"kind is a digit":       "7" + whole[1:],
		"kind is lower case":    "s" + whole[1:],
	} {
		t.Run(name, func(t *testing.T) {
			if m, err := wake.ParseMessage(payload); err == nil {
				t.Errorf("ParseMessage(%x) = %+v, want an error", payload, m)
			}
		})
	}
}

func TestParseMessagePassesOnUnknownKinds(t *testing.T) {
	got, err := wake.ParseMessage("Z" + fixtures(t)["stored"][1:])
	if err != nil || got.Kind != 'Z' || got.Topic != "user:7" {
		t.Errorf("ParseMessage = %+v, %v; want kind Z, topic user:7", got, err)
	}
}

func FuzzParseMessage(f *testing.F) {
	for _, wire := range fixtures(f) {
		f.Add(wire)
		f.Add(wire[:len(wire)/2])
	}
	f.Fuzz(func(t *testing.T, payload string) {
		m, err := wake.ParseMessage(payload)
		if err != nil {
			return
		}
		if got := string(m.AppendTo(nil)); got != payload {
			t.Errorf("round trip = %x, want %x", got, payload)
		}
	})
}
