package lockhttp

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// What is written down.
const (
	noKey       = "lockhttp: a request has no key"
	notAcquired = "lockhttp: a lock could not be asked for"
	notReleased = "lockhttp: a lock was lost or not released"
)

// quiet is how long a message is not repeated: an outage that refuses thousands of
// requests is one fact.
const quiet = time.Second

// journal logs each kind of message at most once in a while.
type journal struct {
	logger *slog.Logger

	mu   sync.Mutex // guards what follows
	last map[string]time.Time
	more map[string]int // messages left out since
}

func newJournal(logger *slog.Logger) *journal {
	return &journal{logger: logger, last: map[string]time.Time{}, more: map[string]int{}}
}

// note logs an error of a request, unless one of its kind was logged just now.
func (j *journal) note(r *http.Request, message string, err error) {
	if more, due := j.due(message); due {
		j.logger.ErrorContext(context.WithoutCancel(r.Context()), message,
			"method", r.Method, "pattern", r.Pattern, "error", err, "left_out", more)
	}
}

func (j *journal) due(message string) (more int, due bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if time.Since(j.last[message]) < quiet {
		j.more[message]++
		return 0, false
	}
	more = j.more[message]
	j.last[message], j.more[message] = time.Now(), 0
	return more, true
}
