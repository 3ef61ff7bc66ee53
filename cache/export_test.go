package cache

import "github.com/getorprime/getorprime/internal/entry"

// What only the proofs may do: weaken a rule, to show that it is needed.

// MintWith replaces what makes the token of each attempt to get a lease.
func (c *Cache) MintWith(mint func() entry.Token) { c.store.Mint = mint }

// TakeAny lets every caller take whatever the flight it joined answers.
func (c *Cache) TakeAny() { c.takes = func(*call, *answer) bool { return true } }

// TakeStored lets every caller take an answer because it was stored.
func (c *Cache) TakeStored() {
	c.takes = func(k *call, a *answer) bool { return a.stored || k.takes(a) }
}
