// Package lock offers distributed locks on Redis: leases that are renewed by
// themselves, end before the server can give them to somebody else, and carry a
// fence.
//
// # One lock
//
//  1. [Locker.Acquire] sets the lock's key if it is free: one SET NX PX with 128
//     random bits. A [Lease] is what comes of it.
//  2. The lease is renewed at each third of its TTL while its holder works under
//     [Lease.Context].
//  3. If a renewal finds the key gone or another's, or none succeeds in time, the
//     context is cancelled with the cause [ErrLost]: 1 % and 2 ms before the TTL
//     has passed since the last successful renewal was sent, by the monotonic
//     clock and the wall clock, whichever says so first. Who needs time to come to
//     an end asks for [AcquireOptions].Grace.
//  4. [Lease.Release] deletes the key if it is still the holder's, and names the
//     process that has waited longest as the next.
//
// An uncontended acquire and release are one round trip each.
//
// # Waiting
//
// Callers of one process wait in line, and only the first of them talks to Redis.
// Each process that waits is noted beside the lock. A release reserves the lock
// for the one that has waited longest, for 100 ms, and publishes to it alone; so
// nobody who just arrives gets in before, and nobody is woken in vain. All of it
// is a hint: who polls (every 250 ms, with chance in it) takes a lock that is
// neither held nor reserved, so a dead waiter, a lost message or a killed holder
// costs a poll, or the rest of the lease, and never more.
//
// # What a lease promises, and what not
//
// At most one holder at a time, as one Redis primary sees it, as long as its clock
// is not stepped, and as long as the holder's process is scheduled: a process that
// is stopped for longer than the TTL (by a pause of its machine, a debugger,
// SIGSTOP) learns that it has lost the lock only when it goes on. And what it has
// sent before may arrive at the resource later still. A failover may give the lock
// away a second time, since Redis replicates after it has answered.
//
// Where two writers would be a disaster, let the resource decide: send
// [Lease.Fence] along, and refuse what is older than what was seen:
//
//	fence, err := h.Fence(ctx)
//	…
//	res, err := db.ExecContext(ctx,
//		"UPDATE stock SET n = n - ?, fence = ? WHERE id = ? AND n >= ? AND fence <= ?",
//		qty, fence, id, qty, fence)
//
// No row updated means: nothing left, or somebody with a later fence was here.
//
// # What is left out
//
// Re-entrance: a lock that is held twice by one holder protects neither part, and
// whose goroutine it is that asks, Go does not tell. Pass the [Lease] on instead.
//
// Redlock: several primaries without consensus do not make a lock safe; without a
// fence it is as unsafe as one primary, with a fence one primary is as safe.
//
// A queue of clients blocked in Redis (BLPOP): fast and fair, but a token that is
// popped by a client that dies is gone.
//
// A Redis Cluster or Sentinel serves as well as a single server. The client must
// not be a *redis.Ring.
package lock
