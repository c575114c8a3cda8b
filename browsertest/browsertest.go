// Package browsertest shows pages to a browser in tests, and notes what the browser complains of.
package browsertest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "a folder for pictures of pages, to be looked at")

// patience bounds everything that a browser does in one test. It is for a machine that is busy with other things.
const patience = 2 * time.Minute

// Complaints are what a browser has against pages: violations of their policy, errors, dialogs, and requests that they must not send.
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
func Start(t testing.TB, allowed func(*network.EventRequestWillBeSent) bool) (context.Context, *Complaints) {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path(t)), chromedp.NoSandbox, chromedp.WSURLReadTimeout(patience))
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
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const why = "there is no browser: install chromium, or name one in CHROME"
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}

// Emulate gives the browser the window and the colour scheme of a device.
func Emulate(t testing.TB, ctx context.Context, scheme string, width int) {
	t.Helper()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	if err == nil {
		err = chromedp.Do(ctx, chromedp.EmulateViewport(int64(width), 800))
	}
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
}
