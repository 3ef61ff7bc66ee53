package lockhttp_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/lock"
)

// TestRetryAfterIsHowLongHandlersTake lives by a bubble's clock. While a request
// of so many milliseconds is handled, a second one is refused.
func TestRetryAfterIsHowLongHandlersTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := guarded(t, inBubble(t), nil, func(_ http.ResponseWriter, r *http.Request) {
			d, _ := time.ParseDuration(r.URL.Query().Get("for"))
			time.Sleep(d)
		})
		for _, step := range []struct {
			hold, want string
			name       string
		}{
			{"2500ms", "1", "before anything is known"},
			{"2500ms", "3", "2.5 s, rounded up"},
			{"12500ms", "3", "still 2.5 s"},
			{"1ms", "4", "10 s more count for an eighth: 3.75 s"},
		} {
			if got := refused(h, step.hold); got.Code != http.StatusLocked || got.Header().Get("Retry-After") != step.want {
				t.Errorf("%s: %d, Retry-After %q, want %s", step.name, got.Code, got.Header().Get("Retry-After"), step.want)
			}
		}
		for range 60 {
			refused(h, "1ms")
		}
		if got := refused(h, "1ms").Header().Get("Retry-After"); got != "1" {
			t.Errorf("after many short ones: Retry-After %q, want 1", got)
		}
	})
}

// refused returns the answer to a request that comes while another is handled.
func refused(h http.Handler, hold string) *httptest.ResponseRecorder {
	serve := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/things/7?for="+hold, nil))
		return w
	}
	done := make(chan struct{})
	go func() { defer close(done); serve() }()
	synctest.Wait()
	second := serve()
	<-done
	return second
}

// inBubble returns a locker on a Redis in the bubble.
func inBubble(t *testing.T) *lock.Locker {
	server := miniredis.NewMiniRedis()
	t.Cleanup(server.Close)
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:0", PoolSize: 100,
		Dialer: func(context.Context, string, string) (net.Conn, error) { return server.Dial() },
	})
	t.Cleanup(func() { client.Close() })
	return open(t, client, nil)
}
