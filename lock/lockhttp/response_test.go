package lockhttp_test

import (
	"bufio"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock/lockhttp"
)

func TestEmptyHandlerAnswers200(t *testing.T) {
	s := serve(t, guarded(t, open(t, redistest.Start(t).Client(t), nil), nil, func(http.ResponseWriter, *http.Request) {}))
	got := post(t, s, "/things/7")
	wantStatus(t, "an empty handler", got, http.StatusOK)
	if got.body != "" || got.header.Get("Cache-Control") != "" {
		t.Errorf("%+v", got)
	}
}

// TestFlush reads what was flushed while the handler still runs.
func TestFlush(t *testing.T) {
	tests := []struct {
		name  string
		flush func(http.ResponseWriter) error
	}{
		{"controller", func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() }},
		{"flusher", func(w http.ResponseWriter) error { w.(http.Flusher).Flush(); return nil }},
	}
	l := open(t, redistest.Start(t).Client(t), nil)
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			leave := make(chan struct{})
			s := serve(t, guarded(t, l, nil, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "one\n")
				if err := tc.flush(w); err != nil {
					t.Error(err)
				}
				<-leave
				_, _ = io.WriteString(w, "two\n")
			}))
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/things/7", nil)
			if err != nil {
				t.Fatal(err)
			}
			w, err := s.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Body.Close()
			in := bufio.NewReader(w.Body)
			if line, err := in.ReadString('\n'); line != "one\n" || err != nil {
				t.Errorf("%q, %v", line, err)
			}
			close(leave)
			if line, err := in.ReadString('\n'); line != "two\n" || err != nil {
				t.Errorf("%q, %v", line, err)
			}
		})
	}
}

// TestHijack takes the connection over. A lock that is lost meanwhile must not be
// answered with more: net/http would complain.
func TestHijack(t *testing.T) {
	client := redistest.Start(t).Client(t)
	var complaints lines
	h := guarded(t, open(t, client, nil), &lockhttp.Options{Logger: quiet}, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if r.URL.RawQuery == "lose" {
			client.Del(r.Context(), "lock:{http:7}")
		}
		_, _ = rw.WriteString("HTTP/1.1 299 Mine\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		_ = rw.Flush()
	})
	done := make(chan struct{}, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		done <- struct{}{}
	}))
	s.Config.ErrorLog = log.New(&complaints, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	for _, path := range []string{"/things/7", "/things/7?lose"} {
		wantStatus(t, "hijacked", post(t, s, path), 299)
		receive(t, done, "the handler ends")
		wantFree(t, client, "7")
	}
	if got := complaints.all(); got[0] != "" {
		t.Errorf("net/http says %q", got)
	}
}

func TestDeadlines(t *testing.T) {
	ended := make(chan struct{})
	s := serve(t, guarded(t, open(t, redistest.Start(t).Client(t), nil), nil, func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		c := http.NewResponseController(w)
		past := time.Now().Add(-time.Second)
		if err := errors.Join(c.SetReadDeadline(past), c.SetWriteDeadline(time.Now().Add(bound))); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadAll(r.Body); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("reading past the deadline: %v", err)
		}
		if err := c.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		if err := c.SetWriteDeadline(past); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, "late")
	}))
	out, in := io.Pipe()
	got := make(chan answer, 1)
	go func() { got <- send(t.Context(), s, http.MethodPost, "/things/7", out) }()
	receive(t, ended, "the handler ends")
	_ = in.Close() // the client waits for it
	if a := receive(t, got, "the answer"); a.err == nil {
		t.Errorf("written past the deadline: %+v", a)
	}
}

// TestHTTP2 has streams instead of connections, which cannot be hijacked.
func TestHTTP2(t *testing.T) {
	s := httptest.NewUnstartedServer(guarded(t, open(t, redistest.Start(t).Client(t), nil), nil, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if _, _, err := c.Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("Hijack: %v", err)
		}
		w.Header().Set("Version", r.Proto)
		if err := c.Flush(); err != nil {
			t.Errorf("Flush: %v", err)
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	got := post(t, s, "/things/7")
	wantStatus(t, "over HTTP/2", got, http.StatusOK)
	if v := got.header.Get("Version"); v != "HTTP/2.0" {
		t.Errorf("it was %q", v)
	}
}

// bare is a ResponseWriter that can do the least.
type bare struct {
	header http.Header
	status int
	text   strings.Builder
}

func (b *bare) Header() http.Header         { return b.header }
func (b *bare) WriteHeader(status int)      { b.status = status }
func (b *bare) Write(p []byte) (int, error) { return b.text.Write(p) }

func TestWriterThatCanDoTheLeast(t *testing.T) {
	client := redistest.Start(t).Client(t)
	var conn net.Conn
	h := guarded(t, open(t, client, nil), nil, func(w http.ResponseWriter, r *http.Request) {
		var err error
		c := http.NewResponseController(w)
		if conn, _, err = c.Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("Hijack: %v, %v", conn, err)
		}
		if err := c.Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("Flush: %v", err)
		}
		client.Del(r.Context(), "lock:{http:7}") // nothing was written by all that
	})
	w := &bare{header: http.Header{}}
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/things/7", nil))
	if w.status != http.StatusServiceUnavailable || !strings.Contains(w.text.String(), "TypeLost") {
		t.Errorf("%d %s", w.status, w.text.String())
	}
}
