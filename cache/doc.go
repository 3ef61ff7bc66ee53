// Package cache is a read-through cache on Redis that loads each value once per
// cluster, never serves what was invalidated, and hands every waiter its answer
// the moment it exists.
//
// # One call
//
// [Register] ties a loader to a key prefix; [Keyspace.GetOrPrime] then does this:
//
//  1. It reads the key: one GET. A fresh value is the answer, and so is a stale
//     one inside its window.
//  2. On a miss it joins the process's flight for the key, or starts one and
//     leads it. The flight is detached: callers come and go under their own
//     contexts, its leader too, and it is cancelled only when nobody waits any
//     more, here or elsewhere.
//  3. The flight asks Redis for the key's lease. One process gets it; the others
//     are told to wait, and are woken by a message or ask again.
//  4. The holder calls the loader, and keeps the lease while it runs.
//  5. It stores the value if the lease is still its own. An invalidation, a DEL
//     or a FLUSHALL took the lease along with the key, so what was loaded before
//     can no longer be stored.
//  6. Each caller decodes its own copy.
//
// A hit is one round trip, a miss that nobody contends for is three.
//
// # What is promised
//
// One load: for one key, over all processes, one load per value needed, plus
// one for each lease lost to a crash, an eviction or an invalidation.
//
// Nothing stale: a call that starts after [Keyspace.Invalidate] returned without
// an error gets no value whose load began before it. This holds for callers who
// join a running load, and after a DEL, FLUSHALL or eviction by anyone. It
// assumes that you invalidate after your database has committed, and one Redis
// primary that answers and loses no write: a failover, a restart from an old
// snapshot and a deposed primary that still answers are the exceptions.
//
// Your context is yours: a call returns when its own context ends, and fails
// for nobody else's. Inside a single Redis command, which go-redis cannot
// abandon, it returns at its deadline or when the Redis budget is spent,
// whichever is first.
//
// A bad loader wedges nothing: panics, [runtime.Goexit], hangs and re-entrance
// are errors for those who wait, and the key can be loaded again.
//
// Errors are shared and cool down: a failure is one attempt per cool-down over
// all processes, and everybody learns the cause.
//
// # What is not promised
//
// A value is as old as its policy allows if nobody invalidates. Two loads can run
// at the same time when a lease was lost; only one of them is stored. While Redis
// cannot be asked, each process loads for itself, or calls fail with
// [ErrUnavailable], as Policy.OnOutage says.
//
// # Ages
//
// A value is fresh until its TTL, less a random share (jitter), is over. It is
// then stale for as long as Policy.StaleWhileRevalidate: still the answer, at
// once, while one process over all refreshes it in the background. Until
// Policy.StaleIfError is over it stands in for a load that fails or is slow.
// Then it is gone; and an invalidation ends it at any age. [Result] and its
// Cache-Status say what a caller got.
//
// Before its expiry a hit may start a refresh with a probability that rises as
// the end comes near, faster for values that take long to load
// (Policy.EarlyRefresh), so that under steady load nobody ever waits for an
// expiry.
package cache
