package examples

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/getorprime/getorprime/lock"
	"github.com/getorprime/getorprime/lock/lockhttp"
)

// Shop takes orders: POST /stock/{sku}/orders.
type Shop struct {
	// Stock is what there is to sell.
	Stock *Stock
	// Pack is what takes its time between an order and its sale, and must not be
	// done for two orders of one article at once.
	Pack func(ctx context.Context, sku string) error
}

// Routes returns the shop's handler. Orders for one article wait for each other,
// up to ten seconds, then they are refused with 423.
func (s *Shop) Routes(locker *lock.Locker) (http.Handler, error) {
	guard, err := lockhttp.Middleware(locker, lockhttp.PathKey("sku"), &lockhttp.Options{
		Prefix: "stock:", Wait: 10 * time.Second, Fenced: true,
	})
	if err != nil {
		return nil, err
	}
	r := chi.NewRouter()
	r.With(guard).Post("/stock/{sku}/orders", s.order)
	return r, nil
}

// order packs and sells one piece. It sells what is packed even if the client has
// left or the lock is lost; the fence tells whether that still may be.
func (s *Shop) order(w http.ResponseWriter, r *http.Request) {
	ctx, sku := r.Context(), chi.URLParam(r, "sku")
	fence, err := lock.LeaseFrom(ctx).Fence(ctx)
	if err == nil {
		err = s.Pack(ctx, sku)
	}
	if err == nil {
		err = s.Stock.Take(context.WithoutCancel(ctx), sku, fence)
	}
	answer(w, err)
}

func answer(w http.ResponseWriter, err error) {
	switch {
	case err == nil:
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "sold\n")
	case errors.Is(err, ErrSoldOut), errors.Is(err, ErrLate):
		http.Error(w, err.Error(), http.StatusConflict)
	default:
		http.Error(w, "the order could not be taken", http.StatusInternalServerError)
	}
}
