package pagetest_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds one test's use of the browser.
const patience = time.Minute

// browsers are the names that Chromium goes by.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless-shell"}

// findBrowser skips the test on a computer without Chromium. In CI it fails instead: there the page must be looked at.
func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("no Chromium is installed: none of %s is in PATH", strings.Join(browsers, ", "))
	}
	t.Skipf("no Chromium is installed (none of %s is in PATH), and this test looks at the page with it", strings.Join(browsers, ", "))
	return ""
}

var (
	startOnce sync.Once
	shared    context.Context // of the browser that all tests share; each has a tab with storage of its own
	startErr  error
	stop      = func() {}
)

func TestMain(m *testing.M) {
	status := m.Run()
	stop()
	os.Exit(status)
}

// startBrowser starts it without a sandbox for root, to whom Chromium refuses one.
func startBrowser(path string) {
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path))
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator)
	stop = func() {
		defer stopAllocator()
		bounded, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := chromedp.Cancel(bounded); err != nil { // waits until the browser has gone
			fmt.Fprintln(os.Stderr, "the browser did not close:", err)
		}
	}
	shared, startErr = ctx, chromedp.Do(ctx)
}

// screen is what a page is shown on.
type screen struct {
	name          string
	width, height int64
	ratio         float64
	dark          bool
}

func (s screen) metrics() emulation.SetDeviceMetricsOverrideParams {
	return emulation.SetDeviceMetricsOverrideParams{Width: s.width, Height: s.height, DeviceScaleFactor: s.ratio, Mobile: s.width < 600}
}

func (s screen) media() emulation.SetEmulatedMediaParams {
	scheme := "light"
	if s.dark {
		scheme = "dark"
	}
	return emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
}

// tab is a page in the browser, and what it did beside being shown.
type tab struct {
	t   *testing.T
	ctx context.Context
	mu  sync.Mutex // guards the next two
	// requests are the addresses that it asked for, complaints what it told the console and errors that nobody caught.
	requests, complaints []string
}

// open shows the file at path. The tab is closed when the test ends.
func open(t *testing.T, path string, s screen) *tab {
	t.Helper()
	browser := findBrowser(t)
	startOnce.Do(func() { startBrowser(browser) })
	if startErr != nil {
		t.Fatalf("%s does not start: %v", browser, startErr)
	}
	p := &tab{t: t}
	ctx, closeTab := chromedp.NewContext(shared, chromedp.WithNewBrowserContext(), chromedp.WithListener(p.hear))
	t.Cleanup(closeTab)
	if err := chromedp.Do(ctx); err != nil { // a deadline here would be the browser's
		t.Fatal(err)
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	t.Cleanup(cancel)
	p.ctx = bounded
	call(p, network.Enable, network.EnableParams{})
	call(p, log.Enable, cdp.Empty{})
	call(p, emulation.SetDeviceMetricsOverride, s.metrics())
	call(p, emulation.SetEmulatedMedia, s.media())
	if err := chromedp.Do(p.ctx, chromedp.Navigate(address(path))); err != nil {
		t.Fatal(err)
	}
	return p
}

// address is that of a file.
func address(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

func (p *tab) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	case *runtime.EventConsoleAPICalled:
		p.complaints = append(p.complaints, fmt.Sprintf("console.%s", e.Type))
		for _, arg := range e.Args {
			p.complaints = append(p.complaints, fmt.Sprintf("  %s%s", arg.Value, arg.Description))
		}
	case *runtime.EventExceptionThrown:
		p.complaints = append(p.complaints, exception(e.ExceptionDetails))
	case *log.EventEntryAdded:
		p.complaints = append(p.complaints, fmt.Sprintf("%s %s: %s", e.Entry.Source, e.Entry.Level, e.Entry.Text))
	}
}

func exception(e *runtime.ExceptionDetails) string {
	text := fmt.Sprintf("%s at %d:%d", e.Text, e.LineNumber, e.ColumnNumber)
	if e.Exception != nil {
		text += " " + e.Exception.Description
	}
	return text
}

func (p *tab) heard() (requests, complaints []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests), slices.Clone(p.complaints)
}

// call sends a command of the DevTools protocol.
func call[P, R any](p *tab, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	answer, err := chromedp.Call(p.ctx, command, params)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer
}

// ask returns the value of a JavaScript expression, a promise's once it is kept.
func ask[T any](p *tab, expression string) T {
	p.t.Helper()
	answer, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatal(err)
	}
	return answer
}

// settle waits until the page has painted what it was told to.
func (p *tab) settle() {
	p.t.Helper()
	ask[bool](p, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
}

// picture saves what the page looks like from its top down to the end of an element.
func (p *tab) picture(name, element string) {
	p.t.Helper()
	box := ask[[]float64](p, `[document.documentElement.clientWidth, document.querySelector('`+element+`').getBoundingClientRect().bottom + scrollY]`)
	shot := page.CaptureScreenshotParams{Clip: &page.Viewport{Width: box[0], Height: box[1] + 16, Scale: 1}, CaptureBeyondViewport: new(true), OptimizeForSpeed: new(true)}
	p.save(name, call(p, page.CaptureScreenshot, shot).Data)
}

// save writes a file into the directory that ARTIFACTS names, else into one that goes with the test.
func (p *tab) save(name string, content []byte) {
	p.t.Helper()
	dir := os.Getenv("ARTIFACTS")
	if dir == "" {
		dir = p.t.TempDir()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
