package lockhttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/getorprime/getorprime/internal/redistest"
)

// BenchmarkMiddleware compares a guarded handler with the lock alone: what is
// between them is the middleware's own cost, and the requests'.
func BenchmarkMiddleware(b *testing.B) {
	l := open(b, redistest.Start(b).Client(b), nil)
	h := guarded(b, l, nil, func(http.ResponseWriter, *http.Request) {})
	request := func(b *testing.B, want int) {
		b.ReportAllocs()
		for b.Loop() {
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/things/7", nil)); w.Code != want {
				b.Fatal(w.Code, w.Body)
			}
		}
	}
	b.Run("let in", func(b *testing.B) { request(b, http.StatusOK) })
	b.Run("refused", func(b *testing.B) {
		held, err := l.Acquire(context.Background(), "http:7", nil)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = held.Release(context.Background()) }()
		request(b, http.StatusLocked)
	})
	b.Run("lock alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			held, err := l.TryAcquire(context.Background(), "http:7", nil)
			if err != nil {
				b.Fatal(err)
			}
			if err := held.Release(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
