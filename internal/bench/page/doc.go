// Package page writes the outcome of a bench as one HTML page.
//
// # What is on it
//
// [Write] takes [Data], which holds nothing but numbers and text, and writes a page that begins with the verdict in words. A table of
// all scenarios and strategies follows, and then a section for each scenario: its figures in a table, what they say in words strategy by
// strategy and promise by promise, and charts. The machine, the versions and the command that repeats the bench stand at the end.
//
// # How it is made
//
// The page is complete in itself: style, script, the chart library and the numbers are inside, and a Content-Security-Policy forbids
// everything else, so that it opens from a disk or an attachment and asks no network for anything. Words and tables are written here;
// the script only draws the charts, each when it scrolls into view, from numbers that are in the page too. Each chart has a sentence for
// those who cannot see it and its main numbers in a table.
//
// This module's own strategies have one colour, the same in every chart, and lie on top. The other colours were chosen to differ for
// colour-blind readers too, and lines also differ by their dashes.
package page
