package lockhttp

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
)

// response notes whether the handler has begun to answer. What it has no method
// for, an [http.ResponseController] finds behind it.
type response struct {
	http.ResponseWriter
	written bool // the status is decided, or the connection somebody else's
}

// Unwrap is for [http.ResponseController].
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader begins the answer, unless it only informs (1xx).
func (w *response) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.written = true
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write begins the answer, even with nothing.
func (w *response) Write(b []byte) (int, error) {
	w.written = true
	return w.ResponseWriter.Write(b)
}

// WriteString spares a copy.
func (w *response) WriteString(s string) (int, error) {
	w.written = true
	return io.WriteString(w.ResponseWriter, s)
}

// ReadFrom lets io.Copy use what the connection can do, such as sendfile.
func (w *response) ReadFrom(src io.Reader) (int64, error) {
	n, err := io.Copy(w.ResponseWriter, src)
	w.written = w.written || n > 0
	return n, err
}

// FlushError begins the answer.
func (w *response) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	w.written = w.written || !errors.Is(err, http.ErrNotSupported)
	return err
}

// Flush is FlushError for those who ask for an [http.Flusher].
func (w *response) Flush() { _ = w.FlushError() }

// Hijack takes the connection over: nothing can be answered any more.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.written = w.written || err == nil
	return conn, rw, err
}
