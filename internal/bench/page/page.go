package page

import (
	"bytes"
	"io"
)

// Data is what a report says. Text is written as it is: nothing in it is taken for markup.
type Data struct {
	// Title heads the page.
	Title string
	// Command is the line that repeats the bench.
	Command string
	// Machine says what it ran on: processor, cores, operating system.
	Machine string
	// Versions names the versions of Go, Redis and this module.
	Versions string
	// When is the time of the bench, as it is to be shown.
	When string
	// Kept says that this module's own strategies kept all promises. A promise in the sections that one of them broke outweighs it.
	Kept bool
	// Sections are the scenarios, in the order of the page.
	Sections []Section
}

// Section is one scenario.
type Section struct {
	// Scenario is its name: "cold".
	Scenario string
	// Title says what was done. It may begin with the scenario's name and a colon.
	Title string
	// Server says which Redis it was done with.
	Server string
	// Rows are the strategies, in the order of the table.
	Rows []Row
}

// Row is what one strategy did. Figures that are nil were not taken; a figure that is not finite counts as nil.
type Row struct {
	// Strategy is its name, the same in all sections.
	Strategy string
	// Ours marks this module's own strategies.
	Ours bool
	// Loads counts the loads from the origin over all processes, Calls the calls, and Errors the calls that ended with an error.
	Loads, Calls, Errors int
	// StaleReads counts the calls that got a value older than they may; nil in scenarios where that cannot happen.
	StaleReads *int
	// P50MS to P999MS are percentiles of the calls' times (50, 90, 99, 99.9) and MaxMS the longest, in milliseconds. A zero is not drawn.
	P50MS, P90MS, P99MS, P999MS, MaxMS float64
	// WakeMS is the time from the end of a load to the return of the last caller that waited for it, in milliseconds.
	WakeMS *float64
	// RedisCommands counts the commands that Redis executed.
	RedisCommands *int64
	// Broken names the promises that the strategy broke.
	Broken []string
	// Promises are all promises of the scenario. One that is in Broken counts as broken whatever it says here.
	Promises []Promise
	// Verdict says the row in words, without a full stop. It may begin with the strategy's name and a colon.
	Verdict string
	// Series are its figures over time, if they were taken.
	Series *Series
	// Figures are quantities that a formula predicts, or that only this scenario has.
	Figures []Figure
}

// Promise is something that a strategy kept or broke.
type Promise struct {
	Name string
	Kept bool
}

// Series are figures over time, one number a step; the first step begins with the run. Slices may be empty and differ in length.
type Series struct {
	// StepMS is the length of a step in milliseconds. Unless it is above 0 the series is not drawn.
	StepMS float64
	// Loads, Calls, Errors and Stale count what happened in a step: loads begun, calls made, errors and stale values returned.
	Loads, Calls, Errors, Stale []int
	// Waiting is how many callers waited, at most, at one time in a step.
	Waiting []int
	// Commands counts the commands that Redis executed in a step.
	Commands []int64
}

// Figure is a quantity of one strategy in one scenario.
type Figure struct {
	// Name says what it is, Unit in which unit, "" for a plain number.
	Name, Unit string
	// Predicted is what a formula says, nil if there is none.
	Predicted *float64
	// Measured is what was seen.
	Measured float64
}

// Write writes the page for d. It returns the error of w; whatever d holds makes a page.
func Write(w io.Writer, d *Data) error {
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, newView(d)); err != nil {
		return err
	}
	_, err := page.WriteTo(w)
	return err
}
