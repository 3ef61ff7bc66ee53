package cache

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/getorprime/getorprime/internal/entry"
)

// TestCoolsAreBounded remembers more failures than there is room for: what is
// over goes first, and never more than what is needed.
func TestCoolsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c cools
		err := errors.New("failed")
		begin := func(name string, n int, lasts time.Duration) {
			for i := range n {
				c.begin(fmt.Sprint(name, i), cool{err: err, until: time.Now().Add(lasts)})
			}
		}
		begin("old", maxCools/2, time.Second)
		begin("new", maxCools/2, time.Minute)
		time.Sleep(time.Second)
		begin("more", 10, time.Minute)
		if _, in := c.get("old0"); in {
			t.Error("a cool-down that was over is remembered though there was no room")
		}
		for _, key := range []string{"new0", fmt.Sprint("new", maxCools/2-1), "more9"} {
			if got, cooling := c.alone(key); got != err || !cooling {
				t.Errorf("%s: %v, %v; want it remembered", key, got, cooling)
			}
		}
		begin("many", 3*maxCools, time.Minute)
		if n := len(c.by); n > maxCools {
			t.Errorf("%d failures remembered, want at most %d", n, maxCools)
		}
		if _, in := c.get(fmt.Sprint("many", 3*maxCools-1)); !in {
			t.Error("the latest failure is not remembered")
		}
		c.clear()
		if len(c.by) != 0 {
			t.Errorf("%d left", len(c.by))
		}
	})
}

func TestCoolsTellWhoseFailureItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c cools
		err, tok := errors.New("failed"), entry.Token{1}
		c.begin("shared", cool{token: tok, err: err, until: time.Now().Add(time.Second)})
		c.begin("own", cool{err: err, until: time.Now().Add(time.Second)})
		if got, ok := c.under("shared", tok); got != err || !ok {
			t.Errorf("under its token: %v, %v; want the error", got, ok)
		}
		if _, ok := c.under("shared", entry.Token{2}); ok {
			t.Error("under another's token: an error, want none")
		}
		if _, ok := c.alone("shared"); ok {
			t.Error("a failure that Redis knows of keeps others from loading")
		}
		if _, ok := c.alone("own"); !ok {
			t.Error("a failure that Redis does not know of lets others load")
		}
		time.Sleep(time.Second)
		if _, ok := c.alone("own"); ok {
			t.Error("it does so after its cool-down")
		}
	})
}

// TestDoubts settles a key only by a command that began after the failure.
func TestDoubts(t *testing.T) {
	var d doubts
	if d.has("k") {
		t.Error("a doubt from the start")
	}
	d.remove("k", 1)
	d.add("k", 5)
	d.remove("k", 4)
	if !d.has("k") {
		t.Error("settled by a command that began before the failure")
	}
	d.add("k", 8)
	d.remove("k", 7)
	if !d.has("k") || d.has("other") {
		t.Error("settled by a command that began before the latest failure, or another key in doubt")
	}
	d.remove("k", 9)
	if d.has("k") || d.n.Load() != 0 {
		t.Errorf("in doubt after it was settled; %d in all", d.n.Load())
	}
}

func TestDoubtsOfMany(t *testing.T) {
	var d doubts
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range uint64(1000) {
				key := fmt.Sprint(i, n%7)
				d.add(key, n)
				d.has(key)
				d.remove(key, n+1)
			}
		})
	}
	wg.Wait()
	if n := d.n.Load(); n != 0 {
		t.Errorf("%d in doubt, want none", n)
	}
}
