package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// asPrime in the environment makes the test binary the command itself, in this process's children and theirs.
const asPrime = "PRIME_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asPrime) != "" {
		main()
	}
	os.Setenv(asPrime, "1")
	os.Unsetenv("COLUMNS") // help is as wide as it says
	os.Exit(m.Run())
}

// prime runs the command in this process; its workers are processes.
func prime(ctx context.Context, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = run(ctx, args, &out, &err)
	return status, out.String(), err.String()
}

// primeProcess returns the command as a process that can be signalled.
func primeProcess(args ...string) *exec.Cmd {
	return exec.Command(os.Args[0], args...)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("..", "..", "testdata", "cli", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s\nwant:\n%s", file, got, want)
	}
}
