package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/bench"
	"github.com/getorprime/getorprime/internal/bench/monotime"
	"github.com/getorprime/getorprime/internal/redisembed"
	"github.com/getorprime/getorprime/internal/redistest"
)

// driven is a worker in this process, at the other end of pipes.
type driven struct {
	in    *io.PipeWriter
	out   *json.Decoder
	ended chan error
}

func drive(ctx context.Context, t *testing.T) *driven {
	t.Helper()
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	d := &driven{in: inWrite, out: json.NewDecoder(outRead), ended: make(chan error, 1)}
	go func() { d.ended <- bench.Work(ctx, inRead, outWrite) }()
	t.Cleanup(func() { inWrite.Close(); outRead.Close() })
	return d
}

func (d *driven) tell(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(d.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

type answer struct {
	Error  string
	Result *struct {
		Answers   []string
		Calls     int
		Errors    int
		Stale     int
		Latencies []time.Duration
		Last      monotime.Instant
		Loads     []struct{ Digest string }
	}
}

func (d *driven) ask(t *testing.T, line string) answer {
	t.Helper()
	d.tell(t, line)
	var a answer
	if err := d.out.Decode(&a); err != nil {
		t.Fatalf("no reply to %s: %v", line, err)
	}
	return a
}

func (d *driven) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-d.ended:
		return err
	case <-time.After(15 * time.Second):
		t.Fatal("the worker did not end")
		return nil
	}
}

func openLine(t *testing.T, strategy string) string {
	t.Helper()
	server, err := redisembed.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return fmt.Sprintf(`{"do":"open","open":{"redis_url":"redis://%s","namespace":"t:","board":%q,"strategy":%q,"ttl":%d,"load_timeout":%d,"budget":%d,"processes":1}}`,
		server.Addr(), bench.BoardFile(t), strategy, time.Minute, time.Minute, time.Minute)
}

func TestWorkObeysOrders(t *testing.T) {
	d := drive(t.Context(), t)
	if a := d.ask(t, openLine(t, "none")); a.Error != "" {
		t.Fatal(a.Error)
	}
	if a := d.ask(t, fmt.Sprintf(`{"do":"call","id":"x","callers":3,"load":%d,"bound":%d}`, 20*time.Millisecond, time.Minute)); a.Error != "" {
		t.Fatal(a.Error)
	}
	at := monotime.Now().Add(20 * time.Millisecond)
	a := d.ask(t, fmt.Sprintf(`{"do":"release","at":%d}`, at))
	if a.Result == nil {
		t.Fatalf("no result: %q", a.Error)
	}
	// A caller that is late finds a value; whoever loads answers with what it loaded.
	if r := a.Result; r.Calls != 3 || len(r.Loads) < 1 || len(r.Answers) != len(r.Loads) || r.Errors != 0 {
		t.Fatalf("result %+v, want three callers, an answer for each load, and no error", *r)
	}
	for _, d := range a.Result.Latencies {
		if d < 0 {
			t.Errorf("a caller was back %v before the start", -d)
		}
	}
	a = d.ask(t, fmt.Sprintf(`{"do":"drive","at":%d,"drive":{"keys":3,"callers":2,"duration":%d,"load":%d,"patience":%d,"blocked":%d,"writes":100}}`,
		monotime.Now(), 200*time.Millisecond, time.Millisecond, time.Minute, time.Minute))
	if r := a.Result; r == nil || r.Calls < 10 || r.Errors != 0 {
		t.Fatalf("result %+v, %q; want many calls and no error", r, a.Error)
	}
	d.in.Close()
	if err := d.end(t); err != nil {
		t.Errorf("Work = %v at the end of its input, want nil", err)
	}
}

func TestWorkRefusesOrders(t *testing.T) {
	tests := []struct {
		name, line, want string
	}{
		{"unknown", `{"do":"dance"}`, "does not fit"},
		{"call before open", `{"do":"call"}`, "does not fit"},
		{"drive before open", `{"do":"drive","drive":{}}`, "does not fit"},
		{"release before call", `{"do":"release"}`, "does not fit"},
		{"open without what", `{"do":"open"}`, "does not fit"},
		{"unknown strategy", `{"do":"open","open":{"strategy":"x","redis_url":"redis://127.0.0.1"}}`, "no strategy"},
		{"bad URL", `{"do":"open","open":{"strategy":"none","redis_url":"x://"}}`, "not a URL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := drive(t.Context(), t)
			if got := d.ask(t, tt.line).Error; !strings.Contains(got, tt.want) {
				t.Errorf("error %q, want one that says %q", got, tt.want)
			}
		})
	}
}

func TestWorkEnds(t *testing.T) {
	tests := []struct {
		name string
		end  func(t *testing.T, d *driven, cancel func())
		want string // in the error; "" for none
	}{
		{"at the end of its input", func(_ *testing.T, d *driven, _ func()) { d.in.Close() }, ""},
		{"with its context", func(_ *testing.T, _ *driven, cancel func()) { cancel() }, ""},
		{"at a line that is no order", func(t *testing.T, d *driven, _ func()) { d.tell(t, "hello") }, "cannot read"},
	}
	for _, tt := range tests {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, calls running %v", tt.name, busy), func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				d := drive(ctx, t)
				if busy {
					makeBusy(t, d)
				}
				tt.end(t, d, cancel)
				err := d.end(t)
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Work = %v, want %q", err, tt.want)
				}
			})
		}
	}
}

// makeBusy leaves a caller in a load of an hour.
func makeBusy(t *testing.T, d *driven) {
	t.Helper()
	server := redistest.Start(t)
	client := server.Client(t)
	open := fmt.Sprintf(`{"do":"open","open":{"redis_url":%q,"namespace":"t:","board":%q,"strategy":"classic","ttl":%d,"processes":1}}`, server.URL(), bench.BoardFile(t), time.Minute)
	for _, line := range []string{open, fmt.Sprintf(`{"do":"call","id":"x","callers":1,"load":%d,"bound":%d}`, time.Hour, 2*time.Hour)} {
		if a := d.ask(t, line); a.Error != "" {
			t.Fatal(a.Error)
		}
	}
	// A pipe in memory holds nothing: the last report needs a reader, whatever it is.
	go d.out.Decode(&answer{})
	d.tell(t, fmt.Sprintf(`{"do":"release","at":%d}`, monotime.Now()))
	redistest.Eventually(t, 10*time.Second, func() bool { return client.Exists(t.Context(), "t:lock:x").Val() == 1 }, "the caller loads")
}
