package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/lock"
	"github.com/getorprime/getorprime/lock/lockhttp"
)

// endpoint is a worker's web server, behind which one request at a time may do something: a load.
type endpoint struct {
	server http.Server
	client http.Client
	url    string
	close  []func()
}

// guards are how strategies keep requests apart.
var guards = map[string]func(*worker, *endpoint) (func(http.Handler) http.Handler, error){
	"none": func(*worker, *endpoint) (func(http.Handler) http.Handler, error) {
		return func(h http.Handler) http.Handler { return h }, nil
	},
	"classic":    classicGuard,
	"getorprime": ourGuard,
}

// refused is the answer of a request that was refused as it should be: 423, with a time after which to try again.
const refused = "refused"

// openEndpoint starts the web server.
func openEndpoint(w *worker, strategy string) (*endpoint, error) {
	guard, ok := guards[strategy]
	if !ok {
		return nil, fmt.Errorf("%q guards no endpoint", strategy)
	}
	e := &endpoint{}
	wrap, err := guard(w, e)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e.url = "http://" + listener.Addr().String() + "/order/17"
	e.client.Transport = &http.Transport{MaxIdleConnsPerHost: 100}
	mux := http.NewServeMux()
	mux.Handle("POST /order/{id}", wrap(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if _, err := w.origin.Load(r.Context(), r.PathValue("id")); err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
		}
	})))
	e.server.Handler = mux
	go e.server.Serve(listener)
	return e, nil
}

// Get makes a request. The answer of one that got through is "200 OK"; what is neither that nor refused as it should be is an error.
func (e *endpoint) Get(ctx context.Context, _ string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := e.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	after, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
	switch {
	case answer.StatusCode == http.StatusOK:
		return []byte(answer.Status), nil
	case answer.StatusCode == http.StatusLocked && after >= 1:
		return []byte(refused), nil
	}
	return nil, fmt.Errorf("%s, Retry-After %q", answer.Status, answer.Header.Get("Retry-After"))
}

func (e *endpoint) shut() {
	e.client.CloseIdleConnections()
	_ = e.server.Close()
	for _, c := range e.close {
		c()
	}
}

func ourGuard(w *worker, e *endpoint) (func(http.Handler) http.Handler, error) {
	locker, err := lock.New(w.redis, &lock.Options{Namespace: w.namespace, RedisBudget: loadSlack})
	if err != nil {
		return nil, err
	}
	e.close = append(e.close, func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeBound)
		defer cancel()
		_ = locker.Close(ctx)
	})
	return lockhttp.Middleware(locker, lockhttp.PathKey("id"), nil)
}

// classicGuard is the textbook's: SET NX, and a DEL that removes whoever's lock is there.
func classicGuard(w *worker, _ *endpoint) (func(http.Handler) http.Handler, error) {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			key := w.namespace + "lock:" + r.PathValue("id")
			err := w.redis.SetArgs(r.Context(), key, "1", redis.SetArgs{Mode: "NX", TTL: classicLockTTL}).Err()
			switch {
			case errors.Is(err, redis.Nil):
				rw.Header().Set("Retry-After", "1")
				http.Error(rw, "locked", http.StatusLocked)
			case err != nil:
				http.Error(rw, err.Error(), http.StatusServiceUnavailable)
			default:
				defer w.redis.Del(context.WithoutCancel(r.Context()), key)
				next.ServeHTTP(rw, r)
			}
		})
	}, nil
}

// lockHerd has a hundred clients ask at once for what one at a time may have.
func lockHerd() *Scenario {
	return &Scenario{
		Name:     "lock-herd",
		About:    "100 clients post to one resource of 4 web servers at one instant; one at a time may have it, and the others are to get 423",
		Defaults: Options{Strategies: []string{"none", "classic", "getorprime"}, Processes: 4, Callers: 25, Load: 500 * time.Millisecond},
		Run: func(ctx context.Context, s *Stage) (*Outcome, error) {
			return s.post(ctx, s.Options.Load)
		},
		Promises: []Promise{
			{"G10 one holder", func(o *Outcome) bool { return o.Loads == 1 }},
			{"all others told 423", func(o *Outcome) bool { return o.Errors == 0 }},
		},
		Verdict: func(r *Row) string {
			return fmt.Sprintf("%s of %s got through", count(r.Loads, "request"), count(r.Calls, "request")) + failedWords(r)
		},
	}
}
