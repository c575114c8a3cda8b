package api_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	browsertest "pgfsm/internal/test/browser"
	"pgfsm/internal/test/check"
	"pgfsm/internal/web/loopback"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/ledgertest"
)

// A tab is a browser's tab.
type tab struct {
	*testing.T
	ctx        context.Context
	complaints *browsertest.Complaints
}

// newTab starts a browser.
func newTab(t *testing.T, host, scheme string, width int, others ...string) *tab {
	t.Helper()
	ctx, complaints := browsertest.Start(t, func(e *network.EventRequestWillBeSent) bool {
		return strings.HasPrefix(e.Request.URL, "http://"+host+"/console/") ||
			slices.ContainsFunc(others, func(url string) bool { return strings.HasPrefix(e.Request.URL, url+"/") })
	})
	browsertest.Emulate(t, ctx, scheme, width)
	return &tab{T: t, ctx: ctx, complaints: complaints}
}

// quiet checks that the browser has nothing against what it was shown.
func (b *tab) quiet() {
	b.Helper()
	if all := b.complaints.Take(); len(all) > 0 {
		b.Errorf("the browser says: %s", strings.Join(all, "\n"))
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.Fatalf("%v\n%s", err, b.text())
	}
}

// text is what the page shows.
func (b *tab) text() string {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body ? document.body.innerText : ''"))
	if err != nil {
		return err.Error()
	}
	return text
}

// until waits for an expression to be true on a page that is loaded.
func (b *tab) until(what, expression string) {
	b.Helper()
	ctx, stop := context.WithTimeout(b.ctx, 40*time.Second) // for a machine that is busy
	defer stop()
	err := ledger.Poll(ctx, 20*time.Millisecond, func() (bool, error) {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("document.readyState === 'complete' && !!("+expression+")"))
		return err == nil && is, ctx.Err() // a page that goes away has no answer
	})
	if err != nil {
		b.Fatalf("%s: %v: %s", what, err, b.text())
	}
}

// shows waits for a text.
func (b *tab) shows(text string) {
	b.Helper()
	b.until("the page shows "+text, fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// press moves to an element by the tabulator's key alone, and presses Enter.
func (b *tab) press(selector string) {
	b.Helper()
	b.focus(selector)
	b.do(chromedp.KeyEvent(kb.Enter))
}

func (b *tab) focus(selector string) {
	b.Helper()
	for range 100 {
		b.do(chromedp.KeyEvent(kb.Tab))
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](fmt.Sprintf("document.activeElement.matches(%q)", selector)))
		check.NoError(b, err)
		if is {
			return
		}
	}
	b.Fatalf("the keyboard does not reach %s", selector)
}

// fits checks that the page needs no scrolling to the side and ran nothing of what it shows, and keeps a picture.
func (b *tab) fits(name string) {
	b.Helper()
	wide, err := chromedp.Run(b.ctx, chromedp.Evaluate[int]("document.scrollingElement.scrollWidth - innerWidth"))
	if err != nil || wide > 0 {
		b.Errorf("%s is %d too wide, %v", name, wide, err)
	}
	hacked, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](
		"'hacked' in window || !!document.querySelector('main img, main script, main iframe, [onerror]')"))
	if err != nil || hacked {
		b.Errorf("%s: text became markup, %v", name, err)
	}
	browsertest.Shoot(b.T, b.ctx, name)
}

// servesConsole serves a console until the test ends.
func servesConsole(t *testing.T) (d *fixture, host string) {
	t.Helper()
	on, err := loopback.Listen("127.0.0.1:0")
	check.NoError(t, err)
	d = newFixtureOn(t, ledgertest.NewStore(t), loopback.Hosts(on)...)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- api.Serve(ctx, on, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }))
	}()
	t.Cleanup(func() {
		d.handler.Close()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Serve() = %v", err)
		}
	})
	return d, on.Addr().String()
}
