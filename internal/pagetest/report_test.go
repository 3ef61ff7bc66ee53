package pagetest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"

	bench "github.com/getorprime/getorprime/internal/bench/page"
)

// screens are where the report is looked at.
var screens = []screen{desktop, {"desktop-dark", 1280, 900, 1, true}, {"phone-light", 390, 844, 2, false}, {"phone-dark", 390, 844, 2, true}}

var desktop = screen{"desktop-light", 1280, 900, 1, false}

// brief are scenarios that have every kind of chart among them.
var brief = []string{"refresh", "tags"}

// write writes the page of d to a file.
func write(t *testing.T, d *bench.Data) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := bench.Write(f, d); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// drawing is what is found in the box of a chart.
type drawing struct {
	ID     string `json:"id"`
	Width  int    `json:"width"`  // of the canvas, in CSS pixels; 0 if there is none
	Ours   int    `json:"ours"`   // pixels in our colour
	Others int    `json:"others"` // pixels in the colours of others
	Ink    int    `json:"ink"`    // pixels that are not empty
}

// drawings reads all charts back from their canvases, by way of a copy, as reading a canvas changes how Chromium keeps it.
const drawings = `[...document.querySelectorAll('.chart')].map(box => {
	const canvas = box.querySelector('canvas');
	const found = {id: box.id, width: canvas ? canvas.clientWidth : 0, ours: 0, others: 0, ink: 0};
	if (!canvas) return found;
	const copy = Object.assign(document.createElement('canvas'), {width: canvas.width, height: canvas.height});
	const ctx = copy.getContext('2d', {willReadFrequently: true});
	ctx.drawImage(canvas, 0, 0);
	const style = getComputedStyle(document.documentElement);
	const slots = [0, 1, 2, 3, 4, 5, 6].map(slot => parseInt(style.getPropertyValue('--s' + slot).trim().slice(1), 16));
	const pixels = ctx.getImageData(0, 0, copy.width, copy.height).data;
	for (let i = 0; i < pixels.length; i += 4) {
		if (pixels[i + 3] === 0) continue;
		found.ink++;
		const slot = slots.indexOf(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
		if (slot === 0) found.ours++;
		if (slot > 0) found.others++;
	}
	return found;
})`

// wider names the elements that reach beyond the window, unless they are in a box that scrolls.
const wider = `[...document.body.querySelectorAll('*')].filter(e =>
	!e.closest('.scroll, .chart') && e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5).map(e => e.outerHTML.slice(0, 120))`

// scrollsSideways reports whether the page as a whole does.
const scrollsSideways = `document.documentElement.scrollWidth > document.documentElement.clientWidth`

func TestReport(t *testing.T) {
	path := write(t, sample(brief...))
	for _, s := range screens {
		t.Run(s.name, func(t *testing.T) { checkReport(t, path, s, 14) })
	}
}

// TestLongReport is of all scenarios, with seven strategies each.
func TestLongReport(t *testing.T) {
	s := desktop
	s.name = "all"
	checkReport(t, write(t, sample()), s, 90)
}

func checkReport(t *testing.T, path string, s screen, charts int) {
	t.Helper()
	p := open(t, path, s)
	if n := ask[int](p, `report.drawAll()`); n < charts {
		t.Errorf("%d charts drawn, want %d at least", n, charts)
	}
	p.settle()
	checkDrawings(t, ask[[]drawing](p, drawings), int(s.width))
	checkWidth(t, p)
	checkQuiet(t, p, path)
	p.picture(s.name+".png", "#s1")
}

func checkDrawings(t *testing.T, all []drawing, width int) {
	t.Helper()
	others := 0
	for _, d := range all {
		if d.Width < 200 || d.Width > width || d.Ours < 20 || d.Ink < 1000 {
			t.Errorf("%s is not a chart with our strategy: %+v", d.ID, d)
		}
		others += d.Others
	}
	if others < 1000*len(all)/10 {
		t.Errorf("%d charts have %d pixels in the colours of others", len(all), others)
	}
}

func checkWidth(t *testing.T, p *tab) {
	t.Helper()
	if ask[bool](p, scrollsSideways) {
		t.Error("the page scrolls sideways")
	}
	for _, element := range ask[[]string](p, wider) {
		t.Errorf("wider than the window: %s", element)
	}
}

// checkQuiet looks at what the page did since it was opened.
func checkQuiet(t *testing.T, p *tab, path string) {
	t.Helper()
	requests, complaints := p.heard()
	if want := []string{address(path)}; !slices.Equal(requests, want) {
		t.Errorf("the page requested %q, want only itself: %q", requests, want)
	}
	for _, c := range complaints {
		t.Errorf("the page complained: %s", c)
	}
}

// TestChartsAreDrawnWhenNeeded follows the window down a long page.
func TestChartsAreDrawnWhenNeeded(t *testing.T) {
	p := open(t, write(t, sample()), desktop)
	p.settle()
	count := func(where string) int { return ask[int](p, `document.querySelectorAll('`+where+` canvas').length`) }
	if got := count("#s14"); got != 0 {
		t.Errorf("%d charts of the last section are drawn before anyone looks at it", got)
	}
	ask[bool](p, `new Promise(done => {
		document.querySelector('#s14 .charts').scrollIntoView();
		const look = () => document.querySelector('#s14 canvas') ? done(true) : requestAnimationFrame(look);
		look();
	})`)
	if got := count("#s7"); got != 0 {
		t.Errorf("%d charts of a section that was jumped over are drawn", got)
	}
}

func TestButtonHidesAStrategy(t *testing.T) {
	p := open(t, write(t, sample(brief...)), desktop)
	ask[int](p, `report.drawAll()`)
	ours := func() (in1, in2 int) {
		p.settle()
		for _, d := range ask[[]drawing](p, drawings) {
			switch {
			case strings.HasPrefix(d.ID, "chart-s1-"):
				in1 += d.Ours
			case strings.HasPrefix(d.ID, "chart-s2-"):
				in2 += d.Ours
			}
		}
		return in1, in2
	}
	press := func() string {
		return ask[string](p, `(button => (button.click(), button.getAttribute('aria-pressed')))(document.querySelector('#s1 button[data-key="6"]'))`)
	}
	before1, before2 := ours()
	if got := press(); got != "false" {
		t.Errorf("aria-pressed = %q after the first press, want false", got)
	}
	hidden1, hidden2 := ours()
	if hidden1 >= before1 || hidden2 != before2 {
		t.Errorf("pixels in our colour: %d, then %d in the section of the button; %d, then %d in the next", before1, hidden1, before2, hidden2)
	}
	press()
	if again, _ := ours(); again != before1 {
		t.Errorf("pixels in our colour: %d after two presses, want %d as before", again, before1)
	}
}

func TestThemeMayChange(t *testing.T) {
	p := open(t, write(t, sample(brief...)), desktop)
	before := ask[int](p, `report.drawAll()`)
	dark := desktop
	dark.dark = true
	call(p, emulation.SetEmulatedMedia, dark.media())
	p.settle()
	checkDrawings(t, ask[[]drawing](p, drawings), int(desktop.width)) // in the colours that now hold
	if after := ask[int](p, `document.querySelectorAll('canvas').length`); after != before {
		t.Errorf("%d charts in the dark, want %d as before", after, before)
	}
}

func TestWindowMayShrink(t *testing.T) {
	path := write(t, sample(brief...))
	p := open(t, path, desktop)
	ask[int](p, `report.drawAll()`)
	narrow := desktop
	narrow.width = 340
	call(p, emulation.SetDeviceMetricsOverride, narrow.metrics())
	p.settle()
	checkWidth(t, p)
	checkDrawings(t, ask[[]drawing](p, drawings), 340)
	checkQuiet(t, p, path)
}

// TestPaper prints in the dark: paper is white all the same, and has every chart.
func TestPaper(t *testing.T) {
	dark := desktop
	dark.dark = true
	p := open(t, write(t, sample(brief...)), dark)
	ask[bool](p, `(addEventListener('beforeprint', () => window.onPaper = (`+drawings+`)), true)`)
	pdf := call(p, page.PrintToPDF, page.PrintToPDFParams{PaperWidth: 8.27, PaperHeight: 11.69})
	p.save("paper.pdf", pdf.Data)
	if !bytes.HasPrefix(pdf.Data, []byte("%PDF-")) || len(pdf.Data) < 50<<10 {
		t.Errorf("printed %d bytes, want a document with pictures", len(pdf.Data))
	}
	printed := ask[[]drawing](p, `window.onPaper`)
	if len(printed) < 14 {
		t.Errorf("%d charts on paper, want 14 at least", len(printed))
	}
	checkDrawings(t, printed, 340)
	if got := ask[string](p, `getComputedStyle(document.body).colorScheme + ' ' + getComputedStyle(document.documentElement).getPropertyValue('--card').trim()`); strings.Contains(got, "#ffffff") {
		t.Errorf("after printing the screen is white: %s", got)
	}
}

func TestPointerReadsValues(t *testing.T) {
	path := write(t, sample(brief...))
	p := open(t, path, desktop)
	ask[int](p, `report.drawAll()`)
	box := ask[[]float64](p, `(box => (box.scrollIntoView({block: 'center'}), box = box.getBoundingClientRect(), [box.x, box.y, box.width, box.height]))(document.querySelector('#chart-s1-1 .u-over'))`)
	for _, part := range []float64{0.3, 0.27} { // a pointer that did not move says nothing
		move := input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: box[0] + box[2]*part, Y: box[1] + box[3]/2}
		call(p, input.DispatchMouseEvent, move)
		p.settle()
	}
	text := ask[string](p, `document.querySelector('#chart-s1-1 .tip').innerText`)
	for _, want := range []string{"p90", "getorprime", "singleflight", " ms"} {
		if !strings.Contains(text, want) {
			t.Errorf("beside the pointer stands %q, want %q in it", text, want)
		}
	}
	p.save("pointer.png", call(p, page.CaptureScreenshot, page.CaptureScreenshotParams{}).Data)
	checkQuiet(t, p, path)
}

// TestNamesAreText looks at a report whose texts try to be markup.
func TestNamesAreText(t *testing.T) {
	const hostile = `</script><img src="https://example.invalid/x.png" onerror="window.caught=1"><script>window.caught=1</script>`
	d := sample("refresh")
	for i := range d.Sections[0].Rows {
		r := &d.Sections[0].Rows[i]
		r.Strategy, r.Verdict = r.Strategy+hostile, hostile
		for n := range r.Figures {
			r.Figures[n].Name = hostile
		}
	}
	path := write(t, d)
	p := open(t, path, screens[2])
	ask[int](p, `report.drawAll()`)
	p.settle()
	if ask[bool](p, `'caught' in window || document.images.length > 0`) {
		t.Error("a text was taken for markup")
	}
	checkWidth(t, p)
	checkQuiet(t, p, path)
	p.picture("names.png", "nav")
}

// TestTestsNotice shows the checks a page that does what they forbid.
func TestTestsNotice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.html")
	bad := `<!DOCTYPE html><title>bad</title><img src="missing.png"><div style="width:3000px">wide</div><script>console.warn("grumble"); throw new Error("oops")</script>`
	if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
		t.Fatal(err)
	}
	p := open(t, path, desktop)
	p.settle()
	requests, complaints := p.heard()
	if len(requests) != 2 {
		t.Errorf("requests noticed: %q, want the page and its picture", requests)
	}
	for _, want := range []string{"grumble", "oops"} {
		if !strings.Contains(strings.Join(complaints, "\n"), want) {
			t.Errorf("complaints noticed: %q, want %q among them", complaints, want)
		}
	}
	if !ask[bool](p, scrollsSideways) || len(ask[[]string](p, wider)) == 0 {
		t.Error("an element that is wider than the window was not noticed")
	}
}
