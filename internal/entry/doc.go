// Package entry is the protocol by which processes agree on one Redis key what
// its value is and who may replace it: load-link / store-conditional, with
// Redis as the memory.
//
// # One key
//
// An entry is one Redis string: a [Header] followed by a payload. Value and
// lease live in the same key, so a DEL by anyone, a FLUSHALL or an eviction
// takes the lease along with the value, and a load that began before it can
// no longer be stored.
//
// # One load
//
//  1. [Store.Get] reads the entry: one GET, no script.
//  2. [Store.Acquire] asks for the lease. An absent key is won by SET NX with a
//     stub that carries a fresh [Token]; anything else by a script, which answers
//     with a grant, the value after all, the failure of the last load, or
//     "wait".
//  3. The holder loads. [Store.Extend] moves the end of its lease.
//  4. [Store.Fill] stores what was loaded if the lease is still the holder's,
//     whether or not its time is over: a lapsed lease that nobody took harms
//     nobody. [Store.Fail] and [Store.Release] end it without a value.
//
// # What the rules are for
//
// Each rule closes an interleaving that would break a promise.
//
// A token is random and new for each grant. (1) load A of a process begins;
// (2) DEL; (3) load B of the same process begins; (4) A fills what it read
// before the DEL. With a token per process step 4 would be accepted.
//
// A command that creates a lease is delivered at most once per token. (1)
// ACQUIRE(t) is delayed in the network and the client gives up on it; (2) a
// second ACQUIRE(t) is granted and its load reads the old value; (3)
// INVALIDATE; (4) the first ACQUIRE(t) arrives and is granted; (5) FILL(t)
// stores the old value. So such commands are marked NoRetry, and a further
// attempt has a new token and names its earlier ones as its own.
//
// GRANT and EXTEND keep the key alive for as long as a load may take. (1) a
// value is refreshed shortly before its expiry; (2) the key expires, and the
// lease with it; (3) somebody else starts a second load.
//
// Times are the server's, so processes whose clocks are apart judge freshness
// alike. Safety depends on no clock: only on the comparison of tokens.
//
// At maxmemory Redis refuses writes but not DEL, PEXPIRE and PUBLISH: scripts
// that end a lease fall back to those, and what cannot be written lapses.
//
// The format is frozen by fixtures under testdata; another format is a miss.
package entry
