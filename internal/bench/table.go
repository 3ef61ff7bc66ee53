package bench

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// WriteTable writes the report to be read by people: for each scenario a heading, a row for each strategy, and below it what the figures
// say in words, this module's own cache first.
func (r *Report) WriteTable(w io.Writer) error {
	for i, s := range r.Sections {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := s.writeTable(w); err != nil {
			return err
		}
	}
	return nil
}

func (s *Section) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%s\n\n", s.Title, s.Server)
	if err := s.writeRows(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	rows := slices.SortedStableFunc(slices.Values(s.Rows), func(a, b *Row) int { return oursFirst(a) - oursFirst(b) })
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, row.words()); err != nil {
			return err
		}
	}
	return nil
}

// writeRows aligns figures to the right. The first column is text, and padded to be aligned to the left; the last is text, and left alone.
func (s *Section) writeRows(w io.Writer) error {
	width := len("strategy")
	for _, row := range s.Rows {
		width = max(width, utf8.RuneCountInString(row.Strategy))
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "%-*s\tloads\terrors\tstale\tp50 ms\tp99 ms\tmax ms\twake ms\tcommands\t  broken promises\n", width, "strategy")
	for _, row := range s.Rows {
		fmt.Fprintf(tw, "%-*s\t%d\t%d\t%s\t%.1f\t%.1f\t%.1f\t%s\t%s\t  %s\n", width, row.Strategy, row.Loads, row.Errors, optional("%d", row.StaleReads),
			row.P50MS, row.P99MS, row.MaxMS, optional("%.1f", row.WakeMS), optional("%d", row.RedisCommands), cmp.Or(strings.Join(row.Broken, ", "), "none"))
	}
	return tw.Flush()
}

// words says what the row shows, in a sentence.
func (r *Row) words() string {
	words := r.Strategy + ": " + r.Verdict + r.ratioWords()
	if r.firstError != "" {
		words += fmt.Sprintf(" (%s)", r.firstError)
	}
	if r.ours && len(r.Broken) > 0 {
		words += ". It BROKE its promises: " + strings.Join(r.Broken, ", ")
	}
	return words + "."
}

// ratioWords compares with the strategy none.
func (r *Row) ratioWords() string {
	if r.Strategy == "none" || r.Ratio == nil || r.Ratio.Loads == nil || r.Ratio.P99 == nil {
		return ""
	}
	return fmt.Sprintf(" (of none: %.3f × the loads, %.2f × the p99)", *r.Ratio.Loads, *r.Ratio.P99)
}

func oursFirst(row *Row) int {
	if row.ours {
		return 0
	}
	return 1
}

// optional formats a figure that may be missing.
func optional[T any](format string, v *T) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf(format, *v)
}

// count says how many there are of a thing with a regular English plural.
func count(n int, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case strings.HasSuffix(thing, "s"):
		return fmt.Sprintf("%d %ses", n, thing)
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
