// Package browsertest shows pages to a browser in tests, and notes what the browser complains of.
package browsertest

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/tool"
)

var screenshots = flag.String("screenshots", "", "a folder for pictures of pages, to be looked at")

// patience bounds everything that a browser does in one test. It is for a machine that is busy with other things.
const patience = 2 * time.Minute

// Complaints holds the complaints of a browser about pages: violations of their policy, errors, dialogs, and requests that they
// must not send.
type Complaints struct {
	allowed func(*network.EventRequestWillBeSent) bool
	mu      sync.Mutex
	all     []string
}

// Take returns the complaints since the last call.
func (c *Complaints) Take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.all
	c.all = nil
	return all
}

func (c *Complaints) hear(event any) {
	complaint := ""
	switch e := event.(type) {
	case *cdpruntime.EventExceptionThrown:
		complaint = "exception: " + e.ExceptionDetails.Text
	case *cdpruntime.EventConsoleAPICalled:
		complaint = fmt.Sprint("console: ", e.Type, e.Args)
	case *cdplog.EventEntryAdded:
		if e.Entry.Source != "network" { // requests are judged below, and an answer of 401 is no error
			complaint = fmt.Sprint("log: ", e.Entry.Source, " ", e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		if !c.allowed(e) {
			complaint = "request: " + e.Request.URL
		}
	case *cdppage.EventJavascriptDialogOpening:
		complaint = "dialog: " + e.Message
	}
	if complaint != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all = append(c.all, complaint)
	}
}

// Start starts a browser, which ends with the test. allowed says which requests pages may send. Without a browser the test is skipped, except
// where CI is set.
func Start(t testing.TB, allowed func(*network.EventRequestWillBeSent) bool, flags ...chromedp.ExecAllocatorOption) (context.Context, *Complaints) {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path(t)), chromedp.NoSandbox, chromedp.WSURLReadTimeout(patience))
	options = append(options, flags...)
	limited, done := context.WithTimeout(t.Context(), patience)
	t.Cleanup(done)
	allocated, release := chromedp.NewExecAllocator(limited, options...)
	t.Cleanup(release)
	ctx, closeTab := chromedp.NewContext(allocated)
	t.Cleanup(closeTab)
	c := &Complaints{allowed: allowed}
	if err := chromedp.Listen(ctx, c.hear); err != nil {
		t.Fatalf("the browser does not start: %v", err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	return ctx, c
}

// path finds a browser.
func path(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("CHROME"); path != "" {
		return path
	}
	return tool.Path(t, "chromium, or set CHROME to a browser's path", "chromium", "chromium-browser", "google-chrome")
}

// Emulate gives the browser the window and the colour scheme of a device, and more features that style sheets ask for.
func Emulate(t testing.TB, ctx context.Context, scheme string, width int, more ...*emulation.MediaFeature) {
	t.Helper()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: append([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}, more...),
	})
	if err == nil {
		err = chromedp.Do(ctx, chromedp.EmulateViewport(int64(width), 800))
	}
	check.NoError(t, err)
}

// Axe returns the serious and critical findings of axe-core on the page. root is the path of the module's folder.
func Axe(t testing.TB, ctx context.Context, root string) (found []string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(tool.Modules(t, root), "axe-core", "axe.min.js"))
	check.NoError(t, err)
	// A separate world has none of the page's policy, which forbids scripts like this one.
	frames, err := chromedp.Call(ctx, cdppage.GetFrameTree, cdp.Empty{})
	check.NoError(t, err)
	world, err := chromedp.Call(ctx, cdppage.CreateIsolatedWorld, cdppage.CreateIsolatedWorldParams{FrameID: frames.FrameTree.Frame.ID})
	check.NoError(t, err)
	there := func(p *cdpruntime.EvaluateParams) {
		wait := true
		p.ContextID, p.AwaitPromise = world.ExecutionContextID, &wait
	}
	found, err = chromedp.Run(ctx, chromedp.Evaluate[[]string](string(source)+`;
		axe.run(document, {preload: false, resultTypes: ['violations']}).then(({passes, violations}) => passes.length < 5 ? ['axe found nothing to check'] :
			violations.filter((v) => ['serious', 'critical'].includes(v.impact))
				.flatMap((v) => v.nodes.map((n) => v.impact + ': ' + v.id + ': ' + n.html + ': ' + n.failureSummary)))`, there))
	check.NoError(t, err)
	return found
}

// maxHeight bounds a picture of a whole page: docs show where it begins.
const maxHeight = 1800

// Picture writes a small picture of the whole page as far as [maxHeight], or of the part that the window shows.
func Picture(t testing.TB, ctx context.Context, path string, whole bool) {
	t.Helper()
	take := chromedp.CaptureScreenshot()
	if whole {
		take = chromedp.FullScreenshot(100)
	}
	shot, err := chromedp.Run(ctx, take)
	check.NoError(t, err)
	page, err := png.Decode(bytes.NewReader(shot))
	check.NoError(t, err)
	area := page.Bounds()
	area.Max.Y = min(area.Max.Y, maxHeight)
	small := image.NewPaletted(area, frequent(page))
	draw.Draw(small, small.Bounds(), page, page.Bounds().Min, draw.Src) // the nearest colours
	var b bytes.Buffer
	check.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, small))
	check.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
}

// frequent returns the most frequent colours of a picture. The edges of letters have many more, which a viewer does not miss.
func frequent(page image.Image) color.Palette {
	counts := make(map[color.RGBA]int)
	area := page.Bounds()
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			counts[color.RGBAModel.Convert(page.At(x, y)).(color.RGBA)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), bytes.Compare([]byte{a.R, a.G, a.B}, []byte{b.R, b.G, b.B}))
	})
	var colours color.Palette
	for _, c := range all[:min(len(all), 128)] {
		colours = append(colours, c)
	}
	return colours
}

// Shoot writes a picture of the whole page into the folder of -screenshots, if that is set.
func Shoot(t testing.TB, ctx context.Context, name string) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o644)
	}
	check.NoError(t, err)
}
