package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
)

// Redis's own limits: a line, the number of arguments, the size of one.
const (
	maxLine = 64 << 10
	maxArgs = 1 << 20
	maxBulk = 512 << 20
)

var errProtocol = errors.New("proxy: not a Redis command")

// command is one command as it was sent, and its parts, which lie in raw.
type command struct {
	raw  []byte
	args [][]byte
}

// commandReader cuts a client's byte stream into commands: arrays of bulk
// strings, or lines of words.
type commandReader struct {
	in *bufio.Reader
}

func newCommandReader(in io.Reader) *commandReader {
	return &commandReader{bufio.NewReaderSize(in, maxLine)}
}

// next returns the next command. An empty line, or an array of nothing or
// less, is one without arguments, as in Redis.
func (r *commandReader) next() (command, error) {
	line, err := r.in.ReadSlice('\n')
	if err != nil {
		return command{}, err
	}
	raw := bytes.Clone(line)
	if raw[0] != '*' {
		return command{raw, bytes.Fields(raw)}, nil
	}
	n, err := length(raw, maxArgs)
	if err != nil {
		return command{}, err
	}
	return r.array(raw, n)
}

// span is where an argument lies in a command that may still be moved.
type span struct{ from, to int }

func (r *commandReader) array(raw []byte, n int) (command, error) {
	var spans []span
	for range max(n, 0) {
		line, err := r.in.ReadSlice('\n')
		if err != nil {
			return command{}, err
		}
		if line[0] != '$' {
			return command{}, errProtocol
		}
		size, err := length(line, maxBulk)
		if err != nil || size < 0 {
			return command{}, errProtocol
		}
		raw = append(raw, line...)
		spans = append(spans, span{len(raw), len(raw) + size})
		if raw, err = r.bulk(raw, size+len("\r\n")); err != nil {
			return command{}, err
		}
	}
	args := make([][]byte, 0, len(spans))
	for _, s := range spans {
		args = append(args, raw[s.from:s.to:s.to])
	}
	return command{raw, args}, nil
}

// bulk appends n bytes to raw, each time as many as there are already: n is
// only what the client says.
func (r *commandReader) bulk(raw []byte, n int) ([]byte, error) {
	const piece = 1 << 20
	for n > 0 {
		from := len(raw)
		k := min(n, max(from, piece))
		raw = slices.Grow(raw, k)[:from+k]
		if _, err := io.ReadFull(r.in, raw[from:]); err != nil {
			return nil, err
		}
		n -= k
	}
	return raw, nil
}

// length reads the number after a line's type byte.
func length(line []byte, limit int) (int, error) {
	digits := bytes.TrimRight(line[1:], "\r\n")
	n, err := strconv.Atoi(string(digits))
	if err != nil || n > limit {
		return 0, errProtocol
	}
	return n, nil
}
