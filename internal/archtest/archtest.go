// Package archtest keeps the module's layout: which package may import which,
// what only tests may import, and what may stand at the top level.
//
// [Imports] reads the import clauses of every Go file under a directory, nested
// modules included, [Check] compares them with the table of arrows, and
// [CheckTopLevel] compares the names at the top level with the list of those
// expected there. All three are plain functions over plain data, so that the
// package's own tests can show them a violation and see it reported.
package archtest

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Module is the import path of the root module.
const Module = "github.com/getorprime/getorprime"

// Import is one import clause.
type Import struct {
	// File is the importing file, slash-separated and relative to the top level.
	File string
	// Path is the import path as written in the file.
	Path string
}

// arrows says which trees of this module a tree may import. The longest matching
// tree decides; a package that lies in none of them is a violation.
var arrows = map[string][]string{
	"codec":    {"codec"},
	"loader":   {"loader", "internal/loadctl"},
	"lock":     {"lock", "internal/command", "internal/lease", "internal/wake"},
	"cache":    {"cache", "codec", "loader", "internal"},
	"internal": {"internal", "codec", "loader"},
	"cmd":      {"cmd", "cache", "lock", "loader", "codec", "internal"},

	// What it needs of a lock, others need as well.
	"lock/lockhttp": {"lock"},

	// Both drive the public packages from outside, as a user's program does.
	"internal/bench":   {"internal", "cache", "lock", "loader", "codec"},
	"internal/compare": {"internal", "cache", "lock", "loader", "codec"},

	// User's programs, which have nothing but what is public.
	"internal/examples": {"internal/examples", "cache", "lock", "loader", "codec"},
}

// testOnly names the packages made for tests. They may import "testing" and each
// other; production files may import none of them.
var testOnly = []string{
	"cache/cachetest",
	"internal/archtest",
	"internal/doctest",
	"internal/redistest",
}

// topLevel lists what the top level may contain beside dot files.
var topLevel = []string{
	"CHANGELOG.md", "LICENSE", "Makefile", "README.md",
	"cache", "cmd", "codec", "go.mod", "go.sum", "go.work", "go.work.sum",
	"internal", "loader", "lock", "testdata",
}

// Imports returns every import clause of the Go files under root, in the order of
// their files. Directories named testdata, and those that start with a dot or an
// underscore, are left out, as the go command leaves them out. It returns the
// first error of reading or parsing a file.
func Imports(root string) ([]Import, error) {
	var all []Import
	walk := func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && ignored(d.Name()):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		found, err := fileImports(root, name)
		all = append(all, found...)
		return err
	}
	err := fs.WalkDir(os.DirFS(root), ".", walk)
	return all, err
}

func ignored(dir string) bool {
	return dir == "testdata" || strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_")
}

func fileImports(root, name string) ([]Import, error) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var found []Import
	for _, spec := range file.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found = append(found, Import{File: name, Path: importPath})
	}
	return found, nil
}

// Check returns one sentence for each import that breaks a rule, in the order of
// the imports; none means that the layout holds. Test files (…_test.go) may
// import what they like: the compiler already refuses a cycle.
func Check(imports []Import) []string {
	var broken []string
	for _, imp := range imports {
		if strings.HasSuffix(imp.File, "_test.go") {
			continue
		}
		if problem := checkOne(path.Dir(imp.File), imp.Path); problem != "" {
			broken = append(broken, fmt.Sprintf("%s imports %q: %s", imp.File, imp.Path, problem))
		}
	}
	return broken
}

func checkOne(pkg, importPath string) string {
	target, ours := strings.CutPrefix(importPath, Module+"/")
	switch {
	case isTesting(importPath) && !isTestOnly(pkg):
		return "production code must not depend on the testing packages"
	case !ours:
		return ""
	case isTestOnly(target) && !isTestOnly(pkg):
		return target + " is for tests only"
	}
	return checkArrow(pkg, target)
}

func checkArrow(pkg, target string) string {
	tree := treeOf(pkg)
	switch {
	case tree == "":
		return "no rule says what " + pkg + " may import"
	case slices.ContainsFunc(arrows[tree], func(allowed string) bool { return within(target, allowed) }):
		return ""
	}
	return tree + " may import only " + strings.Join(arrows[tree], ", ")
}

// treeOf returns the longest key of arrows that pkg lies in, "" if there is none.
func treeOf(pkg string) string {
	var best string
	for tree := range arrows {
		if within(pkg, tree) && len(tree) > len(best) {
			best = tree
		}
	}
	return best
}

func within(pkg, tree string) bool {
	return pkg == tree || strings.HasPrefix(pkg, tree+"/")
}

func isTesting(importPath string) bool { return within(importPath, "testing") }

func isTestOnly(pkg string) bool { return slices.Contains(testOnly, pkg) }

// CheckTopLevel returns the names, sorted, that may not stand at the top level.
// Dot files may.
func CheckTopLevel(names []string) []string {
	var extra []string
	for _, name := range names {
		if !strings.HasPrefix(name, ".") && !slices.Contains(topLevel, name) {
			extra = append(extra, name)
		}
	}
	slices.Sort(extra)
	return extra
}
