package lock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
)

// wantProblems fails unless err names just these fields, one a line, in order.
func wantProblems(t *testing.T, err error, fields ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want %q to be refused", fields)
		return
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(fields) {
		t.Errorf("%d problems, want %q:\n%v", len(lines), fields, err)
		return
	}
	for i, field := range fields {
		if want := "lock: " + field + " is "; !strings.HasPrefix(lines[i], want) {
			t.Errorf("problem %d is %q, want it to begin with %q", i, lines[i], want)
		}
	}
}

func TestBadOptions(t *testing.T) {
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	for name, tt := range map[string]struct {
		opts   lock.Options
		fields []string
	}{
		"all": {
			lock.Options{Namespace: "a{}", TTL: -1, RedisBudget: -1, Info: strings.Repeat("x", 1025)},
			[]string{"Options.Namespace", "Options.TTL", "Options.RedisBudget", "Options.Info"},
		},
		"TTL too short":        {lock.Options{TTL: 10*time.Millisecond - 1}, []string{"Options.TTL"}},
		"TTL too long":         {lock.Options{TTL: 24*time.Hour + 1}, []string{"Options.TTL"}},
		"budget of nothing":    {lock.Options{RedisBudget: 1}, []string{"Options.RedisBudget"}},
		"a tag without a name": {lock.Options{Namespace: "{}"}, []string{"Options.Namespace"}},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := lock.New(client, &tt.opts)
			wantProblems(t, err, tt.fields...)
			if l != nil {
				t.Error("a locker beside an error")
			}
		})
	}
}

func TestBadClient(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	for name, client := range map[string]redis.UniversalClient{
		"nil": nil, "a nil pointer": (*redis.Client)(nil), "a ring": ring,
	} {
		if _, err := lock.New(client, nil); err == nil || !strings.HasPrefix(err.Error(), "lock: client is ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBadAcquireOptions(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // never asked
	defer client.Close()
	l := open(t, client, nil)
	all := lock.AcquireOptions{TTL: -1, Wait: -1, MaxHold: -1, Grace: -1, Holders: -1, Info: strings.Repeat("x", 1025)}
	fields := []string{"name"}
	for _, f := range []string{"TTL", "Wait", "MaxHold", "Grace", "Holders", "Info"} {
		fields = append(fields, "AcquireOptions."+f)
	}
	_, err := l.Acquire(t.Context(), "", &all)
	wantProblems(t, err, fields...)
	_, err = l.TryAcquire(t.Context(), "}", &all)
	wantProblems(t, err, fields...)
	err = l.Run(t.Context(), "a", never(t), &lock.RunOptions{TTL: -1, MinHold: -1, SlotTTL: -1, Holders: 10_001})
	wantProblems(t, err, "AcquireOptions.TTL", "AcquireOptions.Holders", "RunOptions.MinHold", "RunOptions.SlotTTL")
	for name, opts := range map[string]lock.AcquireOptions{
		"TTL too short": {TTL: time.Millisecond}, "TTL too long": {TTL: 25 * time.Hour}, "too many places": {Holders: 10_001},
		"more grace than half": {TTL: time.Second, Grace: 501 * time.Millisecond},
	} {
		if _, err := l.Acquire(t.Context(), "a", &opts); err == nil || !strings.HasPrefix(err.Error(), "lock: AcquireOptions.") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNames uses names of all sorts. All keys of a lock have to be in one slot of a
// cluster.
func TestNames(t *testing.T) {
	t.Parallel()
	names := map[string]string{
		"braces": "a{b", "closed early": "a}b", "both": "{a}{b}", "unicode": "Schloß 鍵 🔒", "spaces": " \t\n", "zero": "\x00",
		"not UTF-8": "\xff\xfe", "pattern": "*?[a]\\", "colons": "a:w", "long": strings.Repeat("long ", 2000),
	}
	client := redistest.StartCluster(t).Client(t)
	for _, namespace := range []string{"", "app:", "a}b", "a{b", "{tag}"} {
		l := open(t, client, &lock.Options{Namespace: namespace, TTL: time.Minute})
		for what, name := range names {
			t.Run(namespace+" "+what, func(t *testing.T) { useAll(t, l, name) })
		}
	}
}

// useAll has every kind of script run on a lock of that name.
func useAll(t *testing.T, l *lock.Locker, name string) {
	h := get(t, l, name, nil)
	if _, err := h.Fence(t.Context()); err != nil {
		t.Errorf("Fence: %v", err)
	}
	_, err := l.Acquire(t.Context(), name, &lock.AcquireOptions{Wait: time.Millisecond})
	wantErr(t, "a second Acquire", err, lock.ErrNotAcquired)
	release(t, h)
	err = l.Run(t.Context(), name, func(context.Context) error { return nil }, &lock.RunOptions{Slot: "s:}{", Fenced: true})
	wantErr(t, "Run", err, nil)
	status, err := l.Status(t.Context(), name)
	if err != nil || status.Name != name || len(status.Holders) != 0 {
		t.Errorf("status %+v, %v", status, err)
	}
}

// TestNamespacesAreApart has two programs use one name.
func TestNamespacesAreApart(t *testing.T) {
	client := redistest.Start(t).Client(t)
	a, b := open(t, client, &lock.Options{Namespace: "a:"}), open(t, client, &lock.Options{Namespace: "b:"})
	release(t, get(t, b, "x", nil))
	h := get(t, a, "x", nil)
	release(t, get(t, b, "x", nil))
	if all, err := b.List(t.Context(), ""); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v; want nobody else's locks", all, err)
	}
	release(t, h)
}
