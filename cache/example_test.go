package cache_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/loader"
)

// rdb is the client of all examples.
var rdb redis.UniversalClient = redistest.Embedded()

type User struct{ Name string }

func loadUser(_ context.Context, id string) (User, error) {
	if id != "7" {
		return User{}, loader.ErrNotFound
	}
	return User{Name: "Ada"}, nil
}

func serve(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

var seconds = regexp.MustCompile(`ttl=\d+`)

// getStatus prints status, Cache-Status without the very seconds, and body.
func getStatus(h http.Handler, paths ...string) {
	for _, path := range paths {
		w := serve(h, path)
		fmt.Println(w.Code, seconds.ReplaceAllString(w.Header().Get("Cache-Status"), "ttl=…"))
		fmt.Print(w.Body)
	}
}

func Example_handler() {
	c, err := cache.New(rdb, &cache.Options{Namespace: "shop:", Name: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	users, err := cache.Register(c, "user:", loadUser, &cache.Policy{TTL: time.Minute})
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
	getStatus(mux, "/users/7", "/users/7", "/users/8", "/users/8")
	// Output:
	// 200 shop; fwd=miss; stored; ttl=…
	// hello Ada
	// 200 shop; hit; ttl=…
	// hello Ada
	// 404 shop; fwd=miss; stored; ttl=…; detail="not found"
	// 404 page not found
	// 404 shop; hit; ttl=…; detail="not found"
	// 404 page not found
}
