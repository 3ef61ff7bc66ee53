package entry_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/entry"
)

// testRule01 is about tokens that are new for each grant: (1) load A of a
// process begins; (2) DEL; (3) load B of the same process begins; (4) A fills
// what it read before the DEL.
func testRule01TokenPerGrant(t *testing.T, b *backend) {
	p := at(t, b, nil)
	first := p.grant()
	p.must(b.client.Del(t.Context(), p.key).Err())
	second := p.grant()
	p.wantFill(entry.Lost, first, "read before the DEL")
	p.wantFill(entry.Done, second, "read after")
	if _, got, _ := p.stored(); got != "read after" {
		t.Errorf("stored %q", got)
	}
}

// testRule01Mutant shows that the interleaving of rule 1 breaks a token per
// process, so that the test above can fail.
func testRule01Mutant(t *testing.T, b *backend) {
	p := at(t, b, nil)
	p.store.Mint = func() entry.Token { return tokA }
	first := p.grant()
	p.must(b.client.Del(t.Context(), p.key).Err())
	p.grant()
	p.wantFill(entry.Done, first, "read before the DEL")
}

// testRule04OneKey is about a lease that dies with its value, whoever removes it.
func testRule04OneKey(t *testing.T, b *backend) {
	removals := map[string]func(*place) error{
		"DEL":        func(p *place) error { return b.client.Del(p.Context(), p.key).Err() },
		"UNLINK":     func(p *place) error { return b.client.Unlink(p.Context(), p.key).Err() },
		"FLUSHALL":   flushAll,
		"INVALIDATE": func(p *place) error { return p.another().Invalidate(p.Context(), p.key) },
		"MARKSTALE":  func(p *place) error { _, err := p.another().MarkStale(p.Context(), p.key); return err },
		"expiry":     func(p *place) error { return b.client.PExpire(p.Context(), p.key, -time.Second).Err() },
		"foreign":    func(p *place) error { return b.client.Set(p.Context(), p.key, "x", time.Minute).Err() },
	}
	for name, remove := range removals {
		t.Run(name, func(t *testing.T) {
			p := at(t, b, nil)
			tok := p.grant()
			p.must(remove(p))
			p.wantPowerless(tok)
			next := p.grant()
			p.wantPowerless(tok)
			p.wantFill(entry.Done, next, "new")
			p.wantPowerless(tok)
		})
	}
}

func flushAll(p *place) error {
	c, ok := p.backend.client.(*redis.ClusterClient)
	if !ok {
		return p.backend.client.FlushAll(p.Context()).Err()
	}
	return c.ForEachMaster(p.Context(), func(ctx context.Context, c *redis.Client) error { return c.FlushAll(ctx).Err() })
}

// wantPowerless checks that the lease named by tok can do nothing any more, and
// changes nothing by trying.
func (p *place) wantPowerless(tok entry.Token) {
	p.Helper()
	ctx, raw := p.Context(), p.backend.client
	before := raw.Get(ctx, p.key).Val()
	p.wantFill(entry.Lost, tok, "late")
	held, _, err := p.store.Extend(ctx, p.key, tok, lease, keep)
	p.must(err)
	released, err := p.store.Release(ctx, p.key, tok)
	p.must(err)
	unstored, err := p.store.ReleaseUnstored(ctx, p.key, tok, time.Second)
	p.must(err)
	kept, _, err := p.store.Fail(ctx, p.key, tok, entry.Failure{Message: "late"}, 1, cool)
	p.must(err)
	if held || released || unstored || kept != entry.FailLost {
		p.Errorf("a lost lease: extended %v, released %v, unstored %v, failed %v", held, released, unstored, kept)
	}
	if after := raw.Get(ctx, p.key).Val(); after != before {
		p.Errorf("a lost lease changed the key from %q to %q", before, after)
	}
}

// testRule05KeptAlive is about a refresh shortly before expiry: (1) the lease is
// granted; (2) the old value's time is over; (3) somebody else asks.
func testRule05KeptAlive(t *testing.T, b *backend) {
	p := at(t, b, nil)
	p.seed(staleValue.with(func(s *spec) { s.hard, s.px = 60, 60*time.Millisecond }))
	tok := p.grant()
	p.pass(100 * time.Millisecond)
	p.wantVerdict(entry.Wait)
	got, err := p.store.Get(t.Context(), p.key)
	p.must(err)
	if got.Known && got.State == entry.Value && got.HardUntil >= got.Now {
		t.Errorf("a reader may serve the value %d ms after its hard expiry", got.Now-got.HardUntil)
	}
	p.must(b.client.PExpire(t.Context(), p.key, time.Second).Err())
	held, _, err := p.store.Extend(t.Context(), p.key, tok, lease, keep)
	p.must(err)
	if d := p.pttl(); !held || !near(d, keep) {
		t.Errorf("after EXTEND: held %v, the key lives %v, want %v", held, d, keep)
	}
	p.wantFill(entry.Done, tok, "new")
	if d := p.pttl(); !near(d, hard) {
		t.Errorf("after FILL the key lives %v, want %v", d, hard)
	}
}

// testRule06ShortLease is about a lease that lapsed: it may still fill unless
// somebody took it.
func testRule06ShortLease(t *testing.T, b *backend) {
	short := func(a *ask) { a.Lease = time.Millisecond }
	t.Run("nobody took it", func(t *testing.T) {
		p := at(t, b, nil)
		tok := p.grant(short)
		p.pass(5 * time.Millisecond)
		p.wantFill(entry.Done, tok, "late")
	})
	t.Run("taken", func(t *testing.T) {
		p := at(t, b, nil)
		tok := p.grant(short)
		p.pass(5 * time.Millisecond)
		next := p.grant()
		p.wantPowerless(tok)
		p.wantFill(entry.Done, next, "next")
	})
	t.Run("after the grace", func(t *testing.T) {
		p := at(t, b, nil)
		tok := p.grant(short)
		p.pass(20 * time.Millisecond)
		got, err := p.store.Fill(t.Context(), p.key, tok, content("too late"), 2*time.Millisecond)
		p.must(err)
		if got != entry.Lost {
			t.Errorf("fill after the grace = %v, want lost", got)
		}
	})
}

// testRule08Undecodable is about two processes that cannot decode a fresh
// entry: one loads, the other gets what was loaded.
func testRule08Undecodable(t *testing.T, b *backend) {
	p := at(t, b, nil)
	p.seed(freshValue)
	tok := p.grant(unless(genG))
	p.wantVerdict(entry.Wait, unless(genG))
	p.wantFill(entry.Done, tok, "decodable")
	if got := p.wantVerdict(entry.Hit, unless(genG)); string(got.Payload) != "decodable" {
		t.Errorf("payload %q", got.Payload)
	}
	p.grant(unless(genG, tok))
}

// testRule10ScriptFlush runs everything while the server forgets its scripts.
func testRule10ScriptFlush(t *testing.T, b *backend) {
	p := at(t, b, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var flusher, workers sync.WaitGroup
	flusher.Go(func() {
		for ctx.Err() == nil {
			if err := b.client.ScriptFlush(ctx).Err(); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	for i := range 8 {
		workers.Go(func() {
			for n := range 8 {
				if err := everyScript(ctx, p.store, fmt.Sprintf("%s/%d/%d", p.key, i, n%3)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	cancel()
	flusher.Wait()
}

// everyScript runs each of the store's commands.
func everyScript(ctx context.Context, s *entry.Store, key string) error {
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	_, err := s.Get(ctx, key)
	note(err)
	s.ClockOf(ctx, key).Forget()
	_, err = s.Get(ctx, key)
	note(err)
	got, err := s.Acquire(ctx, key, &entry.Request{Lease: lease, Keep: keep})
	note(err)
	_, _, err = s.Extend(ctx, key, got.Token, lease, keep)
	note(err)
	_, err = s.Fill(ctx, key, got.Token, content("v"), grace)
	note(err)
	_, err = s.MarkStale(ctx, key)
	note(err)
	tok, err := s.Seize(ctx, key, lease, keep)
	note(err)
	_, _, err = s.Fail(ctx, key, tok, entry.Failure{}, 1, cool)
	note(err)
	_, err = s.Release(ctx, key, tok)
	note(err)
	note(s.Invalidate(ctx, key))
	return errors.Join(errs...)
}

// testRule11Failures is about the count of failures and the end of a cool-down.
func testRule11Failures(t *testing.T, b *backend) {
	for name, before := range map[string]spec{"of a first load": {}, "of a refresh": staleValue.with(func(s *spec) { s.failures = 0 })} {
		t.Run(name, func(t *testing.T) {
			p := at(t, b, nil)
			p.seed(before)
			p.failOnce(3, time.Millisecond)
			p.pass(5 * time.Millisecond)
			got := p.wantVerdict(entry.Grant)
			if h, _, _ := p.stored(); got.Failures != 3 || h.Failures != 3 {
				t.Errorf("failures in the grant %d, in the key %d; want 3", got.Failures, h.Failures)
			}
			p.wantFill(entry.Done, got.Token, "at last")
			if h, _, _ := p.stored(); h.Failures != 0 || h.Flags.Has(entry.LastFailed) {
				t.Errorf("after a fill: %d failures, flags %b", h.Failures, h.Flags)
			}
		})
	}
	t.Run("count of 255", func(t *testing.T) {
		p := at(t, b, nil)
		p.failOnce(255, cool)
		if got := p.wantVerdict(entry.Cooling); got.Failures != 255 {
			t.Errorf("failures = %d, want 255", got.Failures)
		}
	})
	t.Run("late waiter", func(t *testing.T) {
		p := at(t, b, nil)
		awaited := p.failOnce(1, time.Millisecond)
		p.pass(5 * time.Millisecond)
		got := p.wantVerdict(entry.Cooling, awaiting(awaited))
		if f := got.Entry.Failure(); f != (entry.Failure{Message: "no luck"}) {
			t.Errorf("failure = %+v", f)
		}
		p.wantVerdict(entry.Grant, awaiting(tokB))
	})
	t.Run("invalidated", func(t *testing.T) {
		p := at(t, b, nil)
		p.failOnce(1, cool)
		p.wantVerdict(entry.Cooling)
		p.must(p.store.Invalidate(t.Context(), p.key))
		p.grant()
	})
	t.Run("marked stale", func(t *testing.T) {
		p := at(t, b, nil)
		p.seed(staleValue)
		p.failOnce(1, cool)
		p.wantVerdict(entry.Cooling)
		_, err := p.store.MarkStale(t.Context(), p.key)
		p.must(err)
		p.grant()
	})
}

// failOnce gets the lease and fails, and returns the lease's token.
func (p *place) failOnce(failures uint8, cool time.Duration) entry.Token {
	p.Helper()
	tok := p.grant()
	kept, _, err := p.store.Fail(p.Context(), p.key, tok, entry.Failure{Message: "no luck"}, failures, cool)
	p.must(err)
	if kept == entry.FailLost {
		p.Fatal("the failure was not accepted")
	}
	p.mortal()
	return tok
}

// testRule12Clocks is about processes whose clocks are a minute apart: they
// judge freshness alike, and what they write is right.
func testRule12Clocks(t *testing.T, b *backend) {
	for _, shift := range []time.Duration{-30 * time.Second, 0, 30 * time.Second} {
		t.Run(shift.String(), func(t *testing.T) {
			p := at(t, b, nil)
			p.store.ClockOf(t.Context(), p.key).Shift(shift)
			p.seed(freshValue)
			for range 3 { // the first read asks for the time, the others rely on it
				before := p.now()
				got, err := p.store.Get(t.Context(), p.key)
				p.must(err)
				if got.Now < before-50 || got.Now > p.now()+50 {
					t.Errorf("the server's time is thought to be %d ms off", got.Now-before)
				}
			}
			p.must(b.client.Del(t.Context(), p.key).Err())
			p.grant(cold)
			h, _, _ := p.stored()
			if left := time.Duration(h.LeaseUntil-p.now()) * time.Millisecond; !near(left, lease) {
				t.Errorf("the lease of a plain set ends in %v, want %v", left, lease)
			}
		})
	}
}

// testRule12ClockPerPrimary is about a cluster, whose primaries' clocks may differ.
func testRule12ClockPerPrimary(t *testing.T, b *backend) {
	p := at(t, b, nil)
	clocks := map[*entry.Clock]bool{}
	for range 200 {
		key := fmt.Sprint(rand.Uint64())
		_, err := p.store.Get(t.Context(), key)
		p.must(err)
		clocks[p.store.ClockOf(t.Context(), key)] = true
	}
	want := 1
	if b.cluster {
		want = 3
	}
	if got := len(clocks); got != want {
		t.Errorf("%d clocks, want %d", got, want)
	}
	for c := range clocks {
		if _, known := c.Now(); !known {
			t.Error("a clock is unknown after a read")
		}
	}
}

// testRule15Claim is about the plain set that wins an absent key, and only that.
func testRule15Claim(t *testing.T, b *backend) {
	for name, s := range map[string]spec{
		"value": freshValue, "stale": staleValue, "held": held, "lapsed": lapsed, "failed": cooling, "foreign": {raw: "x"}, "list": {asAList: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := at(t, b, nil)
			p.seed(s)
			p.knowTime()
			before := b.client.Dump(t.Context(), p.key).Val()
			if _, won := p.store.Claim(t.Context(), p.key, &entry.Request{Lease: lease, Keep: keep}); won {
				t.Error("a key that is there was won")
			}
			if after := b.client.Dump(t.Context(), p.key).Val(); after != before {
				t.Error("a refused claim changed the key")
			}
		})
	}
	t.Run("absent", func(t *testing.T) {
		p := at(t, b, nil)
		if _, won := p.store.Claim(t.Context(), p.key, &entry.Request{Lease: lease, Keep: keep}); won {
			t.Error("a key was won without knowing the server's time")
		}
		p.wantAbsent()
		p.knowTime()
		got, won := p.store.Claim(t.Context(), p.key, &entry.Request{Lease: lease, Keep: keep})
		if !won || got.Verdict != entry.Grant {
			t.Fatalf("claim = %v, won %v; want a grant", got.Verdict, won)
		}
		p.wantVerdict(entry.Wait)
		p.wantFill(entry.Done, got.Token, "v")
	})
}
