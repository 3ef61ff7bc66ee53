package cachetest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/cache/cachetest"
	"github.com/getorprime/getorprime/loader"
)

// T stands in for the *testing.T that an example does not have.
type T struct {
	testing.TB
	cleanups []func()
}

func (*T) Helper()            {}
func (t *T) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (*T) Fatal(args ...any)  { log.Fatal(args...) }
func (*T) Error(args ...any)  { log.Fatal(args...) }

func (t *T) end() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}

func ExampleNew() {
	t := new(T) // in a test: its *testing.T
	defer t.end()

	c, clock := cachetest.New(t, nil)
	loads := 0
	prices, err := cache.Register(c, "price:", func(context.Context, string) (int, error) {
		loads++
		return 100 + loads, nil
	}, &cache.Policy{TTL: 24 * time.Hour, Jitter: -1})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		price, err := prices.GetOrPrime(context.Background(), "tea")
		fmt.Println(price, err)
		clock.Advance(12 * time.Hour)
	}
	// Output:
	// 101 <nil>
	// 101 <nil>
	// 102 <nil>
	// 102 <nil>
}

// After an hour the value is stale: it is the answer for one more day if it
// cannot be replaced.
func ExampleClock_Advance() {
	t := new(T)
	defer t.end()

	c, clock := cachetest.New(t, nil)
	var down error
	rates, err := cache.Register(c, "rate:", func(context.Context, string) (float64, error) {
		return 1.08, down
	}, &cache.Policy{TTL: time.Hour, StaleIfError: 24 * time.Hour, Jitter: -1})
	if err != nil {
		t.Fatal(err)
	}
	show := func() {
		r, err := rates.Fetch(context.Background(), "EUR")
		fmt.Printf("%.2f stale=%v %v\n", r.Value, r.Stale, err)
	}
	show()
	down = errors.New("bank is closed")
	clock.Advance(2 * time.Hour)
	show()
	clock.Advance(23 * time.Hour)
	show()
	// Output:
	// 1.08 stale=false <nil>
	// 1.08 stale=true <nil>
	// 0.00 stale=false bank is closed
}

// A stale value is answered at once, and replaced in the background.
func ExampleClock_Settle() {
	t := new(T)
	defer t.end()

	c, clock := cachetest.New(t, nil)
	version := 0
	pages, err := cache.Register(c, "page:", func(context.Context, string) (string, error) {
		version++
		return fmt.Sprint("version ", version), nil
	}, &cache.Policy{TTL: time.Hour, StaleWhileRevalidate: time.Hour, Jitter: -1})
	if err != nil {
		t.Fatal(err)
	}
	show := func() {
		v, err := pages.GetOrPrime(context.Background(), "home")
		fmt.Println(v, err)
	}
	show()
	clock.Advance(time.Hour)
	show()
	clock.Settle()
	show()
	// Output:
	// version 1 <nil>
	// version 1 <nil>
	// version 2 <nil>
}

// A loader may use the server's time, so that data and TTL grow old together.
func ExampleClock_Now() {
	t := new(T)
	defer t.end()

	_, clock := cachetest.New(t, nil)
	before := clock.Now()
	clock.Advance(36 * time.Hour)
	fmt.Println(clock.Now().Sub(before).Round(time.Hour))
	// Output:
	// 36h0m0s
}

// forecast is a handler under test: it serves forecasts that are made anew every
// six hours, and notes for half an hour that there is none for a place.
func forecast(c *cache.Cache, load loader.Func[string]) (http.Handler, error) {
	forecasts, err := cache.Register(c, "forecast:", load, &cache.Policy{
		TTL: 6 * time.Hour, StaleIfError: 24 * time.Hour, NotFoundTTL: 30 * time.Minute, Jitter: -1,
	})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /forecast/{place}", func(w http.ResponseWriter, r *http.Request) {
		f, err := forecasts.Fetch(r.Context(), r.PathValue("place"))
		switch {
		case errors.Is(err, loader.ErrNotFound):
			http.NotFound(w, r)
		case err != nil:
			http.Error(w, "no forecast now", http.StatusServiceUnavailable)
		case f.Stale:
			w.Header().Set("Warning", `110 - "Response is Stale"`)
			fallthrough
		default:
			fmt.Fprint(w, f.Value)
		}
	})
	return mux, err
}

// TestForecastOverTwoDays is how a handler may be tested over hours of TTL: it
// takes milliseconds.
func TestForecastOverTwoDays(t *testing.T) {
	c, clock := cachetest.New(t, nil)
	forecasts := map[string]string{"Oslo": "snow"}
	var down error
	loads := 0
	handler, err := forecast(c, func(_ context.Context, place string) (string, error) {
		loads++
		f, ok := forecasts[place]
		if !ok && down == nil {
			return "", loader.ErrNotFound
		}
		return f, down
	})
	if err != nil {
		t.Fatal(err)
	}
	want := func(place string, code int, body string, stale bool) {
		t.Helper()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/forecast/"+place, nil))
		isStale := w.Header().Get("Warning") != ""
		if got := w.Body.String(); w.Code != code || code == http.StatusOK && got != body || isStale != stale {
			t.Errorf("%s: got %d %q, stale %v; want %d %q, stale %v", place, w.Code, got, isStale, code, body, stale)
		}
	}

	want("Oslo", 200, "snow", false)
	want("Rome", 404, "", false)
	forecasts["Oslo"], forecasts["Rome"] = "sun", "rain"
	want("Oslo", 200, "snow", false)
	want("Rome", 404, "", false)

	clock.Advance(30 * time.Minute)
	want("Rome", 200, "rain", false)
	clock.Advance(5*time.Hour + 30*time.Minute)
	want("Oslo", 200, "sun", false)

	down = errors.New("no satellite")
	clock.Advance(23 * time.Hour)
	want("Oslo", 200, "sun", true)
	clock.Advance(7 * time.Hour)
	want("Oslo", 503, "", false)

	down, forecasts["Oslo"] = nil, "fog"
	clock.Advance(time.Minute)
	want("Oslo", 200, "fog", false)
	if loads != 7 {
		t.Errorf("%d loads, want 7", loads)
	}
}
