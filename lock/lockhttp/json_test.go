package lockhttp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getorprime/getorprime/internal/redistest"
	"github.com/getorprime/getorprime/lock/lockhttp"
)

func TestJSONKey(t *testing.T) {
	l := open(t, redistest.Start(t).Client(t), nil)
	padding := strings.Repeat(" ", 1<<20)
	tests := []struct {
		name   string
		field  string // its names with dots between them
		body   string
		status int
		want   string // the lock's name without the prefix, or a part of the problem
	}{
		{"string", "id", `{"a": [1, {"id": "x"}], "id": "7", "z": null}`, 200, "7"},
		{"escaped string", "id", `{"id": "\u0037\n"}`, 200, "7\n"},
		{"integer", "id", " {\"id\" : 7 }\n", 200, "7"},
		{"negative integer", "id", `{"id": -7}`, 200, "-7"},
		{"long integer", "id", `{"id": 123456789012345678901234567890}`, 200, "123456789012345678901234567890"},
		{"nested", "order.id", `{"id": 1, "order": {"id": "7"}}`, 200, "7"},
		{"the body itself", "", `"7"`, 200, "7"},
		{"as long as allowed", "id", `{"id": "7"}` + padding[11:], 200, "7"},
		{"too long", "id", `{"id": "7"}` + padding[10:], 413, "longer than 1048576 bytes"},
		{"missing", "id", `{"a": 7}`, 400, "is missing"},
		{"missing inside", "order.id", `{"order": {"a": 7}, "id": 7}`, 400, "is missing"},
		{"no object", "id", `["id", "7"]`, 400, "is missing"},
		{"no object inside", "order.id", `{"order": "id"}`, 400, "is missing"},
		{"twice", "id", `{"id": 7, "id": 8}`, 400, "more than once"},
		{"twice, in another case", "id", `{"id": 7, "ID": 8}`, 400, "more than once"},
		{"twice, on the way", "order.id", `{"order": {"id": 7}, "Order": {"id": 8}}`, 400, "more than once"},
		{"only in another case", "id", `{"ID": 7}`, 400, "is missing"},
		{"empty string", "id", `{"id": ""}`, 400, "neither an integer nor"},
		{"null", "id", `{"id": null}`, 400, "neither an integer nor"},
		{"true", "id", `{"id": true}`, 400, "neither an integer nor"},
		{"object", "id", `{"id": {}}`, 400, "neither an integer nor"},
		{"fraction", "id", `{"id": 7.0}`, 400, "neither an integer nor"},
		{"exponent", "id", `{"id": 7e0}`, 400, "neither an integer nor"},
		{"minus zero", "id", `{"id": -0}`, 400, "neither an integer nor"},
		{"no JSON", "id", `id=7`, 400, "is not JSON"},
		{"cut off", "id", `{"id": "7"`, 400, "is not JSON"},
		{"more behind", "id", `{"id": "7"}{"id": "8"}`, 400, "is not JSON"},
		{"empty", "id", ``, 400, "is not JSON"},
		{"long string", "id", `{"id": "` + strings.Repeat("k", 1025) + `"}`, 400, "longer than 1024"},
	}
	for _, tc := range tests {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, chunked %v", tc.name, chunked), func(t *testing.T) {
				field := strings.FieldsFunc(tc.field, func(c rune) bool { return c == '.' })
				s := serve(t, wrap(t, l, lockhttp.JSONKey(field...), nil, echo))
				got := send(t.Context(), s, http.MethodPost, "/things/x", body(tc.body, chunked))
				if tc.status != http.StatusOK {
					wantProblem(t, "refused", got, tc.status, "about:blank")
					if !strings.Contains(got.body, tc.want) {
						t.Errorf("got %s, want %q in it", got.body, tc.want)
					}
					return
				}
				wantStatus(t, "let in", got, tc.status)
				if want := "http:" + tc.want + "\n" + tc.body; got.body != want {
					t.Errorf("the handler had lock and body %.100q, want %.100q", got.body, want)
				}
			})
		}
	}
}

// body returns a body whose length the client tells, or not.
func body(text string, chunked bool) io.Reader {
	if chunked {
		return io.MultiReader(strings.NewReader(text))
	}
	return strings.NewReader(text)
}

func TestJSONKeyLimit(t *testing.T) {
	l := open(t, redistest.Start(t).Client(t), nil)
	const text = `{"id": "7"}`
	tests := []struct {
		name   string
		limit  int64
		outer  int64 // of http.MaxBytesHandler
		status int
	}{
		{"default", 0, 1 << 20, 200},
		{"enough", int64(len(text)), 1 << 20, 200},
		{"too little", int64(len(text)) - 1, 1 << 20, 413},
		{"no bound", 1<<63 - 1, 1 << 20, 200},
		{"stricter outside", 1 << 20, int64(len(text)) - 1, 413},
	}
	for _, tc := range tests {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, chunked %v", tc.name, chunked), func(t *testing.T) {
				h := wrap(t, l, lockhttp.JSONKeyLimit(tc.limit, "id"), nil, echo)
				s := serve(t, http.MaxBytesHandler(h, tc.outer))
				wantStatus(t, text, send(t.Context(), s, http.MethodPost, "/things/x", body(text, chunked)), tc.status)
			})
		}
	}
}

func TestJSONKeyWithoutABody(t *testing.T) {
	_, err := lockhttp.JSONKey("id")(&http.Request{})
	if err == nil || !strings.Contains(err.Error(), "is not JSON") {
		t.Errorf("got %v", err)
	}
}

// TestLockedBeforeTheBodyIsRead has a client that sends its body only when the
// lock is taken.
func TestLockedBeforeTheBodyIsRead(t *testing.T) {
	client := redistest.Start(t).Client(t)
	s := serve(t, guarded(t, open(t, client, nil), nil, echo))
	out, in := io.Pipe()
	got := make(chan answer, 1)
	go func() { got <- send(t.Context(), s, http.MethodPost, "/things/7", out) }()
	redistest.Eventually(t, bound, func() bool { return !free(t, client, "7") }, "the lock is taken")
	wantProblem(t, "a second", post(t, s, "/things/7"), http.StatusLocked, lockhttp.TypeLocked)
	_, _ = io.WriteString(in, "late")
	_ = in.Close()
	if a := receive(t, got, "the answer"); a.body != "http:7\nlate" {
		t.Errorf("%+v", a)
	}
}

// TestBodyIsReadBeforeTheLock has a client that is slow with the body that the key
// is in: nobody waits for it.
func TestBodyIsReadBeforeTheLock(t *testing.T) {
	client := redistest.Start(t).Client(t)
	s := serve(t, wrap(t, open(t, client, nil), lockhttp.JSONKey("id"), nil, echo))
	out, in := io.Pipe()
	got := make(chan answer, 1)
	go func() { got <- send(t.Context(), s, http.MethodPost, "/things/x", out) }()
	_, _ = io.WriteString(in, `{"id": 7`)
	wantStatus(t, "a faster one", send(t.Context(), s, http.MethodPost, "/things/x", strings.NewReader(`{"id":7}`)), http.StatusOK)
	_, _ = io.WriteString(in, `}`)
	_ = in.Close()
	wantStatus(t, "the slow one", receive(t, got, "the answer"), http.StatusOK)
}

// FuzzJSONKey checks that whoever decodes the body with encoding/json works on the
// resource that was locked.
func FuzzJSONKey(f *testing.F) {
	for _, seed := range []string{`{"id":"7"}`, `{"id":7,"ID":8}`, `{"iD":1}`, `{"id":-1}`, `{"id":"\ud800"}`, `{"id":"é"}`, "{\"id\":\"\xff\"}", `{"a":{"id":1},"id":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(text))
		key, err := lockhttp.JSONKey("id")(r)
		if err != nil {
			return
		}
		if again, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(again, text) {
			t.Fatalf("the handler reads %q, %v", again, err)
		}
		var order struct {
			ID any `json:"id"`
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&order); err != nil {
			t.Fatalf("locked %q, but: %v", key, err)
		}
		if got := fmt.Sprint(order.ID); got != key || key == "" {
			t.Fatalf("locked %q, decoded %q", key, got)
		}
	})
}
