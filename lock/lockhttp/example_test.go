package lockhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
	"github.com/getorprime/getorprime/lock/lockhttp"
)

// rdb is the client of all examples.
var rdb redis.UniversalClient = redistest.Embedded()

// show makes a request and prints what came of it.
func show(h http.Handler, method, path, body string, header ...string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	text := strings.TrimSpace(w.Body.String())
	if w.Header().Get("Content-Type") == "application/problem+json" {
		var problem struct{ Detail string }
		if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil {
			log.Fatal(err)
		}
		text = problem.Detail
	}
	if after := w.Header().Get("Retry-After"); after != "" {
		text = "retry after " + after + " s: " + text
	}
	fmt.Println(w.Code, text)
}

// ship is what only one request at a time may do to an order.
func ship(w http.ResponseWriter, r *http.Request) {
	meanwhile()
	fmt.Fprintln(w, "shipped", r.PathValue("id"))
}

// meanwhile is what happens while an order is shipped.
var meanwhile = func() {}

func guardOrders(mux *http.ServeMux, rdb redis.UniversalClient) error {
	locker, err := lock.New(rdb, nil)
	if err != nil {
		return err
	}
	guard, err := lockhttp.Middleware(locker, lockhttp.PathKey("id"), &lockhttp.Options{Prefix: "order:"})
	if err != nil {
		return err
	}
	mux.Handle("POST /orders/{id}/ship", guard(http.HandlerFunc(ship)))
	return nil
}

func Example() {
	mux := http.NewServeMux()
	if err := guardOrders(mux, rdb); err != nil {
		log.Fatal(err)
	}
	meanwhile = func() { show(mux, "POST", "/orders/7/ship", "") }
	show(mux, "POST", "/orders/7/ship", "")
	// Output:
	// 423 retry after 1 s: This resource is in use. Nothing was done; try again later.
	// 200 shipped 7
}

// A job that acquires the lock of the same name keeps requests out as well. Those
// that only read need no lock.
func ExampleMiddleware() {
	locker, err := lock.New(rdb, &lock.Options{Namespace: "shop:"})
	if err != nil {
		log.Fatal(err)
	}
	guard, err := lockhttp.Middleware(locker, lockhttp.PathKey("id"), &lockhttp.Options{
		Prefix: "stock:",
		Status: http.StatusConflict,
		Wait:   10 * time.Millisecond,
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/stock/{id}", guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, r.Method, r.PathValue("id"))
	})))

	ctx := context.Background()
	counting, err := locker.Acquire(ctx, "stock:7", nil) // somebody counts what is there
	if err != nil {
		log.Fatal(err)
	}
	show(mux, "GET", "/stock/7", "")
	show(mux, "PUT", "/stock/7", "")
	if err := counting.Release(ctx); err != nil {
		log.Fatal(err)
	}
	show(mux, "PUT", "/stock/7", "")
	// Output:
	// 200 GET 7
	// 409 retry after 1 s: This resource is in use. Nothing was done; try again later.
	// 200 PUT 7
}

// A fence lets the database refuse a holder that is late: it lost its lock while
// it was paused, and somebody else has written since.
func Example_fence() {
	locker, err := lock.New(rdb, nil)
	if err != nil {
		log.Fatal(err)
	}
	guard, err := lockhttp.Middleware(locker, lockhttp.PathKey("id"), &lockhttp.Options{Prefix: "page:", Fenced: true})
	if err != nil {
		log.Fatal(err)
	}
	var newest int64 // in the database, beside the page
	mux := http.NewServeMux()
	mux.Handle("PUT /pages/{id}", guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fence, err := lock.LeaseFrom(r.Context()).Fence(r.Context())
		if err != nil || fence <= newest {
			http.Error(w, "too late", http.StatusConflict)
			return
		}
		newest = fence
		fmt.Fprintln(w, "saved")
	})))
	show(mux, "PUT", "/pages/7", "")
	show(mux, "PUT", "/pages/7", "")
	// Output:
	// 200 saved
	// 200 saved
}

// serveLocked serves POST /do/{id} for each key given, and prints under which lock.
func serveLocked(key lockhttp.KeyFunc) http.Handler {
	locker, err := lock.New(rdb, nil)
	if err != nil {
		log.Fatal(err)
	}
	guard, err := lockhttp.Middleware(locker, key, nil)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /do/{id}", guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "locked %s, read %s", lock.LeaseFrom(r.Context()).Name(), body)
	})))
	return mux
}

func ExamplePathKey() {
	h := serveLocked(lockhttp.PathKey("id"))
	show(h, "POST", "/do/7", "nothing")
	// Output:
	// 200 locked http:7, read nothing
}

func ExampleHeaderKey() {
	h := serveLocked(lockhttp.HeaderKey("Tenant-Id"))
	show(h, "POST", "/do/7", "nothing", "Tenant-Id", "acme")
	show(h, "POST", "/do/7", "nothing")
	// Output:
	// 200 locked http:acme, read nothing
	// 400 The header "Tenant-Id" is missing.
}

func ExampleJSONKey() {
	h := serveLocked(lockhttp.JSONKey("order", "id"))
	show(h, "POST", "/do/it", `{"order": {"id": 7, "qty": 2}}`)
	show(h, "POST", "/do/it", `{"order": {"qty": 2}}`)
	show(h, "POST", "/do/it", `{"order": {"id": 7, "ID": 8}}`)
	// Output:
	// 200 locked http:7, read {"order": {"id": 7, "qty": 2}}
	// 400 The field "order.id" of the body is missing.
	// 400 The field "order.id" of the body is given more than once.
}

func ExampleJSONKeyLimit() {
	h := serveLocked(lockhttp.JSONKeyLimit(16, "id"))
	show(h, "POST", "/do/it", `{"id": "7"}`)
	show(h, "POST", "/do/it", `{"id": "7", "qty": 2}`)
	// Output:
	// 200 locked http:7, read {"id": "7"}
	// 413 The body is longer than 16 bytes.
}

// A key of one's own may come from anywhere, and say how to refuse who has none.
func ExampleKeyError() {
	account := func(r *http.Request) (string, error) {
		user, _, ok := r.BasicAuth()
		if !ok {
			return "", &lockhttp.KeyError{Status: http.StatusUnauthorized, Detail: "Who are you?", Err: errors.New("no credentials")}
		}
		return user, nil
	}
	h := serveLocked(account)
	show(h, "POST", "/do/7", "nothing", "Authorization", "Basic YWRhOnNlY3JldA==")
	show(h, "POST", "/do/7", "nothing")
	// Output:
	// 200 locked http:ada, read nothing
	// 401 Who are you?
}
