package lockhttp_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock"
	"github.com/getorprime/getorprime/lock/lockhttp"
)

// echo answers with the name of the lock it runs under and the body.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	_, _ = io.WriteString(w, lock.LeaseFrom(r.Context()).Name()+"\n"+string(body))
}

func fixed(key string, err error) lockhttp.KeyFunc {
	return func(*http.Request) (string, error) { return key, err }
}

// TestKeys sends requests to /things/{id}, /tree/{path...} and to /outside, which
// is around the mux.
func TestKeys(t *testing.T) {
	l := open(t, redistest.Start(t).Client(t), nil)
	boom := errors.New("the database of keys is down")
	tests := []struct {
		name   string
		key    lockhttp.KeyFunc
		path   string
		header http.Header
		status int
		want   string // the lock's name, or a part of the problem
	}{
		{"path", lockhttp.PathKey("id"), "/things/7", nil, 200, "http:7"},
		{"escaped path", lockhttp.PathKey("id"), "/things/a%2Fb%7D", nil, 200, "http:a/b}"},
		{"brace first", lockhttp.PathKey("id"), "/things/%7D", nil, 200, "http:}"},
		{"rest of the path", lockhttp.PathKey("path"), "/tree/a/b", nil, 200, "http:a/b"},
		{"no rest of the path", lockhttp.PathKey("path"), "/tree/", nil, 400, "where \\\"path\\\" is expected"},
		{"another path value", lockhttp.PathKey("name"), "/things/7", nil, 500, "\\\"name\\\" is empty"},
		{"outside the mux", lockhttp.PathKey("id"), "/outside", nil, 500, "must be inside the mux"},
		{"header", lockhttp.HeaderKey("tenant-id"), "/outside", http.Header{"Tenant-Id": {"acme"}}, 200, "http:acme"},
		{"no header", lockhttp.HeaderKey("Tenant-Id"), "/outside", nil, 400, "is missing"},
		{"empty header", lockhttp.HeaderKey("Tenant-Id"), "/outside", http.Header{"Tenant-Id": {""}}, 400, "is missing"},
		{"two headers", lockhttp.HeaderKey("Tenant-Id"), "/outside", http.Header{"Tenant-Id": {"a", "b"}}, 400, "more than once"},
		{"own", fixed("all", nil), "/outside", nil, 200, "http:all"},
		{"own, empty", fixed("", nil), "/outside", nil, 500, "empty key"},
		{"own, the longest", fixed(strings.Repeat("k", 1024), nil), "/outside", nil, 200, "http:kkk"},
		{"own, too long", fixed(strings.Repeat("k", 1025), nil), "/outside", nil, 400, "longer than 1024"},
		{"own, fails", fixed("7", boom), "/outside", nil, 500, "log says why"},
		{"own, refuses", fixed("7", &lockhttp.KeyError{Detail: "No."}), "/outside", nil, 400, "No."},
		{"own, forbids", fixed("7", &lockhttp.KeyError{Status: 403, Detail: "No.", Err: boom}), "/outside", nil, 403, "No."},
		{"own, no status", fixed("7", &lockhttp.KeyError{Status: 200, Detail: "No."}), "/outside", nil, 500, "No."},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var text lines
			guard, err := lockhttp.Middleware(l, tc.key, &lockhttp.Options{Logger: slog.New(slog.NewTextHandler(&text, nil))})
			if err != nil {
				t.Fatal(err)
			}
			mux := http.NewServeMux()
			mux.Handle("/things/{id}", guard(http.HandlerFunc(echo)))
			mux.Handle("/tree/{path...}", guard(http.HandlerFunc(echo)))
			s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/outside" {
					guard(http.HandlerFunc(echo)).ServeHTTP(w, r)
					return
				}
				mux.ServeHTTP(w, r)
			}))
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+tc.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tc.header != nil {
				r.Header = tc.header
			}
			got := roundTrip(s, r)
			if !strings.Contains(got.body, tc.want) || strings.Contains(got.body, boom.Error()) {
				t.Errorf("body %q, want %q in it", got.body, tc.want)
			}
			if tc.status == http.StatusOK {
				wantStatus(t, tc.path, got, tc.status)
				return
			}
			wantProblem(t, tc.path, got, tc.status, "about:blank")
			if logged := strings.Contains(text.text.String(), "has no key"); logged != (tc.status >= 500) {
				t.Errorf("logged: %v, %s", logged, text.text.String())
			}
		})
	}
}

func TestKeyError(t *testing.T) {
	boom := errors.New("boom")
	err := error(&lockhttp.KeyError{Detail: "No.", Err: boom})
	if got := err.Error(); got != "lockhttp: No.: boom" || !errors.Is(err, boom) {
		t.Errorf("%q, wraps its cause: %v", got, errors.Is(err, boom))
	}
	if got := (&lockhttp.KeyError{Detail: "No."}).Error(); got != "lockhttp: No." {
		t.Errorf("%q", got)
	}
}
