package main

import (
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/getorprime/getorprime/internal/bench"
)

// progress shows how far a bench is: a bar on a terminal, a line for each run elsewhere.
type progress struct {
	w   io.Writer
	bar *progressbar.ProgressBar // nil before the first step, and off a terminal
	tty bool
}

func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	return &progress{w: w, tty: ok && term.IsTerminal(int(f.Fd()))}
}

// show takes the bench's news.
func (p *progress) show(news bench.Progress) {
	switch {
	case p.tty:
		p.draw(news)
	case news.Row != nil:
		fmt.Fprintf(p.w, "%d/%d %s, %s: loads %d, errors %d, max %.1f ms\n", news.Done, news.Total, news.Scenario, news.Strategy, news.Row.Loads, news.Row.Errors, news.Row.MaxMS)
	}
}

// draw has no error to return: a bar that cannot be drawn is no reason to stop.
func (p *progress) draw(news bench.Progress) {
	if p.bar == nil {
		p.bar = progressbar.NewOptions(news.Total,
			progressbar.OptionSetWriter(p.w), progressbar.OptionSetWidth(24), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(false), progressbar.OptionShowCount())
	}
	if news.Row == nil {
		p.bar.Describe(fmt.Sprintf("%-17s %-24s", news.Strategy, news.Stage))
	}
	_ = p.bar.Set(news.Done)
}

// end removes the bar.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
