package page_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getorprime/getorprime/internal/bench/page"
)

var (
	inline = regexp.MustCompile(`(?s)<(script|style)([^>]*)>(.*?)</(?:script|style)>`)
	void   = regexp.MustCompile(`<(meta|br|hr|img|link|input)\b([^>]*)>`)
)

// element is an element of a page.
type element struct {
	name  string
	attrs map[string]string
}

// elements parses a page as XML, which is stricter than a browser: what is not closed, or not in order, is an error. What stands in
// scripts and styles is left out, as is the text.
func elements(t *testing.T, page string) []element {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(void.ReplaceAllString(inline.ReplaceAllString(page, "<$1$2></$1>"), "<$1$2/>")))
	var found []element
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
		if start, ok := token.(xml.StartElement); ok {
			e := element{start.Name.Local, map[string]string{}}
			for _, a := range start.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			found = append(found, e)
		}
	}
}

// checkForm checks what holds for every page: it is well formed, its references point to something in it, and it loads nothing.
func checkForm(t *testing.T, page string) {
	t.Helper()
	all := elements(t, page)
	ids := map[string]bool{}
	for _, e := range all {
		if id := e.attrs["id"]; id != "" && ids[id] {
			t.Errorf("two elements have the id %q", id)
		}
		ids[e.attrs["id"]] = true
	}
	for _, e := range all {
		checkElement(t, e, ids)
	}
}

// harmless are the attributes that the page uses and that load nothing.
var harmless = []string{
	"aria-hidden", "aria-label", "aria-labelledby", "aria-pressed", "charset", "class", "content", "data-height", "data-key", "height", "http-equiv", "id", "lang",
	"name", "role", "scope", "stroke-dasharray", "tabindex", "type", "viewBox", "width", "x1", "x2", "y1", "y2",
}

func checkElement(t *testing.T, e element, ids map[string]bool) {
	t.Helper()
	for name, value := range e.attrs {
		switch {
		case name == "href":
			if target, inside := strings.CutPrefix(value, "#"); !inside || !ids[target] {
				t.Errorf("<%s href=%q> leads out of the page", e.name, value)
			}
		case !slices.Contains(harmless, name):
			t.Errorf("<%s %s=%q>: may that load anything?", e.name, name, value)
		case name == "aria-labelledby" && !ids[value]:
			t.Errorf("<%s aria-labelledby=%q> is labelled by nothing", e.name, value)
		}
	}
	if e.attrs["role"] == "img" && e.attrs["aria-label"] == "" {
		t.Errorf("<%s id=%q> has no words for those who cannot see it", e.name, e.attrs["id"])
	}
}

func TestPageIsWellFormed(t *testing.T) {
	for name, d := range map[string]*page.Data{
		"full":             small(),
		"empty":            {},
		"empty section":    {Title: "x", Sections: []page.Section{{}}},
		"empty row":        {Sections: []page.Section{{Scenario: "x", Rows: []page.Row{{}}}, {Scenario: "x", Rows: []page.Row{{Ours: true}}}}},
		"no finite figure": {Sections: []page.Section{{Rows: []page.Row{{P50MS: math.NaN(), MaxMS: math.Inf(-1), WakeMS: new(math.Inf(1))}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			html := write(t, d)
			checkForm(t, html)
			sectionNumbers(t, html)
			if strings.Contains(html, "ZgotmplZ") || strings.Contains(html, "NaN<") || strings.Contains(html, "Inf<") {
				t.Error("the page shows something that is for no reader")
			}
		})
	}
}

// TestPageLoadsNothing looks for every way of a style or a script to reach out; attributes are checked with the form.
func TestPageLoadsNothing(t *testing.T) {
	ways := regexp.MustCompile(`url\(|@import|\bfetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|\bimport\(|new Image|\bWorker\(|\.src\s*=|\.href\s*=`)
	text := write(t, small())
	if found := ways.FindAllString(text, -1); len(found) > 0 {
		t.Errorf("the page may load something: %q", found)
	}
	allowed := policy(t, text)
	for _, part := range inline.FindAllStringSubmatch(text, -1) {
		sum := sha256.Sum256([]byte(part[3]))
		digest := base64.StdEncoding.EncodeToString(sum[:])
		if isData := strings.Contains(part[2], "json"); isData == strings.Contains(allowed, part[1]+"-src 'sha256-"+digest+"'") {
			t.Errorf("policy %q does not fit <%s%s>", allowed, part[1], part[2])
		}
	}
	for _, loose := range []string{"unsafe", "*", "http", "data:"} {
		if strings.Contains(allowed, loose) {
			t.Errorf("policy %q allows %q", allowed, loose)
		}
	}
}

// policy returns the Content-Security-Policy of a page, which forbids what it does not name.
func policy(t *testing.T, page string) string {
	t.Helper()
	for _, e := range elements(t, page) {
		if e.attrs["http-equiv"] == "Content-Security-Policy" && strings.HasPrefix(e.attrs["content"], "default-src 'none';") {
			return e.attrs["content"]
		}
	}
	t.Fatal("the page has no policy that forbids what it does not name")
	return ""
}

// TestTextIsText puts markup into every text there is.
func TestTextIsText(t *testing.T) {
	hostile := []string{
		`<script>alert(1)</script>`, `</script><img src=x onerror=alert(1)>`, `"><b onmouseover="alert(1)`, `' onfocus=alert(1) x='`, `<!--`, `]]>`, `{{.Title}}`, `&lt;`, "\u2028", "a\x00b\xff",
	}
	plain := elements(t, write(t, everywhere("text")))
	for _, text := range hostile {
		t.Run(text, func(t *testing.T) {
			out := write(t, everywhere(text))
			if strings.Contains(text, "\x00") {
				out = strings.ReplaceAll(strings.ReplaceAll(out, "\x00", ""), "\ufffd", "") // XML has no such characters, HTML reads them as one that stands for none
			}
			checkForm(t, strings.ToValidUTF8(out, ""))
			if got, want := len(elements(t, strings.ToValidUTF8(out, ""))), len(plain); got != want {
				t.Errorf("%d elements, %d with a harmless text", got, want)
			}
			if n := sectionNumbers(t, out)[0]; !strings.Contains(text, "\x00") && n.Keys[0].Name != text {
				t.Errorf("the script reads the name %q, want %q", n.Keys[0].Name, text)
			}
		})
	}
}

// everywhere is a report in which every text is the same.
func everywhere(text string) *page.Data {
	r := row(text, true)
	r.Broken, r.Promises, r.Verdict = []string{text}, []page.Promise{{Name: text}}, text
	r.Figures = []page.Figure{{Name: text, Unit: text, Predicted: new(1.0), Measured: 2}}
	return &page.Data{
		Title: text, Command: text, Machine: text, Versions: text, When: text,
		Sections: []page.Section{{Scenario: text, Title: text, Server: text, Rows: []page.Row{r}}},
	}
}

func TestPageIsNotLarge(t *testing.T) {
	text := write(t, small())
	if kb := len(text) >> 10; kb > 120 {
		t.Errorf("a report of one scenario has %d KB, want 120 at most", kb)
	}
	licence, err := os.ReadFile("assets/uPlot.LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, string(licence)) {
		t.Error("the page carries uPlot without its licence")
	}
}
