// Package doctest keeps a Markdown document true: the Go it shows is that of the
// tree's examples, and the commands it shows succeed.
//
// [Blocks] finds the fenced blocks of a document. An HTML comment on a line of its
// own before a block is the block's mark and says what to do with it:
//
//	<!-- example: cache.Example_handler -->   the Go below is that example
//	<!-- sketch: the reason -->               the Go below is no example
//	<!-- run: skip the reason -->             the commands below are not run
//
// [CheckExample] compares a block of Go with the source of its example, and
// [Commands] and [Run] execute the lines of a console block that begin with "$ ".
package doctest

import (
	"fmt"
	"strings"
)

const fence = "```"

// Block is one fenced block of a document.
type Block struct {
	// Lang is the word behind the opening fence, such as "go" or "console".
	Lang string
	// Mark is the text of the HTML comment before the block, "" if there is none.
	Mark string
	// Text is what stands between the fences, each line ended.
	Text string
	// Line is the line of the opening fence, the first of the document being 1.
	Line int
}

// Blocks returns the fenced blocks of document in their order. Only blank lines may
// stand between a mark and its block. A block that is never closed is an error.
func Blocks(document string) ([]Block, error) {
	var blocks []Block
	var open *Block
	var mark string
	for i, line := range strings.Split(document, "\n") {
		bare := strings.TrimSpace(line)
		switch {
		case open != nil && bare == fence:
			blocks, open, mark = append(blocks, *open), nil, ""
		case open != nil:
			open.Text += line + "\n"
		case strings.HasPrefix(bare, fence):
			open = &Block{Lang: strings.TrimPrefix(bare, fence), Mark: mark, Line: i + 1}
		case bare != "":
			mark = comment(bare)
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block is never closed", open.Line)
	}
	return blocks, nil
}

// comment returns the text of an HTML comment that fills the line, else "".
func comment(line string) string {
	text, opened := strings.CutPrefix(line, "<!--")
	text, closed := strings.CutSuffix(text, "-->")
	if !opened || !closed {
		return ""
	}
	return strings.TrimSpace(text)
}
