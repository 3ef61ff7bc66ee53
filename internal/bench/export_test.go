package bench

import (
	"os"
	"testing"
)

// BoardFile makes a file for a worker's board that is gone when the test ends.
func BoardFile(tb testing.TB) string {
	tb.Helper()
	path, err := newBoardFile()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.Remove(path) })
	return path
}
