package doctest

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// killDelay is how long a command that was told to end may keep its output open.
const killDelay = 5 * time.Second

// SkipReason returns why the commands of a block are not to be run, "" if they are.
func SkipReason(block Block) string {
	reason, _ := strings.CutPrefix(block.Mark, "run: skip ")
	if reason == block.Mark {
		return ""
	}
	return reason
}

// Commands returns the commands of a console block: its lines that begin with "$ ",
// without that prompt, each with the lines that continue it after a backslash.
func Commands(block Block) []string {
	var commands []string
	continued := false
	for line := range strings.Lines(block.Text) {
		line = strings.TrimSpace(line)
		command, prompted := strings.CutPrefix(line, "$ ")
		switch {
		case continued:
			commands[len(commands)-1] += "\n" + line
		case prompted:
			commands = append(commands, command)
		}
		continued = (continued || prompted) && strings.HasSuffix(line, `\`)
	}
	return commands
}

// Run executes a command with bash in dir, without input. It returns an error, with
// what the command printed, unless the command exits with status 0 before ctx ends.
// When ctx ends first, the command and the processes it started are killed.
func Run(ctx context.Context, dir, command string) error {
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	var output bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &output, &output, killDelay
	killGroup(cmd)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("$ %s\n%s%w", command, output.String(), err)
	}
	return nil
}
