package page

import (
	"slices"
	"strings"
)

// key is how a strategy is drawn: the same in every chart of the page.
type key struct {
	Name string `json:"name"`
	Ours bool   `json:"ours"`
	// Slot numbers the colours in page.css. Slot 0 is for this module's own strategies.
	Slot int `json:"slot"`
	// Dash are the lengths of a line's dashes and gaps in pixels, empty for a line without gaps.
	Dash dash `json:"dash"`
}

// slots is the number of colours for the strategies of others, which have the slots from 1 on.
const slots = 6

// ourDashes and dashes are used in this order, and again from the start. Strategies that share a colour do not share a dash until there
// are more than slots × len(dashes) of them.
var (
	ourDashes = []dash{{}, {9, 3}, {3, 3}}
	dashes    = []dash{{7, 3}, {2, 2.5}, {10, 3, 2, 3}, {4, 4}, {12, 4}, {6, 2, 2, 2, 2, 2}, {}}
)

// dash is a pattern as both the canvas and SVG take it.
type dash []float64

// String writes the pattern for the attribute stroke-dasharray.
func (d dash) String() string {
	if len(d) == 0 {
		return "none"
	}
	var lengths []string
	for _, length := range d {
		lengths = append(lengths, trimmed(length, 1))
	}
	return strings.Join(lengths, " ")
}

// keyring holds the keys of a page, in the order in which its strategies first appear.
type keyring struct{ all []key }

func newKeys(sections []Section) *keyring {
	keys := &keyring{}
	ours, others := 0, 0
	for _, s := range sections {
		for _, r := range s.Rows {
			switch {
			case keys.index(r.Strategy) >= 0:
			case r.Ours:
				keys.all = append(keys.all, key{r.Strategy, true, 0, ourDashes[ours%len(ourDashes)]})
				ours++
			default:
				keys.all = append(keys.all, key{r.Strategy, false, 1 + others%slots, dashes[others%len(dashes)]})
				others++
			}
		}
	}
	return keys
}

func (k *keyring) index(name string) int {
	return slices.IndexFunc(k.all, func(known key) bool { return known.Name == name })
}

// of returns the key of a row, which must be of a section that the keyring was made of.
func (k *keyring) of(r Row) key { return k.all[k.index(r.Strategy)] }
