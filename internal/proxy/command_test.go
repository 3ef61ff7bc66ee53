package proxy

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestCommands(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"array", "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", []string{`["GET" "k"]`}},
		{"two", "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nTIME\r\n", []string{`["PING"]`, `["TIME"]`}},
		{"empty argument", "*2\r\n$3\r\nGET\r\n$0\r\n\r\n", []string{`["GET" ""]`}},
		{"argument with line ends", "*1\r\n$4\r\n\r\n\r\n\r\n", []string{`["\r\n\r\n"]`}},
		{"inline", "SET k v\r\nPING\n", []string{`["SET" "k" "v"]`, `["PING"]`}},
		{"nothing", "\r\n*0\r\n*-1\r\n", []string{`[]`, `[]`, `[]`}},
		{"cut short", "*2\r\n$3\r\nGET\r\n$5\r\nk\r\n", nil},
		{"not a string", "*1\r\n:3\r\n", nil},
		{"no number", "*x\r\n", nil},
		{"negative length", "*1\r\n$-1\r\n", nil},
		{"too long", fmt.Sprintf("*1\r\n$%d\r\n", maxBulk+1), nil},
		{"too many", fmt.Sprintf("*%d\r\n", maxArgs+1), nil},
		{"endless line", strings.Repeat("a", maxLine+1), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, cmd := range readAll(c.in) {
				got = append(got, fmt.Sprintf("%q", cmd.args))
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("read %v, want %v", got, c.want)
			}
		})
	}
}

// readAll returns the commands up to the first error.
func readAll(in string) []command {
	r := newCommandReader(strings.NewReader(in))
	var all []command
	for {
		cmd, err := r.next()
		if err != nil {
			return all
		}
		all = append(all, cmd)
	}
}

func FuzzCommands(f *testing.F) {
	f.Add("*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n")
	f.Add("*1\r\n$536870912\r\nab")
	f.Add("*-1\r\n$\r\n")
	f.Fuzz(func(t *testing.T, in string) {
		var raw []byte
		for _, cmd := range readAll(in) {
			raw = append(raw, cmd.raw...)
			for _, arg := range cmd.args {
				if !bytes.Contains(cmd.raw, arg) {
					t.Errorf("argument %q is not in %q", arg, cmd.raw)
				}
			}
		}
		if !strings.HasPrefix(in, string(raw)) {
			t.Errorf("forwards %q, which is no beginning of %q", raw, in)
		}
	})
}
