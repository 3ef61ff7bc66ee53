package archtest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getorprime/getorprime/internal/archtest"
)

const root = "../.."

func TestLayoutHolds(t *testing.T) {
	imports, err := archtest.Imports(root)
	if err != nil {
		t.Fatal(err)
	}
	self := archtest.Import{File: "internal/archtest/archtest_test.go", Path: archtest.Module + "/internal/archtest"}
	if !slices.Contains(imports, self) {
		t.Fatalf("this file's own import is not among the %d found: the walk is broken", len(imports))
	}
	for _, problem := range archtest.Check(imports) {
		t.Error(problem)
	}
}

func TestTopLevelHoldsOnlyWhatIsExpected(t *testing.T) {
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if entry.Name() != "stampede.html" { // the README's bench command writes it; git ignores it
			names = append(names, entry.Name())
		}
	}
	if !slices.Contains(names, "go.mod") {
		t.Fatalf("%s is not the top level: it holds %q", root, names)
	}
	if extra := archtest.CheckTopLevel(names); len(extra) > 0 {
		t.Errorf("unexpected at the top level: %q", extra)
	}
}

func TestCheck(t *testing.T) {
	const ours = archtest.Module + "/"
	tests := []struct {
		name string
		file string
		path string
		want string // a part of the one problem expected, "" for none
	}{
		{"cache imports codec", "cache/cache.go", ours + "codec", ""},
		{"cache imports an internal package", "cache/fill.go", ours + "internal/entry", ""},
		{"cache imports lock", "cache/cache.go", ours + "lock", "cache may import only"},
		{"cache imports a command", "cache/cache.go", ours + "cmd/prime", "cache may import only"},
		{"cachetest imports cache", "cache/cachetest/cachetest.go", ours + "cache", ""},
		{"codec imports a sibling of the library", "codec/codec.go", ours + "loader", "codec may import only"},
		{"codec imports an internal package", "codec/codec.go", ours + "internal/entry", "codec may import only"},
		{"loader imports loadctl", "loader/loader.go", ours + "internal/loadctl", ""},
		{"loader imports another internal package", "loader/loader.go", ours + "internal/flight", "loader may import only"},
		{"loader imports a name that only begins alike", "loader/loader.go", ours + "internal/loadctl2", "loader may import only"},
		{"lock imports lease", "lock/lock.go", ours + "internal/lease", ""},
		{"lockhttp imports lock", "lock/lockhttp/lockhttp.go", ours + "lock", ""},
		{"lockhttp imports an internal package", "lock/lockhttp/lockhttp.go", ours + "internal/command", "lock/lockhttp may import only"},
		{"lock imports entry", "lock/lock.go", ours + "internal/entry", "lock may import only"},
		{"lock imports cache", "lock/lock.go", ours + "cache", "lock may import only"},
		{"internal imports loader", "internal/flight/flight.go", ours + "loader", ""},
		{"internal imports cache", "internal/flight/flight.go", ours + "cache", "internal may import only"},
		{"internal imports lock", "internal/wake/wake.go", ours + "lock/lockhttp", "internal may import only"},
		{"internal imports a command", "internal/wake/wake.go", ours + "cmd/prime", "internal may import only"},
		{"bench imports cache", "internal/bench/bench.go", ours + "cache", ""},
		{"a package below bench imports lock", "internal/bench/report/report.go", ours + "lock", ""},
		{"a name that only begins like bench", "internal/benchmark/b.go", ours + "cache", "internal may import only"},
		{"an example imports lockhttp", "internal/examples/shop.go", ours + "lock/lockhttp", ""},
		{"an example imports an internal package", "internal/examples/shop.go", ours + "internal/wake", "internal/examples may import only"},
		{"command imports all", "cmd/prime/main.go", ours + "internal/bench", ""},
		{"unknown tree", "tools/x.go", ours + "cache", "no rule says"},
		{"file at the top level", "doc.go", ours + "cache", "no rule says"},
		{"production imports testing", "codec/codec.go", "testing", "testing packages"},
		{"production imports below testing", "cmd/prime/main.go", "testing/fstest", "testing packages"},
		{"test file imports testing", "codec/codec_test.go", "testing", ""},
		{"test-only package imports testing", "internal/redistest/redistest.go", "testing", ""},
		{"production imports redistest", "internal/bench/bench.go", ours + "internal/redistest", "tests only"},
		{"production imports cachetest", "cmd/prime/main.go", ours + "cache/cachetest", "tests only"},
		{"test-only package imports another", "cache/cachetest/cachetest.go", ours + "internal/redistest", ""},
		{"test file ignores the arrows", "cache/cache_test.go", ours + "lock", ""},
		{"other modules are free", "cache/cache.go", "github.com/redis/go-redis/v9", ""},
		{"another module whose path begins alike", "codec/codec.go", archtest.Module + "-tools/x", ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := archtest.Check([]archtest.Import{{File: tc.file, Path: tc.path}})
			switch {
			case tc.want == "" && len(got) > 0:
				t.Errorf("got %q, want none", got)
			case tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)):
				t.Errorf("got %q, want one problem with %q", got, tc.want)
			}
		})
	}
}

func TestCheckReportsEveryProblem(t *testing.T) {
	imports := []archtest.Import{
		{File: "codec/a.go", Path: archtest.Module + "/cache"},
		{File: "codec/b.go", Path: "fmt"},
		{File: "codec/c.go", Path: "testing"},
	}
	if got := archtest.Check(imports); len(got) != 2 {
		t.Errorf("got %d problems %q, want 2", len(got), got)
	}
}

func TestCheckTopLevel(t *testing.T) {
	tests := []struct {
		name  string
		names []string
		want  []string
	}{
		{"expected names and dot files", []string{"README.md", "cache", ".ci", ".gitignore"}, nil},
		{"strays are sorted", []string{"util", "cache", "NOTES.md"}, []string{"NOTES.md", "util"}},
		{"case matters", []string{"readme.md"}, []string{"readme.md"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := archtest.CheckTopLevel(tc.names); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestImports(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a/a.go", "package a\n\nimport (\n\t\"fmt\"\n\tx `os`\n)\n")
	write(t, dir, "a/a_test.go", "package a_test\n\nimport _ \"testing\"\n")
	write(t, dir, "a/testdata/skip.go", "package skip\n\nimport \"no/such\"\n")
	write(t, dir, ".hidden/skip.go", "package skip\n\nimport \"no/such\"\n")
	write(t, dir, "notes.txt", "import \"no/such\"\n")

	got, err := archtest.Imports(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []archtest.Import{{"a/a.go", "fmt"}, {"a/a.go", "os"}, {"a/a_test.go", "testing"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestImportsReportsAFileThatDoesNotParse(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a/a.go", "this is not Go\n")
	if _, err := archtest.Imports(dir); err == nil {
		t.Error("got no error, want that of the parser")
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
