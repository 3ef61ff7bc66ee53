// Package lockhttp lets one request at a time have a resource: a second one is
// refused with 423 Locked, on whichever server it arrives.
//
//	guard, err := lockhttp.Middleware(locker, lockhttp.PathKey("id"), &lockhttp.Options{Prefix: "order:"})
//	…
//	mux.Handle("POST /orders/{id}/ship", guard(http.HandlerFunc(ship)))
//
// # One request
//
//  1. A request whose method changes nothing (GET, HEAD, …) goes to the handler
//     as it is. For others the [KeyFunc] says which resource is meant.
//  2. The lock [Options].Prefix + key is acquired, before the body is read unless
//     the key is in it. If others hold it, for longer than [Options].Wait, the
//     request is refused. A job that acquires the lock of that name excludes the
//     requests as well.
//  3. The handler runs under a context derived from the request's. It ends with
//     the cause [lock.ErrLost] if the lock can no longer be kept. In it is the
//     lease: lock.LeaseFrom(ctx).Fence(ctx) is the fence to send along with each
//     write.
//  4. When the handler has returned, and not before, the lock is released: also if
//     it panicked (the panic goes on), and if the client has left. A handler that
//     is to stop when its client leaves has to mind its context.
//  5. If the lock was lost meanwhile and the handler has written nothing, the
//     answer says so.
//
// Each request that is let in costs two round trips to Redis.
//
// # Answers
//
// What the middleware answers itself is a problem of RFC 9457, as
// application/problem+json, with Cache-Control: no-store:
//
//	status              type               when
//	423, 409 or 429     TypeLocked         others hold the resource; the handler was not called
//	503                 TypeUnavailable    Redis failed, or the locker was closed; the handler was not called
//	503                 TypeLost           the lock was lost and the handler wrote nothing; what it did is unknown
//	400, 413            about:blank        the request has no key, or a malformed or too long body or key
//	500                 about:blank        the server is set up wrongly: the log and the detail say how
//
// The first three carry Retry-After, a number of whole seconds, at least 1.
// What a handler has written stays: the middleware adds nothing to it.
//
// # Where to put it
//
// Inside the mux, around a handler, when the key is a path value: around the mux
// there are none yet. Inside what may answer before its handler has returned, such
// as [http.TimeoutHandler], or the lock would be released while the handler is
// still at work. When the server ends, call [http.Server.Shutdown] before
// [lock.Locker.Close].
//
// A handler may flush, hijack its connection and set deadlines by means of
// [http.ResponseController]. The lock of a hijacked connection is released when
// the handler returns, like any other.
package lockhttp
