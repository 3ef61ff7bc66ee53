package lockhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"strings"
)

// maxBody is how long the bodies are that JSONKey reads, in bytes.
const maxBody = 1 << 20

// JSONKey takes the key from a field of the body, an object in JSON; several
// names lead through objects within objects, none is the body itself. The field
// must be a string that is not empty, or an integer. The handler reads the whole
// body as if nobody had read it before.
//
// A body of more than 1 MiB is a 413; one that is not JSON, or has no such field,
// a 400. So is one that has the field twice, in whichever case of letters:
// handlers that use [encoding/json] read the last one, and another resource would
// be locked than is worked on.
func JSONKey(field ...string) KeyFunc { return JSONKeyLimit(maxBody, field...) }

// JSONKeyLimit is [JSONKey] for bodies of at most limit bytes, each of which is in
// memory while its request waits and is handled. A limit of 0 or less is 1 MiB.
func JSONKeyLimit(limit int64, field ...string) KeyFunc {
	if limit <= 0 {
		limit = maxBody
	}
	limit = min(limit, math.MaxInt64-1) // one more byte is asked for
	return func(r *http.Request) (string, error) {
		body, err := readBody(r, limit)
		if err != nil {
			return "", err
		}
		if !json.Valid(body) {
			return "", &KeyError{Detail: "The body is not JSON."}
		}
		value, err := find(body, field)
		if err != nil {
			return "", &KeyError{Detail: fmt.Sprintf("The field %q of the body %v.", strings.Join(field, "."), err)}
		}
		return value, nil
	}
}

// readBody reads the body and puts it back.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	switch {
	case r.Body == nil:
		return nil, nil
	case r.ContentLength > limit:
		return nil, tooLarge(limit)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if stricter := (*http.MaxBytesError)(nil); errors.As(err, &stricter) {
		return nil, tooLarge(stricter.Limit)
	}
	switch {
	case err != nil:
		return nil, &KeyError{Detail: "The body cannot be read.", Err: err}
	case int64(len(body)) > limit:
		return nil, tooLarge(limit)
	}
	r.Body = restored{bytes.NewReader(body), r.Body}
	return body, nil
}

func tooLarge(limit int64) error {
	return &KeyError{Status: http.StatusRequestEntityTooLarge, Detail: fmt.Sprintf("The body is longer than %d bytes.", limit)}
}

// restored is a body that was read and is read again.
type restored struct {
	*bytes.Reader
	io.Closer
}

// integer is a number that is written in one way only: 7, 7.0 and 7e0 are equal,
// and would be three keys.
var integer = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

// find returns the text of the field in value, which is valid JSON.
func find(value json.RawMessage, field []string) (string, error) {
	for _, name := range field {
		inner, err := member(value, name)
		if err != nil {
			return "", err
		}
		value = inner
	}
	if value = bytes.TrimSpace(value); integer.Match(value) {
		return string(value), nil
	}
	var text string
	if value[0] != '"' || json.Unmarshal(value, &text) != nil || text == "" {
		return "", errors.New("is neither an integer nor a string that is not empty")
	}
	return text, nil
}

// member returns the value of the one member of that name.
func member(object json.RawMessage, name string) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if open, _ := d.Token(); open != json.Delim('{') {
		return nil, errors.New("is missing")
	}
	var found json.RawMessage
	alike := 0
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		if text, _ := key.(string); strings.EqualFold(text, name) {
			alike++
			if text == name {
				found = value
			}
		}
	}
	switch {
	case alike > 1:
		return nil, errors.New("is given more than once")
	case found == nil:
		return nil, errors.New("is missing")
	}
	return found, nil
}
