package doctest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/getorprime/getorprime/internal/doctest"
)

const (
	root         = "../.."
	commandBound = 3 * time.Minute
)

func TestReadmeShowsTheExamples(t *testing.T) {
	for _, block := range readme(t, "go") {
		if err := doctest.CheckExample(root, block); err != nil {
			t.Errorf("README.md: %v", err)
		}
	}
}

// With -short the commands are left out: they run once, in the full suite.
func TestReadmeCommandsSucceed(t *testing.T) {
	if testing.Short() {
		t.Skip("the README's commands run in the full suite only")
	}
	for _, block := range readme(t, "console") {
		t.Run(fmt.Sprintf("line %d", block.Line), func(t *testing.T) {
			if reason := doctest.SkipReason(block); reason != "" {
				t.Skipf("%q: %s", doctest.Commands(block), reason)
			}
			runAll(t, doctest.Commands(block))
		})
	}
}

func runAll(t *testing.T, commands []string) {
	t.Helper()
	for _, command := range commands {
		ctx, cancel := context.WithTimeout(t.Context(), commandBound)
		err := doctest.Run(ctx, root, command)
		cancel()
		if err != nil {
			t.Error(err)
		}
	}
}

// readme returns the README's blocks in the given language, at least one.
func readme(t *testing.T, lang string) []doctest.Block {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := doctest.Blocks(string(text))
	if err != nil {
		t.Fatalf("README.md: %v", err)
	}
	var found []doctest.Block
	for _, block := range blocks {
		if block.Lang == lang {
			found = append(found, block)
		}
	}
	if len(found) == 0 {
		t.Fatalf("README.md has no block in %q", lang)
	}
	return found
}
