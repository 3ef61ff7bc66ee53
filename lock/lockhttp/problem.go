package lockhttp

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// The types of problem (RFC 9457) that a client may branch on: after the first two
// it may simply try again, after the last it has to look first.
const (
	// TypeLocked says that others hold the resource. The handler was not called.
	TypeLocked = types + "TypeLocked"
	// TypeUnavailable says that it could not be found out whether others hold the
	// resource. The handler was not called.
	TypeUnavailable = types + "TypeUnavailable"
	// TypeLost says that the lock was lost while the request was handled: what it
	// did, if anything, is unknown.
	TypeLost = types + "TypeLost"
)

const types = "https://pkg.go.dev/github.com/getorprime/getorprime/lock/lockhttp#"

// details is the body of an answer (RFC 9457).
type details struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

func locked(status int) details {
	return details{TypeLocked, "Resource in use", status, "This resource is in use. Nothing was done; try again later."}
}

var unavailable = details{
	TypeUnavailable, "Lock unavailable", http.StatusServiceUnavailable,
	"The lock of this resource is not available just now. Nothing was done; try again later.",
}

var lost = details{
	TypeLost, "Lock lost", http.StatusServiceUnavailable,
	"The lock of this resource was lost while the request was handled. It may have taken effect or not.",
}

// problemOf is a problem that its status tells enough about.
func problemOf(status int, detail string) details {
	return details{"about:blank", http.StatusText(status), status, detail}
}

// reply answers with a problem. retryAfter is in seconds; 0: the client is not
// told to come back.
func reply(w http.ResponseWriter, p details, retryAfter int) {
	body, _ := json.Marshal(p) // strings and a number
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(retryAfter))
	}
	w.WriteHeader(p.Status)
	// A client that has left does not read it.
	_, _ = w.Write(append(body, '\n'))
}

// seconds returns d in whole seconds, rounded up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
