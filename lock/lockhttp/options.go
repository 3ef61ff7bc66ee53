package lockhttp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/getorprime/getorprime/lock"
)

// Options says how requests are kept apart. The zero value of each field stands
// for its default; nil is all defaults.
type Options struct {
	// Prefix begins the lock's name, and the key ends it. It tells kinds of
	// resource apart, which may have keys in common: "order:". Default: "http:".
	Prefix string
	// Methods are those of the requests that need the lock. Default: POST, PUT,
	// PATCH, DELETE.
	Methods []string
	// Status is that of a request that is refused because others hold the
	// resource: 409, 423 or 429. Default: 423.
	Status int
	// Wait is how long a request waits for others before it is refused. Default:
	// 0, not at all.
	Wait time.Duration
	// TTL is how long the lock outlives a server that dies; while the handler runs
	// it is renewed. From 10 ms to 24 h. Default: the locker's.
	TTL time.Duration
	// MaxHold ends the lock that long after it was asked for, though the handler
	// still runs: the context of the request is cancelled, and others get in.
	// Default: 0, never.
	MaxHold time.Duration
	// Holders is how many requests may have the resource at once, up to 10 000.
	// All who use the lock have to agree on it. Default: 1.
	Holders int
	// Fenced gets the fence along with the lock, in the same round trip, for
	// handlers that ask for it. Default: false, it takes one of its own.
	Fenced bool
	// FenceHeader is the header in which a response bears the fence under which
	// its request was handled, for clients that write elsewhere because of it. It
	// implies Fenced; the handler may remove it. Default: "", none.
	FenceHeader string
	// RetryAfter is what those who are refused are told to wait, in whole seconds,
	// rounded up. Default: the smoothed time for which the handlers of this
	// middleware held a lock lately, and 1 s when Redis failed.
	RetryAfter time.Duration
	// Logger gets what has no other receiver: that Redis failed, that a lock was
	// lost, that the middleware is set up wrongly; each at most once a second.
	// Default: [slog.Default].
	Logger *slog.Logger
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Prefix == "" {
		d.Prefix = "http:"
	}
	d.Methods = slices.Clone(d.Methods)
	if d.Methods == nil {
		d.Methods = []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	}
	if d.Status == 0 {
		d.Status = http.StatusLocked
	}
	if d.Holders == 0 {
		d.Holders = 1
	}
	if d.Logger == nil {
		d.Logger = slog.Default()
	}
	return d
}

// The bounds of TTL and Holders are the locker's.
const (
	minTTL     = 10 * time.Millisecond
	maxTTL     = 24 * time.Hour
	maxHolders = 10_000
)

// validate reports all problems at once.
func (o *Options) validate() error {
	return errors.Join(
		problem("Options.Prefix", o.Prefix, !strings.HasPrefix(o.Prefix, "}"), "must not begin with }"),
		problem("Options.Methods", o.Methods, areMethods(o.Methods), "must name methods, in upper case"),
		problem("Options.Status", o.Status, isRefusal(o.Status), "must be 409, 423 or 429"),
		problem("Options.Wait", o.Wait, o.Wait >= 0, "must not be negative"),
		problem("Options.TTL", o.TTL, o.TTL == 0 || o.TTL >= minTTL && o.TTL <= maxTTL, "must be from 10ms to 24h"),
		problem("Options.MaxHold", o.MaxHold, o.MaxHold >= 0, "must not be negative"),
		problem("Options.Holders", o.Holders, o.Holders >= 1 && o.Holders <= maxHolders, "must be from 1 to 10000"),
		problem("Options.FenceHeader", o.FenceHeader, o.FenceHeader == "" || isToken(o.FenceHeader), "must be the name of a header"),
		problem("Options.RetryAfter", o.RetryAfter, o.RetryAfter >= 0, "must not be negative"),
	)
}

func problem(field string, value any, ok bool, must string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("lockhttp: %s is %v: %s", field, value, must)
}

func isRefusal(status int) bool {
	return status == http.StatusConflict || status == http.StatusLocked || status == http.StatusTooManyRequests
}

func areMethods(methods []string) bool {
	for _, m := range methods {
		if !isToken(m) || m != strings.ToUpper(m) {
			return false
		}
	}
	return len(methods) > 0
}

// isToken reports whether s may be the name of a method or header (RFC 9110,
// section 5.6.2).
func isToken(s string) bool {
	for _, c := range []byte(s) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && !(c >= '0' && c <= '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// acquire is what is asked of the locker, for all requests.
func (o *Options) acquire() *lock.AcquireOptions {
	return &lock.AcquireOptions{
		TTL: o.TTL, Wait: o.Wait, MaxHold: o.MaxHold, Holders: o.Holders, Fenced: o.Fenced || o.FenceHeader != "",
	}
}
