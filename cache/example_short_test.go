package cache_test

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/loader"
)

func serveUsers(mux *http.ServeMux, c *cache.Cache) error {
	users, err := cache.Register(c, "user:", loadUser, &cache.Policy{TTL: time.Minute})
	if err != nil {
		return err
	}
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) {
		u, err := users.GetOrPrime(r.Context(), r.PathValue("id")) // the loader gets the id, not the prefix
		if errors.Is(err, loader.ErrNotFound) {
			http.NotFound(w, r)
			return
		}
		respond(w, u, err)
	})
	return nil
}

// respond writes u, or says what went wrong.
func respond(w http.ResponseWriter, u User, err error) {
	switch {
	case errors.Is(err, cache.ErrUnavailable): // no answer from Redis
		w.Header().Set("Retry-After", "1")
		http.Error(w, "try again", http.StatusServiceUnavailable)
	case err != nil:
		http.Error(w, "cannot load the user", http.StatusInternalServerError)
	default:
		fmt.Fprintln(w, "hello", u.Name)
	}
}

func Example() {
	c, err := cache.New(rdb, nil) // nil takes the defaults
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	if err := serveUsers(mux, c); err != nil {
		log.Fatal(err)
	}
	for _, path := range []string{"/users/7", "/users/8"} {
		w := serve(mux, path)
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// 200 hello Ada
	// 404 404 page not found
}
