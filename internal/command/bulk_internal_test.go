package command

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestBulk(t *testing.T) {
	tests := []struct {
		reply, want string
		none        bool
		err         string
		mends       bool // another attempt may help
	}{
		{reply: "$5\r\nhello\r\n", want: "hello"},
		{reply: "$0\r\n\r\n"},
		{reply: "$-1\r\n", none: true},
		{reply: "_\r\n", none: true},
		{reply: "-LOADING Redis is loading the dataset in memory\r\n", none: true, err: "LOADING Redis is loading the dataset in memory", mends: true},
		{reply: "-WRONGTYPE Operation against a key\r\n", none: true, err: "WRONGTYPE Operation against a key"},
		{reply: ":5\r\n", none: true, err: `command: unexpected reply ":5"`, mends: true},
		{reply: "", none: true, err: `command: unexpected reply ""`, mends: true},
		{reply: "$5\r\n", none: true, err: `command: unexpected reply "$5"`, mends: true},
	}
	for _, tt := range tests {
		got, err := bulk([]byte(tt.reply))
		if string(got) != tt.want || (got == nil) != tt.none {
			t.Errorf("bulk(%q) = %q (nil: %v), want %q", tt.reply, got, got == nil, tt.want)
		}
		if text := fmt.Sprint(err); tt.err != "" && text != tt.err || tt.err == "" && err != nil {
			t.Errorf("bulk(%q): %v, want %q", tt.reply, err, tt.err)
		}
		if MayMend(err) != tt.mends {
			t.Errorf("bulk(%q): another attempt may help: %v, want %v", tt.reply, !tt.mends, tt.mends)
		}
	}
	_, err := bulk([]byte("-ERR no\r\n"))
	if _, replied := err.(redis.Error); !replied {
		t.Errorf("%T is not an error of the server", err)
	}
}

func FuzzBulk(f *testing.F) {
	f.Add([]byte("$5\r\nhello\r\n"))
	f.Add([]byte("$-1\r\n"))
	f.Add([]byte("-ERR\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := bulk(b); got != nil && err != nil {
			t.Errorf("bulk(%q) = %q and %v", b, got, err)
		}
		whole := fmt.Appendf(nil, "$%d\r\n%s\r\n", len(b), b)
		if got, err := bulk(whole); !bytes.Equal(got, b) || got == nil || err != nil {
			t.Errorf("bulk(%q) = %q, %v", whole, got, err)
		}
	})
}
