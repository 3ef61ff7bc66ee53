package cache

import (
	"context"
	"time"

	"github.com/getorprime/getorprime/internal/entry"
)

// What only the proofs may do: weaken a rule, to show that it is needed.

// MintWith replaces what makes the token of each attempt to get a lease.
func (c *Cache) MintWith(mint func() entry.Token) { c.store.Mint = mint }

// TakeAny lets every caller take whatever the flight it joined answers.
func (c *Cache) TakeAny() { c.takes = func(*call, *answer) bool { return true } }

// TakeStored lets every caller take an answer because it was stored.
func (c *Cache) TakeStored() {
	c.takes = func(k *call, a *answer) bool { return a.stored || k.takes(a) }
}

// RefreshAlone lets each early refresh load and store without asking for the
// lease, as plain XFetch does.
func (c *Cache) RefreshAlone() {
	c.behind = func(k *call, ctx context.Context, _ entry.Token, _ Kind) {
		k.emit(ctx, RefreshedEarly, k.key, 0, nil)
		go func() {
			start := time.Now()
			enc, err := k.load(ctx, k.id)
			if err == nil {
				err = k.set(ctx, &loaded{encoded: enc, took: time.Since(start)})
			}
			if err != nil {
				panic(err)
			}
		}()
	}
}
