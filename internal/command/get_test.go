package command_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/getorprime/getorprime/internal/command"
	"github.com/getorprime/getorprime/internal/redistest"
)

func TestGet(t *testing.T) {
	server := redistest.Start(t)
	direct := server.Client(t)
	big := strings.Repeat("big\r\n", 1<<20)
	direct.MSet(t.Context(), "text", "hello\r\n$-1\r\n", "empty", "", "big", big)
	direct.LPush(t.Context(), "list", 1)
	direct.Do(t.Context(), "acl", "setuser", "blind", "on", ">secret", "~text", "+@all")
	tests := []struct {
		key, want string
		none      bool
		err       string
	}{
		{key: "text", want: "hello\r\n$-1\r\n"},
		{key: "empty"},
		{key: "big", want: big},
		{key: "none", none: true},
		{key: "list", none: true, err: "WRONGTYPE"},
		{key: "secret", none: true, err: "NOPERM"},
	}
	for _, protocol := range []int{2, 3} {
		open := dial(t, redis.Options{Addr: server.Addr(), Protocol: protocol})
		blind := dial(t, redis.Options{Addr: server.Addr(), Protocol: protocol, Username: "blind", Password: "secret"})
		for _, tt := range tests {
			client := open
			if tt.err == "NOPERM" {
				client = blind
			}
			got, err := command.NewSender(client, time.Minute).Get(t.Context(), tt.key)
			if string(got) != tt.want || (got == nil) != tt.none {
				t.Errorf("RESP%d: %s is %.30q (nil: %v), want %.30q (nil: %v)", protocol, tt.key, got, got == nil, tt.want, tt.none)
			}
			if (err != nil) != (tt.err != "") || err != nil && !redis.HasErrorPrefix(err, tt.err) {
				t.Errorf("RESP%d: %s: %v, want an error of the server that begins with %q", protocol, tt.key, err, tt.err)
			}
		}
	}
}

func dial(t *testing.T, o redis.Options) *redis.Client {
	client := redis.NewClient(&o)
	t.Cleanup(func() { client.Close() })
	return client
}

// TestGetOnACluster sends the command to a server that has to send it on.
func TestGetOnACluster(t *testing.T) {
	client := redistest.StartCluster(t).Client(t)
	s := command.NewSender(client, time.Minute)
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		if got, err := s.Get(t.Context(), key); got != nil || err != nil {
			t.Errorf("%s, unset, is %q, %v", key, got, err)
		}
		client.Set(t.Context(), key, "value of "+key, 0)
		if got, err := s.Get(t.Context(), key); string(got) != "value of "+key || err != nil {
			t.Errorf("%s is %q, %v", key, got, err)
		}
	}
}
