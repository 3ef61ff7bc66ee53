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
	doDrive   = "drive"   // call over some time, and report when that is over
)

// order is a line from the bench to a worker. It carries the server's address, password included: standard input, unlike arguments and
// environment, is seen by nobody else.
type order struct {
	Do string `json:"do"`

	Open *setup `json:"open,omitempty"` // doOpen

	ID      string        `json:"id,omitempty"` // doCall, as the next five
	Callers int           `json:"callers,omitempty"`
	Load    time.Duration `json:"load,omitempty"`
	Mode    origin.Mode   `json:"mode,omitempty"`
	Bound   time.Duration `json:"bound,omitempty"`
	Post    bool          `json:"post,omitempty"` // to the worker's endpoint, instead of reading ID

	Drive *drive `json:"drive,omitempty"` // doDrive

	At monotime.Instant `json:"at,omitempty"` // doRelease, doDrive
}

// setup is what a worker is made of.
type setup struct {
	RedisURL    string        `json:"redis_url"`
	Namespace   string        `json:"namespace"`
	Strategy    string        `json:"strategy"`
	Board       string        `json:"board"` // path
	TTL         time.Duration `json:"ttl"`
	LoadTimeout time.Duration `json:"load_timeout"`
	Budget      time.Duration `json:"budget"`
	Seed        uint64        `json:"seed"`
	Process     int           `json:"process"`
	Processes   int           `json:"processes"`
}

// drive is what the callers of a worker do over some time.
type drive struct {
	Keys     int              `json:"keys"`     // ids are those of the records below it, each as likely
	Rate     float64          `json:"rate"`     // calls per second, at instants that chance chooses; 0: Callers call without a pause
	Sweep    bool             `json:"sweep"`    // instead, the Callers of all workers together read each key once
	Callers  int              `json:"callers"`  // calls at once; with a Rate, those beyond are turned away as errors
	Duration time.Duration    `json:"duration"` // no call begins later
	Load     time.Duration    `json:"load"`
	Patience time.Duration    `json:"patience"` // a call that takes longer is cut off
	Blocked  time.Duration    `json:"blocked"`  // a call that takes as long has waited for a load
	Writes   float64          `json:"writes"`   // changes of the data per second, each followed by an invalidation
	Until    monotime.Instant `json:"until"`    // if set, what is loaded before is valid until then
	ByHand   bool             `json:"by_hand"`  // every other invalidation is a plain DEL
}

// reply is a line from a worker to the bench.
type reply struct {
	Error  string  `json:"error,omitempty"` // the order could not be obeyed
	Result *result `json:"result,omitempty"`
}

// result is what one worker saw of its callers.
type result struct {
	Answers    []string      `json:"answers"` // digests, each once; of a herd
	Calls      int           `json:"calls"`
	Errors     int           `json:"errors"`
	FirstError string        `json:"first_error,omitempty"`
	Stale      int           `json:"stale"`   // answers older than what was invalidated before the call
	Blocked    int           `json:"blocked"` // calls that took long
	Oldest     time.Duration `json:"oldest"`  // age of the oldest answer, since its load began
	Loads      []origin.Load `json:"loads"`   // of a herd

	// Latencies are a sample of the calls' durations; Slowest is the longest of all, Last when the last call returned.
	Latencies []time.Duration  `json:"latencies"`
	Slowest   time.Duration    `json:"slowest"`
	Last      monotime.Instant `json:"last"`

	// One number for each step of time: calls begun, ended, failed, and stale.
	Began  []int `json:"began"`
	Ended  []int `json:"ended"`
	Failed []int `json:"failed"`
	Staled []int `json:"staled"`
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
