package bench

import (
	"time"

	"github.com/getorprime/getorprime/internal/bench/monotime"
	"github.com/getorprime/getorprime/internal/origin"
)

// WorkerCommand is the argument that makes the executable a worker: it must then call [Work] on its standard streams.
const WorkerCommand = "bench-worker"

// What a worker can be told to do. It answers each order with one reply.
const (
	doOpen    = "open"    // connect and set the strategy up
	doCall    = "call"    // park the callers
	doRelease = "release" // let them go, and report when all are back
)

// order is a line from the bench to a worker. It carries the server's address, password included: standard input, unlike arguments and
// environment, is seen by nobody else.
type order struct {
	Do string `json:"do"`

	Open *setup `json:"open,omitempty"` // doOpen

	ID      string        `json:"id,omitempty"` // doCall, as the next three
	Callers int           `json:"callers,omitempty"`
	Load    time.Duration `json:"load,omitempty"`
	Bound   time.Duration `json:"bound,omitempty"`

	At monotime.Instant `json:"at,omitempty"` // doRelease
}

// setup is what a worker is made of.
type setup struct {
	RedisURL    string        `json:"redis_url"`
	Namespace   string        `json:"namespace"`
	Strategy    string        `json:"strategy"`
	TTL         time.Duration `json:"ttl"`
	LoadTimeout time.Duration `json:"load_timeout"`
	Seed        uint64        `json:"seed"`
	Process     int           `json:"process"`
	Processes   int           `json:"processes"`
}

// reply is a line from a worker to the bench.
type reply struct {
	Error  string  `json:"error,omitempty"` // the order could not be obeyed
	Result *result `json:"result,omitempty"`
}

// result is what one worker saw of a herd.
type result struct {
	Returned   []monotime.Instant `json:"returned"`
	Answers    []string           `json:"answers"` // digests, each once
	Errors     int                `json:"errors"`
	FirstError string             `json:"first_error,omitempty"`
	Loads      []origin.Load      `json:"loads"`
}

// loadSlack is what a load may take beyond the time it is meant to take, leaseSlack what a caller may wait beyond that: a cache's usual
// bounds for a load and for the lease that protects it.
const (
	loadSlack  = 30 * time.Second
	leaseSlack = 2 * time.Second
)

// loadBound is how long a load may run that is meant to take load.
func loadBound(load time.Duration) time.Duration { return load + loadSlack }

// callBound is how long a caller may take when a load is meant to take load.
func callBound(load time.Duration) time.Duration { return loadBound(load) + leaseSlack }
