package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Get reads a string with one GET. It returns nil if there is no such key.
//
// go-redis takes the nil reply of a miss for an error and looks into it a dozen
// times, with 17 allocations, a twentieth of what an uncontended miss costs. So a
// single server is sent a raw command, whose reply is read here; hooks see such a
// GET succeed even where the reply is an error. A cluster's client has to see its
// redirections.
func (s *Sender) Get(ctx context.Context, key string) ([]byte, error) {
	if s.redirected {
		return s.getRedirected(ctx, key)
	}
	cmd := redis.NewRawCmd(ctx, "get", key)
	if err := s.Send(ctx, onceRaw{cmd}); err != nil {
		return nil, err
	}
	return bulk(cmd.Val())
}

func (s *Sender) getRedirected(ctx context.Context, key string) ([]byte, error) {
	cmd := redis.NewStringCmd(ctx, "get", key)
	if err := s.Send(ctx, onceString{cmd}); err != nil {
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		return nil, err
	}
	return cmd.Bytes()
}

// bulk reads a reply that is a string, nil or an error
// (https://redis.io/docs/latest/develop/reference/protocol-spec/).
func bulk(reply []byte) ([]byte, error) {
	line, text, _ := bytes.Cut(reply, []byte("\r\n"))
	switch {
	case bytes.HasPrefix(line, []byte("$-")), bytes.HasPrefix(line, []byte("_")):
		return nil, nil
	case bytes.HasPrefix(line, []byte("$")) && len(text) >= 2:
		return text[:len(text)-2], nil
	case bytes.HasPrefix(line, []byte("-")):
		return nil, replyError(line[1:])
	}
	return nil, fmt.Errorf("command: unexpected reply %q", line)
}

// replyError is an error that the server replied. It is a [redis.Error].
type replyError string

// Error is the reply.
func (e replyError) Error() string { return string(e) }

// RedisError marks the error as the server's.
func (replyError) RedisError() {}

// onceRaw is [Once] for a raw command.
type onceRaw struct{ *redis.RawCmd }

// NoRetry tells go-redis to send the command at most once.
func (onceRaw) NoRetry() bool { return true }

// onceString is [Once] for a command that returns a string.
type onceString struct{ *redis.StringCmd }

// NoRetry tells go-redis to send the command at most once.
func (onceString) NoRetry() bool { return true }
