package examples_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/examples"
	"github.com/getorprime/getorprime/internal/redistest"
)

// stock opens the database of a test, with n pieces of a cup.
func stock(tb testing.TB, dir string, n int) *examples.Stock {
	tb.Helper()
	s, err := examples.OpenStock(tb.Context(), dir+"/stock.db")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	if err := s.Put(tb.Context(), "cup", n); err != nil {
		tb.Fatal(err)
	}
	return s
}

func wantLeft(tb testing.TB, s *examples.Stock, want int) {
	tb.Helper()
	if n, err := s.Left(tb.Context(), "cup"); n != want || err != nil {
		tb.Errorf("%d left, %v; want %d", n, err, want)
	}
}

// outcome is what came of an order.
type outcome struct {
	status int
	text   string
}

func order(ctx context.Context, url string) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/stock/cup/orders", nil)
	if err != nil {
		return outcome{}, err
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		return outcome{}, err
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	return outcome{w.StatusCode, strings.TrimSpace(string(text))}, err
}

var (
	sold    = outcome{http.StatusCreated, "sold"}
	soldOut = outcome{http.StatusConflict, "sold out"}
	late    = outcome{http.StatusConflict, "somebody else was faster"}
)

// TestStockEndsAtZero has two processes sell more than there is.
func TestStockEndsAtZero(t *testing.T) {
	const pieces, orders = 25, 40
	site := Site{Redis: redistest.Start(t).Addr(), Dir: t.TempDir(), TTL: time.Minute}
	cups := stock(t, site.Dir, pieces)
	_, here := start(t, site)
	_, there := start(t, site)

	var mu sync.Mutex // guards counts
	counts := map[outcome]int{}
	var wg sync.WaitGroup
	for i := range orders {
		wg.Go(func() {
			got, err := order(t.Context(), []string{here, there}[i%2])
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			counts[got]++
		})
	}
	wg.Wait()
	if counts[sold] != pieces || counts[soldOut] != orders-pieces {
		t.Errorf("%v, want %d sold and %d sold out", counts, pieces, orders-pieces)
	}
	wantLeft(t, cups, 0)
}

// TestLateWriter stops a process while it has the lock, for longer than the lock
// lasts. Somebody else sells meanwhile. What the first one does when it goes on
// must not count.
func TestLateWriter(t *testing.T) {
	site := Site{Redis: redistest.Start(t).Addr(), Dir: t.TempDir(), TTL: 500 * time.Millisecond}
	cups := stock(t, site.Dir, 5)
	_, quick := start(t, site)
	site.Slow = true
	sleeper, slow := start(t, site)

	first := make(chan outcome, 1)
	go func() {
		got, err := order(t.Context(), slow)
		if err != nil {
			t.Error(err)
		}
		first <- got
	}()
	sleeper.Call("Begun", struct{}{}, &struct{}{})
	sleeper.Pause()
	if got, err := order(t.Context(), quick); got != sold || err != nil {
		t.Errorf("while the first stands still: %v, %v; want %v", got, err, sold)
	}
	sleeper.Resume()
	sleeper.Call("Proceed", struct{}{}, &struct{}{})
	if got := <-first; got != late {
		t.Errorf("the late one: %v, want %v", got, late)
	}
	wantLeft(t, cups, 4)
}

func TestTake(t *testing.T) {
	s := stock(t, t.TempDir(), 2)
	steps := []struct {
		name  string
		sku   string
		fence int64
		want  error
	}{
		{"first", "cup", 10, nil},
		{"older fence", "cup", 9, examples.ErrLate},
		{"same fence", "cup", 10, nil},
		{"nothing left", "cup", 11, examples.ErrSoldOut},
		{"unknown", "jug", 12, examples.ErrSoldOut},
	}
	for _, step := range steps {
		if err := s.Take(t.Context(), step.sku, step.fence); !errors.Is(err, step.want) {
			t.Errorf("%s: %v, want %v", step.name, err, step.want)
		}
	}
	wantLeft(t, s, 0)
}
