package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/getorprime/getorprime/lock"
)

// locksCommand is prime locks.
type locksCommand struct {
	Prefix string `arg:"" optional:"" help:"Only locks whose names begin so."`
	JSON   bool   `name:"json" help:"Print one JSON object."`
	redisFlags
}

// Help is the long help of prime locks.
func (*locksCommand) Help() string {
	return `One line for each holder of each lock, sorted by name: its state; what it says of itself, by default its host, process and command; how long
the lock lasts unless it is renewed; and how many processes wait for the lock. The states:

    held      somebody works under the lock
    resting   the work is over, and --min-hold is not
    reserved  released, and kept for 100 ms for the one who has waited longest

The keys are read with SCAN, step by step, so a busy server goes on serving others. ` + redisHelp
}

// Run lists the locks.
func (c *locksCommand) Run(ctx context.Context, s *streams) error {
	client, err := c.open()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	defer client.Close()
	locker, err := lock.New(client, &lock.Options{Namespace: c.Namespace})
	if err != nil {
		return &exitError{exitUsage, err}
	}
	all, err := locker.List(ctx, c.Prefix)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return writeLocksJSON(s.out, all)
	}
	return writeLocks(s.out, all)
}

// writeLocks writes the table.
func writeLocks(w io.Writer, all []lock.Status) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "LOCK\tSTATE\tHOLDER\tLEFT\tWAITING")
	for _, s := range all {
		for _, h := range s.Holders {
			fmt.Fprintf(table, "%s\t%s\t%s\t%v\t%d\n", printable(s.Name), h.State, holder(h), h.Left.Round(100*time.Millisecond), s.Waiting)
		}
	}
	return table.Flush()
}

// holder is what a holder says of itself, or a dash.
func holder(h lock.Holder) string {
	if h.Info == "" {
		return "-"
	}
	return printable(h.Info)
}

// printable quotes what would upset a table or a terminal: others have written it.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// heldLock is a lock in JSON.
type heldLock struct {
	Name    string       `json:"name"`
	Waiting int          `json:"waiting"`
	Holders []lockHolder `json:"holders"`
}

type lockHolder struct {
	Info   string `json:"info"`
	State  string `json:"state"`
	LeftMS int64  `json:"left_ms"`
}

func writeLocksJSON(w io.Writer, all []lock.Status) error {
	found := make([]heldLock, 0, len(all))
	for _, s := range all {
		l := heldLock{Name: s.Name, Waiting: s.Waiting}
		for _, h := range s.Holders {
			l.Holders = append(l.Holders, lockHolder{h.Info, h.State, h.Left.Milliseconds()})
		}
		found = append(found, l)
	}
	return json.NewEncoder(w).Encode(map[string][]heldLock{"locks": found})
}

// heldBy is an error that tells who holds a lock, as far as that can be found out.
func heldBy(ctx context.Context, locker *lock.Locker, name string) error {
	status, err := locker.Status(ctx, name)
	if err != nil || len(status.Holders) == 0 {
		return fmt.Errorf("others hold %q", name)
	}
	h := status.Holders[0]
	who := fmt.Sprintf("%s, %s for %v unless renewed", holder(h), h.State, h.Left.Round(100*time.Millisecond))
	if n := len(status.Holders); n > 1 {
		who += fmt.Sprintf(", and %d more", n-1)
	}
	return fmt.Errorf("others hold %q: %s", name, who)
}
