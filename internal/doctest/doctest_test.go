package doctest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/doctest"
)

func TestBlocks(t *testing.T) {
	document := strings.Join([]string{
		"# Title",
		"<!-- example: a.Example -->",
		"",
		"```go",
		"x := 1",
		"```",
		"<!-- not for the block below -->",
		"text between",
		"```console",
		"<!-- inside -->",
		"$ true",
		"```",
		"  ```",
		"  indented",
		"  ```",
	}, "\n")
	got, err := doctest.Blocks(document)
	if err != nil {
		t.Fatal(err)
	}
	want := []doctest.Block{
		{Lang: "go", Mark: "example: a.Example", Text: "x := 1\n", Line: 4},
		{Lang: "console", Text: "<!-- inside -->\n$ true\n", Line: 9},
		{Text: "  indented\n", Line: 13},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestBlocksRefusesOneThatIsNeverClosed(t *testing.T) {
	_, err := doctest.Blocks("text\n```go\nx := 1\n")
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v, want an error that names line 2", err)
	}
}

const exampleFile = `package shop_test

import "fmt"

type user struct {
	name string // shown to everyone
}

func load(id string) user { return user{name: id} }

func Example_greet() {
	u := load("ada")

	// The greeting is for people.
	fmt.Println("hello", u.name)
	// Output: hello ada
}
`

func TestCheckExample(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "shop", "front")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "shop_test.go"), []byte(exampleFile), 0o644); err != nil {
		t.Fatal(err)
	}
	const (
		mark  = "example: shop/front.Example_greet"
		body  = "u := load(\"ada\")\n// The greeting is for people.\nfmt.Println(\"hello\", u.name)\n"
		decls = "type user struct {\n    name string   // shown to everyone\n}\n\nfunc load(id string) user { return user{name: id} }\n"
	)
	tests := []struct {
		name string
		mark string
		text string
		want string // a part of the error, "" for none
	}{
		{"statements", mark, body, ""},
		{"statements with the output", mark, body + "// Output: hello ada\n", ""},
		{"declarations", mark, decls, ""},
		{"file without package clause", mark, decls + "func main() {\n" + body + "}\n", ""},
		{"whole file", mark, "package main\n\nimport \"fmt\"\n\n" + decls + "func main() {\n" + body + "}\n", ""},
		{"a statement is missing", mark, "u := load(\"ada\")\n", "differs from"},
		{"another argument", mark, strings.Replace(body, "ada", "bob", 1), "differs from"},
		{"another comment", mark, strings.Replace(body, "people", "robots", 1), "differs from"},
		{"another main", mark, decls + "func main() {}\n", "differs from"},
		{"another declaration", mark, strings.Replace(decls, "id}", "\"\"}", 1), "there is no\nfunc load"},
		{"nothing", mark, "\n", "shows nothing"},
		{"only an import", mark, "import \"fmt\"\n", "shows nothing"},
		{"not Go", mark, "u := := 1\n", "expected"},
		{"no such example", "example: shop/front.Example_leave", body, "no example"},
		{"no such directory", "example: shop/back.Example_greet", body, "no example"},
		{"no mark", "", body, "needs a mark"},
		{"mark without a directory", "example: Example_greet", body, "needs a mark"},
		{"sketch", "sketch: shows names only", "anything goes", ""},
		{"sketch without a reason", "sketch:", "anything goes", "needs a mark"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			err := doctest.CheckExample(root, doctest.Block{Lang: "go", Mark: tc.mark, Text: tc.text, Line: 7})
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("got %v, want none", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestCommands(t *testing.T) {
	tests := []struct {
		name string
		text string
		want []string
	}{
		{"a command and its output", "$ echo a\na\n", []string{"echo a"}},
		{"two commands", "$ true\n\n$ false\n", []string{"true", "false"}},
		{"continued", "$ echo a \\\n    b \\\n    c\na b c\n", []string{"echo a \\\nb \\\nc"}},
		{"output that ends in a backslash", "$ true\nx\\\ny\n", []string{"true"}},
		{"a price is no prompt", "$5 each\n", nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := doctest.Commands(doctest.Block{Text: tc.text}); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSkipReason(t *testing.T) {
	tests := []struct{ name, mark, want string }{
		{"marked", "run: skip it would run itself", "it would run itself"},
		{"no mark", "", ""},
		{"no reason", "run: skip", ""},
		{"another mark", "sketch: skip", ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := doctest.SkipReason(doctest.Block{Mark: tc.mark}); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	if err := doctest.Run(t.Context(), dir, "echo made > here && test ! -t 0"); err != nil {
		t.Errorf("got %v, want none", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "here")); err != nil {
		t.Errorf("the command did not run in the directory given: %v", err)
	}

	err := doctest.Run(t.Context(), dir, "echo why; exit 3")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(err.Error(), "why") {
		t.Errorf("got %v, want exit status 3 and the output", err)
	}
}

func TestRunKillsWhatACommandStarted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	// The inner process keeps the output open, so Run returns at once only if it dies too.
	err := doctest.Run(ctx, t.TempDir(), "sleep 60 & wait")
	if err == nil {
		t.Error("got no error, want one: the bound had passed")
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("returned after %v, want at once", took)
	}
}
