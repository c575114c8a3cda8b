package report_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	browsertest "pgfsm/internal/test/browser"
	"pgfsm/internal/test/check"
)

// look reports what a page has, after a hostile file would have put a script, an image and a style into it.
const look = `(() => {
  const before = getComputedStyle(document.body).color;
  const bars = [...document.querySelectorAll('meter')].filter(e => e.getBoundingClientRect().width > 0).length;
  const wide = document.scrollingElement.scrollWidth > innerWidth;
  const script = document.createElement('script');
  script.textContent = 'window.hacked = 1';
  document.body.append(script);
  const style = document.createElement('style');
  style.textContent = 'body { color: rgb(1, 2, 3) }';
  document.body.append(style);
  return {
    Bars: bars, Wide: wide, Color: before, After: getComputedStyle(document.body).color,
    Scripts: document.scripts.length, Hacked: typeof window.hacked !== 'undefined',
  };
})()`

type seen struct {
	Bars, Scripts int
	Wide, Hacked  bool
	Color, After  string
}

// TestPageInABrowser opens a page and a hostile page: nothing of a file runs, and the page is no wider than the window.
func TestPageInABrowser(t *testing.T) {
	ctx, received := browsertest.Start(t, func(e *network.EventRequestWillBeSent) bool {
		return strings.HasPrefix(e.Request.URL, "file:") && e.Type == network.ResourceTypeDocument
	})
	for _, tc := range []struct {
		name, dir, scheme string
		width             int
		color             string
	}{
		{"desk-light", "testdata/results", "light", 1280, "rgb(31, 35, 40)"},
		{"phone-dark", "testdata/results", "dark", 360, "rgb(240, 246, 252)"},
		{"hostile-phone", hostile(t), "light", 360, "rgb(31, 35, 40)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report.html")
			check.NoError(t, os.WriteFile(file, pageOf(t, tc.dir), 0o600))
			browsertest.Emulate(t, ctx, tc.scheme, tc.width)
			at := (&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String()
			check.NoError(t, chromedp.Do(ctx, chromedp.Navigate(at)))
			if complaints := received.Take(); len(complaints) > 0 {
				t.Errorf("the browser complains: %s", strings.Join(complaints, "\n"))
			}
			s, err := chromedp.Run(ctx, chromedp.Evaluate[seen](look))
			check.NoError(t, err)
			if s.Bars < 12 || s.Wide || s.Color != tc.color {
				t.Errorf("%d bars, wider than the window: %t, color %s, want bars and %s", s.Bars, s.Wide, s.Color, tc.color)
			}
			if s.Scripts != 1 || s.Hacked || s.After != tc.color {
				t.Errorf("%d scripts, one of them the test's; a script runs: %t; color %s, want %s", s.Scripts, s.Hacked, s.After, tc.color)
			}
			browsertest.Shoot(t, ctx, tc.name)
			check.NoError(t, chromedp.Do(ctx, chromedp.Navigate("about:blank")))
			received.Take()
		})
	}
}
