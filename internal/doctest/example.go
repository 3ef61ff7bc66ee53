package doctest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// outputComment begins what an example prints, which a document need not repeat.
var outputComment = regexp.MustCompile(`(?i)^//\s*(unordered )?output:`)

// CheckExample reports whether the block, one of Go, is what its mark says. A block
// marked as a sketch is. One marked with an example, dir.ExampleName with dir
// relative to root, must hold the statements of that example's body, or be a file:
// then its func main must hold them, and each other declaration must stand in the
// test files of dir. Package clause, imports, white space and the comment with the
// expected output do not count. A block without a mark is an error, so that no code
// goes unchecked by oversight.
func CheckExample(root string, block Block) error {
	if strings.HasPrefix(block.Mark, "sketch: ") {
		return nil
	}
	name, marked := strings.CutPrefix(block.Mark, "example: ")
	dot := strings.LastIndex(name, ".")
	if !marked || dot < 0 {
		return fmt.Errorf("line %d: Go needs a mark “example: dir.ExampleName” or “sketch: reason”, has %q", block.Line, block.Mark)
	}
	tests, err := parseTests(filepath.Join(root, name[:dot]))
	if err != nil {
		return err
	}
	body, found := tests.bodies[name[dot+1:]]
	if !found {
		return fmt.Errorf("line %d: there is no example %s", block.Line, name)
	}
	return compare(block, name, body, tests.decls)
}

func compare(block Block, name string, body []string, decls map[string]bool) error {
	shown, err := parseShown(block.Text)
	if err != nil {
		return fmt.Errorf("line %d: %w", block.Line, err)
	}
	for decl := range shown.decls {
		if !decls[decl] {
			return fmt.Errorf("line %d: beside %s there is no\n%s", block.Line, name, decl)
		}
	}
	got, hasMain := shown.bodies["main"]
	switch {
	case !hasMain && len(shown.decls) == 0:
		return fmt.Errorf("line %d: the block shows nothing", block.Line)
	case hasMain && !slices.Equal(got, body):
		return fmt.Errorf("line %d: the block differs from %s:\n%s\n--- example\n%s",
			block.Line, name, strings.Join(got, "\n"), strings.Join(body, "\n"))
	}
	return nil
}

// source is what comparing needs of some files: the lines of each function's body
// by the function's name, and the text of every declaration.
type source struct {
	bodies map[string][]string
	decls  map[string]bool
}

func newSource() source {
	return source{bodies: map[string][]string{}, decls: map[string]bool{}}
}

func parseTests(dir string) (source, error) {
	tests := newSource()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return tests, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return tests, err
		}
		if err := tests.add(string(text)); err != nil {
			return tests, fmt.Errorf("%s: %w", file, err)
		}
	}
	return tests, nil
}

// parseShown reads a block as a file, with or without its package clause, and, where
// it is none, as statements: those become the body of main.
func parseShown(text string) (source, error) {
	forms := []string{text, "package p\n" + text, "package p\nfunc main() {\n" + text + "\n}\n"}
	var err error
	for _, form := range forms {
		shown := newSource()
		if err = shown.add(form); err == nil {
			for decl := range shown.decls {
				if strings.HasPrefix(decl, "func main(") {
					delete(shown.decls, decl)
				}
			}
			return shown, nil
		}
	}
	return source{}, err
}

// add parses a file and notes its declarations, imports left out.
func (s source) add(text string) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	cut := func(from, to token.Pos) []string {
		return lines(text[fset.Position(from).Offset:fset.Position(to).Offset])
	}
	for _, decl := range file.Decls {
		if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.IMPORT {
			continue
		}
		s.decls[strings.Join(cut(decl.Pos(), decl.End()), "\n")] = true
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Body != nil {
			s.bodies[fn.Name.Name] = cut(fn.Body.Lbrace+1, fn.Body.Rbrace)
		}
	}
	return nil
}

// lines splits text into its lines that are not blank, white space evened out, up to
// the comment with an example's output.
func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(line), " ")
		if outputComment.MatchString(line) {
			break
		}
		if line != "" {
			all = append(all, line)
		}
	}
	return all
}
