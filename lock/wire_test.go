package lock_test

import (
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

var update = flag.Bool("update", false, "write testdata/wire/lock.txt anew")

// other is what another process calls itself.
const other = "00112233445566778899aabbccddeeff"

// TestWire freezes what is in Redis in each state of a lock, and what is published:
// keys, types, values and times to live. Processes of other versions read and write
// the same: those that differ no longer exclude each other. What has to change
// needs keys of another name.
func TestWire(t *testing.T) {
	client := redistest.Start(t).Client(t)
	l := open(t, client, &lock.Options{Namespace: "app:", Info: "host/1"})
	var text strings.Builder
	for _, state := range []struct {
		name string
		make func(t *testing.T) (more string)
	}{
		{"held", func(t *testing.T) string { get(t, l, "a", nil); return "" }},
		{"held, with a fence", func(t *testing.T) string {
			get(t, l, "a", &lock.AcquireOptions{Fenced: true, TTL: time.Minute, Info: "the writer"})
			return ""
		}},
		{"held, and another process waits", func(t *testing.T) string { get(t, l, "a", nil); return waitedFor(t, client) }},
		{"released, and reserved for who has waited", func(t *testing.T) string { return reserved(t, l, client) }},
		{"two of three places held", func(t *testing.T) string {
			opts := &lock.AcquireOptions{Holders: 3, TTL: time.Minute}
			get(t, l, "a", opts)
			get(t, l, "a", opts)
			return ""
		}},
		{"a task ran in a slot, and the lock rests", func(t *testing.T) string {
			opts := &lock.RunOptions{Slot: "2026-11", SlotTTL: time.Hour, MinHold: 20 * time.Second}
			wantErr(t, "Run", l.Run(t.Context(), "a", func(context.Context) error { return nil }, opts), nil)
			return ""
		}},
	} {
		t.Run(state.name, func(t *testing.T) {
			client.FlushDB(t.Context())
			more := state.make(t)
			fmt.Fprintf(&text, "# %s\n%s%s\n", state.name, dump(t, client), more)
		})
	}
	wantFile(t, filepath.Join("..", "testdata", "wire", "lock.txt"), text.String())
}

func wantFile(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("in Redis:\n\n%s\nwant, as in %s:\n\n%s", got, path, want)
	}
}

// waitedFor has another process wait for the lock until the test ends.
func waitedFor(t *testing.T, client *redis.Client) string {
	l := open(t, client, &lock.Options{Namespace: "app:"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _, _ = l.Acquire(ctx, "a", nil) }()
	t.Cleanup(func() { cancel(); <-done })
	redistest.Eventually(t, bound, func() bool { return client.ZCard(ctx, "app:lock:{a}:w").Val() == 1 }, "another process waits")
	return ""
}

// reserved releases a lock that another process of another version waits for, and
// returns what that one hears.
func reserved(t *testing.T, l *lock.Locker, client *redis.Client) string {
	ctx := t.Context()
	heard := client.Subscribe(ctx, "app:lock:"+other)
	defer heard.Close()
	if _, err := heard.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	h := get(t, l, "a", nil)
	client.ZAdd(ctx, "app:lock:{a}:w", redis.Z{Score: float64(time.Now().UnixMilli()), Member: other})
	release(t, h)
	client.PExpire(ctx, "app:lock:{a}", 900*time.Millisecond) // to be looked at; else 100 ms
	m, err := heard.ReceiveMessage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s hears %s\n", mask(m.Channel), hex.EncodeToString([]byte(m.Payload)))
}

// dump shows all keys.
func dump(t *testing.T, client *redis.Client) string {
	t.Helper()
	var b strings.Builder
	keys := client.Keys(t.Context(), "*").Val()
	slices.Sort(keys)
	for _, key := range keys {
		left := client.PTTL(t.Context(), key).Val()
		kind := client.Type(t.Context(), key).Val()
		fmt.Fprintf(&b, "%s  %s  within %v  %s\n", key, kind, seconds(left), show(t, client, kind, key))
	}
	return b.String()
}

// show shows a value, without what is never the same.
func show(t *testing.T, client *redis.Client, kind, key string) string {
	if kind != "zset" {
		return mask(client.Get(t.Context(), key).Val())
	}
	var all []string
	for _, m := range client.ZRangeWithScores(t.Context(), key, 0, -1).Val() {
		name, _ := m.Member.(string)
		from := time.Until(time.UnixMilli(int64(m.Score)))
		all = append(all, fmt.Sprintf("%s: Unix ms, within %v", mask(name), seconds(from)))
	}
	return strings.Join(all, "; ")
}

// seconds rounds up.
func seconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// never the same: tokens and names of processes, and fences, which are microseconds
// since 1970.
var random = regexp.MustCompile(`[0-9a-f]{32}|^[0-9]{16}$`)

func mask(s string) string {
	return random.ReplaceAllStringFunc(s, func(s string) string { return fmt.Sprintf("<%d digits>", len(s)) })
}
