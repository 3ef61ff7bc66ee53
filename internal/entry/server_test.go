package entry_test

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/command"
	"github.com/getorprime/getorprime/internal/entry"
	"github.com/getorprime/getorprime/internal/redistest"
)

// full fills a server up to its maxmemory, and lets it take nothing more.
func full(t *testing.T, b *backend) {
	t.Helper()
	ctx := t.Context()
	if err := b.client.ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := b.client.Set(ctx, "more", "x", 0).Err(); !command.IsFull(err) {
		t.Fatalf("a write to a full server: %v, want an OOM error", err)
	}
}

// TestRule09Full is about a server at maxmemory: what each script does when it
// cannot write. Embedded Redis has no limit.
func TestRule09Full(t *testing.T) {
	b := server(t)
	tests := []struct {
		name   string
		before spec
		do     func(*place) (int, error)
		full   bool // the answer is the OOM error
		want   int
		after  *spec
		heard  string
		about  entry.Token
	}{
		{name: "ACQUIRE of an absent key", do: doAcquire, full: true},
		{name: "ACQUIRE of a stale value", before: staleValue, do: doAcquire, full: true, after: &staleValue},
		{name: "ACQUIRE of a fresh value", before: freshValue, do: doAcquire, want: int(entry.Hit), after: &freshValue},
		{name: "ACQUIRE of a held key", before: held, do: doAcquire, want: int(entry.Wait), after: &held},
		{name: "ACQUIRE in a cool-down", before: cooling, do: doAcquire, want: int(entry.Cooling), after: &cooling},
		{name: "SEIZE", before: freshValue, do: doSeize, full: true, after: &freshValue},
		{name: "SEIZE of an absent key", do: doSeize, full: true},
		{name: "EXTEND", before: held, do: doExtend, full: true, after: &held},
		{name: "FILL", before: held.with(waiting), do: doFill, full: true, after: new(held.with(waiting))},
		{name: "FAIL", before: held, do: doFail, want: int(entry.FailSet), heard: "F", about: tokA},
		{name: "FAIL beside a value", before: leasedStale, do: doFail, want: int(entry.FailKept), after: &leasedStale, heard: "F", about: tokA},
		{name: "RELEASE of a stub", before: held.with(waiting), do: doRelease, want: 1, heard: "R", about: tokA},
		{name: "RELEASE of a refresh", before: leasedStale, do: doRelease, want: 1, after: &leasedStale},
		{name: "RELEASE after failures", before: cooled.with(leased(20_000)), do: doRelease, want: 1, after: new(cooled.with(leased(20_000)))},
		{name: "RELEASE unstored", before: leasedStale, do: doBypass, want: 1},
		{name: "INVALIDATE", before: freshValue, do: doInvalidate, heard: "I"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			p := at(t, b, nil)
			p.must(b.client.ConfigSet(t.Context(), "maxmemory", "0").Err())
			p.seed(c.before)
			ear := p.listen()
			full(t, b)
			got, err := c.do(p)
			if command.IsFull(err) != c.full || !c.full && err != nil {
				t.Fatalf("error = %v, want one of a full server: %v", err, c.full)
			}
			if !c.full && got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
			ear.wantHeard(c.heard, c.about)
			p.wantStored(c.after)
		})
	}
	t.Run("MARKSTALE", func(t *testing.T) {
		p := at(t, b, nil)
		p.must(b.client.ConfigSet(t.Context(), "maxmemory", "0").Err())
		p.seed(freshValue)
		full(t, b)
		if marked, err := doMark(p); err != nil || marked != 0 {
			t.Errorf("marked %d, %v; want a deletion", marked, err)
		}
		p.wantAbsent()
	})
	t.Run("plain set", func(t *testing.T) {
		p := at(t, b, nil)
		p.knowTime()
		full(t, b)
		if _, err := p.try(t.Context(), cold); !command.IsFull(err) {
			t.Errorf("error = %v, want one of a full server", err)
		}
		p.wantAbsent()
	})
}

func doAcquire(p *place) (int, error) {
	got, err := p.try(p.Context())
	return int(got.Verdict), err
}

// TestRule09RoomAgain is about a lease that could not be ended for want of room:
// it lapses, and what it was for goes on.
func TestRule09RoomAgain(t *testing.T) {
	b := server(t)
	p := at(t, b, nil)
	p.seed(leasedStale.with(leased(30)))
	full(t, b)
	_, err := doRelease(p)
	p.must(err)
	p.pass(50 * time.Millisecond)
	p.must(b.client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	p.wantFill(entry.Done, p.grant(), "v")
}

// TestRule04Evicted is about a lease whose key the server evicts in mid-load.
func TestRule04Evicted(t *testing.T) {
	b := server(t)
	p := at(t, b, nil)
	p.must(b.client.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-random").Err())
	tok := p.grant()
	p.must(b.client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	redistest.Eventually(t, 10*time.Second, func() bool {
		return b.client.Exists(t.Context(), p.key).Val() == 0
	}, "eviction of the key")
	p.must(b.client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	p.wantPowerless(tok)
	p.wantFill(entry.Done, p.grant(), "v")
}

// TestRule07PayloadStays is about 8 MB that no script reads unless it returns
// them: the server counts no GET, and the memory of scripts stays small.
func TestRule07PayloadStays(t *testing.T) {
	b := server(t)
	p := at(t, b, nil)
	payload := string(make([]byte, 8<<20))
	p.seed(leasedStale.with(func(s *spec) { s.payload = payload }))
	p.must(b.client.ConfigResetStat(t.Context()).Err())
	p.wantVerdict(entry.Wait)
	for _, do := range []func(*place) (int, error){doExtend, doRelease, doSeize, doMark} {
		_, err := do(p)
		p.must(err)
	}
	p.grant()
	stats := b.client.Info(t.Context(), "commandstats").Val()
	if strings.Contains(stats, "cmdstat_get:") || !strings.Contains(stats, "cmdstat_getrange:") {
		t.Errorf("commands that were run:\n%s\nwant GETRANGE, no GET", stats)
	}
	if !strings.Contains(stats, "cmdstat_evalsha:") {
		t.Error("no script was run")
	}
}

// TestLargeValue is about a value of 64 MB.
func TestLargeValue(t *testing.T) {
	b := server(t)
	p := at(t, b, nil)
	part := make([]byte, 1<<20)
	r := rand.NewChaCha8([32]byte{})
	r.Read(part)
	payload := bytes.Repeat(part, 64)
	p.wantFill(entry.Done, p.grant(), string(payload))
	for range 2 { // with and without the clock
		got, err := p.store.Get(t.Context(), p.key)
		p.must(err)
		if !bytes.Equal(got.Payload, payload) {
			t.Errorf("read %d bytes, want the %d as written", len(got.Payload), len(payload))
		}
		p.knowTime()
	}
}

// TestScriptsArePortable is about what the scripts may use: commands that Redis
// 6.2, Valkey and embedded Redis know, on one key.
func TestScriptsArePortable(t *testing.T) {
	known := map[string]bool{
		"TIME": true, "GET": true, "GETRANGE": true, "SET": true, "SETRANGE": true, "DEL": true,
		"PTTL": true, "PEXPIRE": true, "PUBLISH": true,
	}
	call := regexp.MustCompile(`redis\.(\w+)\('(\w+)'`)
	library := regexp.MustCompile(`\b(\w+)\.\w+\(`)
	for name, src := range entry.Scripts {
		for _, m := range call.FindAllStringSubmatch(src, -1) {
			if m[1] != "call" && m[1] != "pcall" || !known[m[2]] {
				t.Errorf("%s runs redis.%s('%s')", name, m[1], m[2])
			}
		}
		for _, m := range library.FindAllStringSubmatch(src, -1) {
			if m[1] != "redis" && m[1] != "string" && m[1] != "math" {
				t.Errorf("%s uses the library %s", name, m[1])
			}
		}
		if !strings.Contains(src, "KEYS[1]") || strings.Contains(src, "KEYS[2]") {
			t.Errorf("%s is not about one key", name)
		}
	}
}
