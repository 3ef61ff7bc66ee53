package cache_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/internal/redisembed"
	"github.com/getorprime/getorprime/loader"
)

// startEmbedded starts the examples' server at its first use.
var startEmbedded = sync.OnceValues(redisembed.Start)

// rdb is the client of all examples.
var rdb redis.UniversalClient = redis.NewClient(&redis.Options{
	Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
		server, err := startEmbedded()
		if err != nil {
			return nil, err
		}
		var d net.Dialer
		return d.DialContext(ctx, network, server.Addr())
	},
})

type User struct{ Name string }

func loadUser(_ context.Context, id string) (User, error) {
	if id != "7" {
		return User{}, loader.ErrNotFound
	}
	return User{Name: "Ada"}, nil
}

// serve asks for a user twice and for one that does not exist.
func serve(h http.Handler) {
	for _, path := range []string{"/users/7", "/users/7", "/users/8"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Println(w.Code, w.Header().Get("Cache-Status"))
		fmt.Print(w.Body)
	}
}

func Example_handler() {
	c, err := cache.New(rdb, nil) // rdb is a redis.UniversalClient; nil takes the defaults
	if err != nil {
		log.Fatal(err)
	}
	users, err := cache.Register(c, "user:", loadUser, &cache.Policy{TTL: time.Minute, Jitter: -1})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) {
		u, err := users.Fetch(r.Context(), r.PathValue("id"))
		w.Header().Set("Cache-Status", u.CacheStatus())
		switch {
		case errors.Is(err, loader.ErrNotFound):
			http.NotFound(w, r)
		case errors.Is(err, cache.ErrUnavailable):
			w.Header().Set("Retry-After", "1")
			http.Error(w, "try again", http.StatusServiceUnavailable)
		case err != nil:
			http.Error(w, "cannot load the user", http.StatusInternalServerError)
		default:
			fmt.Fprintln(w, "hello", u.Value.Name)
		}
	})
	serve(mux)
	// Output:
	// 200 getorprime; fwd=miss; stored; ttl=60
	// hello Ada
	// 200 getorprime; hit; ttl=59
	// hello Ada
	// 404 getorprime; fwd=miss; stored; ttl=10; detail="not found"
	// 404 page not found
}
