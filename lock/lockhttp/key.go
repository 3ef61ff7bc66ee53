package lockhttp

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// maxKey bounds keys, in bytes: clients choose them, and they become names of
// keys in Redis.
const maxKey = 1024

// KeyFunc says which resource a request is for: requests with equal keys exclude
// each other. It runs before the lock is acquired.
//
// Its error is the answer if it is a [*KeyError], and else a 500 whose text is in
// the log only. An empty key is a 500 too, since all requests without one would
// exclude each other; one of more than 1024 bytes is a 400.
type KeyFunc func(*http.Request) (string, error)

// KeyError says that a request has no key, and why.
type KeyError struct {
	// Status is that of the answer, from 400 to 599. Default: 400.
	Status int
	// Detail is what the client is told.
	Detail string
	// Err is the cause, which the client is not told; nil if there is none.
	Err error
}

// Error returns the detail and the cause.
func (e *KeyError) Error() string {
	if e.Err == nil {
		return "lockhttp: " + e.Detail
	}
	return "lockhttp: " + e.Detail + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *KeyError) Unwrap() error { return e.Err }

// status is the answer's, whatever was given.
func (e *KeyError) status() int {
	switch {
	case e.Status == 0:
		return http.StatusBadRequest
	case e.Status < 400 || e.Status > 599:
		return http.StatusInternalServerError
	}
	return e.Status
}

// PathKey takes the key from the path value of that name, as in
// "/orders/{id}" ([http.Request.PathValue]). The middleware has to be inside the
// mux, which sets path values when it has found the handler: a request without
// one is a 500 that says so.
func PathKey(name string) KeyFunc {
	return func(r *http.Request) (string, error) {
		key := r.PathValue(name)
		if key != "" {
			return key, nil
		}
		if strings.Contains(r.Pattern, "{"+name+"...}") { // which may match nothing
			return "", &KeyError{Detail: fmt.Sprintf("The path ends where %q is expected.", name)}
		}
		return "", &KeyError{
			Status: http.StatusInternalServerError,
			Detail: fmt.Sprintf("The path value %q is empty: the middleware must be inside the mux, around a handler whose pattern has {%s}.", name, name),
		}
	}
}

// HeaderKey takes the key from the header of that name. A request without it, or
// with more than one, is a 400.
func HeaderKey(name string) KeyFunc {
	return func(r *http.Request) (string, error) {
		values := r.Header.Values(name)
		switch {
		case len(values) > 1:
			return "", &KeyError{Detail: fmt.Sprintf("The header %q is given more than once.", name)}
		case len(values) == 0 || values[0] == "":
			return "", &KeyError{Detail: fmt.Sprintf("The header %q is missing.", name)}
		}
		return values[0], nil
	}
}

// keyOf returns a key that is fit to be locked.
func (g *guard) keyOf(r *http.Request) (string, error) {
	key, err := g.key(r)
	switch {
	case err != nil:
		return "", err
	case key == "":
		return "", &KeyError{Status: http.StatusInternalServerError, Detail: "The KeyFunc returned an empty key."}
	case len(key) > maxKey:
		return "", &KeyError{Detail: fmt.Sprintf("The key is longer than %d bytes.", maxKey)}
	}
	return key, nil
}

// refuseKey answers a request without a key.
func (g *guard) refuseKey(w http.ResponseWriter, r *http.Request, err error) {
	status, detail := http.StatusInternalServerError, "The key of this resource cannot be told; the server's log says why."
	if known := (*KeyError)(nil); errors.As(err, &known) {
		status, detail = known.status(), known.Detail
	}
	if status >= http.StatusInternalServerError {
		g.log.note(r, noKey, err)
	}
	reply(w, problemOf(status, detail), 0)
}
