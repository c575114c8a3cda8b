package report

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/test/browser"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// onlyFile allows a page to ask for itself.
func onlyFile(e *network.EventRequestWillBeSent) bool {
	return strings.HasPrefix(e.Request.URL, "file:") && e.Type == network.ResourceTypeDocument
}

// seen is what a page looks like from inside.
type seen struct {
	Width, Scroll     int      // of the window, and of what it holds
	Tables, Charts    int      // that can be seen
	Bars, Machines    int      // drawn
	Loose             []string // tables that are wider than the window and in no box that scrolls
	Small             []string // texts that are too small to be read
	Back, Ink, Bar    string   // colours
	Scripts, Strange  int      // elements that a page must not have
	Headings, Unnamed int      // and charts without a name
	Hacked            bool
}

const look = `(() => {
  const all = (q) => [...document.querySelectorAll(q)];
  const shown = (e) => { const b = e.getBoundingClientRect(); return b.width > 0 && b.height > 0; };
  const style = (e, what) => e ? getComputedStyle(e)[what] : '';
  const charts = all('svg.chart').filter(shown);
  return {
    Width: innerWidth, Scroll: document.scrollingElement.scrollWidth,
    Tables: all('table').filter(shown).length, Charts: charts.length,
    Bars: all('svg.chart rect.bar').filter(shown).length, Machines: all('figure.wide svg').filter(shown).length,
    Loose: all('table').filter(e => e.getBoundingClientRect().width > innerWidth && !e.closest('.scroll')).map(e => e.getAttribute('aria-label')),
    Small: all('svg.chart text').filter(e => e.getBoundingClientRect().height < 11).map(e => e.textContent),
    Back: style(document.body, 'backgroundColor'), Ink: style(document.body, 'color'), Bar: style(document.querySelector('rect.bar.ours'), 'fill'),
    Scripts: document.scripts.length,
    Strange: all('img, iframe, object, embed, form, input, video, audio, base, link, [style], [onload], [onerror], [onclick]').length,
    Headings: all('h2').length, Unnamed: charts.filter(e => !e.querySelector('title').textContent || !e.querySelector('desc').textContent).length,
    Hacked: typeof window.hacked !== 'undefined',
  };
})()`

// open shows a page as a device would, and says how it looks.
func open(t *testing.T, ctx context.Context, file, scheme string, width int) seen {
	t.Helper()
	at := (&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String()
	browsertest.Emulate(t, ctx, scheme, width)
	var s seen
	err := chromedp.Do(ctx, chromedp.Navigate(at))
	if err == nil {
		s, err = chromedp.Run(ctx, chromedp.Evaluate[seen](look))
	}
	if err != nil {
		t.Fatalf("%s at %d: %v", scheme, width, err)
	}
	return s
}

// TestPageInABrowser opens the page as people will.
func TestPageInABrowser(t *testing.T) {
	ctx, received := browsertest.Start(t, onlyFile)
	pages := map[string]string{"real": written(t, read(t, "testdata/results")), "hostile": written(t, read(t, hostile(t)))}
	for _, tt := range []struct {
		name, page, scheme string
		width              int
		back, ink, bar     string
	}{
		{"desk-light", "real", "light", 1280, "rgb(255, 255, 255)", "rgb(31, 35, 40)", "rgb(0, 114, 178)"},
		{"desk-dark", "real", "dark", 1280, "rgb(13, 17, 23)", "rgb(240, 246, 252)", "rgb(86, 180, 233)"},
		{"phone-light", "real", "light", 360, "rgb(255, 255, 255)", "rgb(31, 35, 40)", "rgb(0, 114, 178)"},
		{"phone-dark", "real", "dark", 360, "rgb(13, 17, 23)", "rgb(240, 246, 252)", "rgb(86, 180, 233)"},
		{"hostile-desk", "hostile", "light", 1280, "rgb(255, 255, 255)", "rgb(31, 35, 40)", "rgb(0, 114, 178)"},
		{"hostile-phone", "hostile", "dark", 360, "rgb(13, 17, 23)", "rgb(240, 246, 252)", "rgb(86, 180, 233)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, ctx, pages[tt.page], tt.scheme, tt.width)
			if said := received.Take(); len(said) > 0 {
				t.Errorf("the browser says: %s", strings.Join(said, "\n"))
			}
			if s.Width != tt.width || s.Scroll > s.Width {
				t.Errorf("the window is %d wide and its content %d, want %d and no more", s.Width, s.Scroll, tt.width)
			}
			if s.Tables < 8 || s.Charts < 3 || s.Bars < 12 || s.Machines != 1 || s.Headings < 8 {
				t.Errorf("there are %d tables, %d charts with %d bars, %d machines and %d headings", s.Tables, s.Charts, s.Bars, s.Machines, s.Headings)
			}
			if len(s.Loose) > 0 || len(s.Small) > 0 || s.Unnamed > 0 {
				t.Errorf("tables out of their box: %q; texts too small: %q; charts without a name: %d", s.Loose, s.Small, s.Unnamed)
			}
			if s.Back != tt.back || s.Ink != tt.ink || s.Bar != tt.bar {
				t.Errorf("background %s, text %s, bars %s, want %s, %s, %s", s.Back, s.Ink, s.Bar, tt.back, tt.ink, tt.bar)
			}
			if s.Scripts > 0 || s.Strange > 0 || s.Hacked {
				t.Errorf("the page has %d scripts and %d elements that it must not have; hacked: %t", s.Scripts, s.Strange, s.Hacked)
			}
			browsertest.Shoot(t, ctx, tt.name)
			forbids(t, ctx, received)
		})
	}
}

// smuggle puts into an open page what a hostile file would, had it come through: a script, an image and a style.
const smuggle = `(() => {
  const s = document.createElement('script');
  s.textContent = 'window.hacked = 1';
  document.body.append(s);
  const i = document.createElement('img');
  i.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==';
  document.body.append(i);
  const c = document.createElement('style');
  c.textContent = 'body { color: rgb(1, 2, 3) }';
  document.body.append(c);
  return { Hacked: typeof window.hacked !== 'undefined', Ink: getComputedStyle(document.body).color };
})()`

// forbids shows that the page's own policy stops what is not its own. The page is spoiled afterwards.
func forbids(t *testing.T, ctx context.Context, received *browsertest.Complaints) {
	t.Helper()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[seen](smuggle))
	if err != nil {
		t.Fatal(err)
	}
	if s.Hacked || s.Ink == "rgb(1, 2, 3)" {
		t.Errorf("a script runs: %t; text is %s", s.Hacked, s.Ink)
	}
	// Complaints come beside the answer: they are waited for, and the last of them come before the next page has loaded.
	all := received.Take()
	for range 1000 {
		if len(all) >= 2 {
			break
		}
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("true")); err != nil {
			t.Fatal(err)
		}
		all = append(all, received.Take()...)
	}
	if len(all) < 2 {
		t.Errorf("the browser has %d complaints", len(all))
	}
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	received.Take()
}

// written keeps a page's HTML in a file.
func written(t *testing.T, r *Results) string {
	t.Helper()
	doc, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, doc, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, dir string) *Results {
	t.Helper()
	r, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
