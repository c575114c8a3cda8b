package console_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"pgfsm/browsertest"
	"pgfsm/loopback"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/console"
	"pgfsm/traces/ledger/ledgertest"
)

// A tab is a browser's tab.
type tab struct {
	*testing.T
	ctx        context.Context
	complaints *browsertest.Complaints
}

// newTab starts a browser.
func newTab(t *testing.T, host, scheme string, width int) *tab {
	t.Helper()
	ctx, complaints := browsertest.Start(t, func(e *network.EventRequestWillBeSent) bool {
		return strings.HasPrefix(e.Request.URL, "http://"+host+"/console/")
	})
	browsertest.Emulate(t, ctx, scheme, width)
	return &tab{T: t, ctx: ctx, complaints: complaints}
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

// until waits for an expression to be true.
func (b *tab) until(what, expression string) {
	b.Helper()
	ctx, stop := context.WithTimeout(b.ctx, 40*time.Second) // for a machine that is busy
	defer stop()
	err := ledger.Poll(ctx, 20*time.Millisecond, func() (bool, error) {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		return err == nil && is, ctx.Err() // a page that goes away has no answer
	})
	if err != nil {
		b.Fatalf("%s: %v: %s", what, err, b.text())
	}
}

// shows waits for a text.
func (b *tab) shows(text string) {
	b.Helper()
	b.until("the page shows "+text, fmt.Sprintf("document.readyState === 'complete' && document.body.innerText.includes(%q)", text))
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
		if err != nil {
			b.Fatal(err)
		}
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

// serves serves a console until the test ends, behind some handlers.
func serves(t *testing.T, before ...func(http.Handler) http.Handler) (d *desk, host string) {
	t.Helper()
	on, err := loopback.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d = newDeskAt(t, loopback.Hosts(on)...)
	for _, wrap := range before {
		d.handler = wrap(d.handler)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- api.Serve(ctx, on, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }))
	}()
	t.Cleanup(func() {
		d.console.Close()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Serve() = %v", err)
		}
	})
	return d, on.Addr().String()
}

// TestApproverInABrowser takes an approver from the sign-in link to the end of a call.
func TestApproverInABrowser(t *testing.T) {
	for _, tc := range []struct {
		name, scheme string
		width        int
		keyboard     bool
	}{{"desk", "light", 1280, false}, {"phone", "dark", 360, true}} {
		t.Run(tc.name, func(t *testing.T) {
			d, host := serves(t)
			link, err := d.NewLink(t.Context(), d.Approver(alice))
			if err != nil {
				t.Fatal(err)
			}
			before := d.ask(1, carol, "Clean up", `{"path":"/srv/reports","recursive":false}`, "Delete a folder.")
			d.Cast(ledgertest.Ballot(before, d.Approver(bob)))
			b := newTab(t, host, tc.scheme, tc.width)
			use := func(selector string) {
				t.Helper()
				if tc.keyboard {
					b.press(selector)
				} else {
					b.do(chromedp.Click(chromedp.Search(selector)))
				}
			}
			b.do(chromedp.Navigate("http://" + host + console.LinkPath + link))
			b.shows("Sign in as " + alice)
			use("main button")
			b.shows("No call is held")
			q := d.ask(2, carol, "Clean up the old reports", `{"note":"<img src=x onerror=hacked()>\u202e","path":"/srv","recursive":true}`, hostile)
			b.shows("0 of 2") // without a reload
			b.fits(tc.name + "-inbox")
			use("main h2 a")
			b.shows("What differs from the last approved call")
			b.shows(`<img src=x onerror=hacked()>\u202e`)
			b.fits(tc.name + "-call")
			d.Cast(ledgertest.Ballot(q, d.Approver(bob)))
			b.shows("1 of 2")
			if tc.keyboard {
				b.focus("#reason")
				b.do(chromedp.KeyEvent("looks right"))
			} else {
				b.do(chromedp.SendKeys(chromedp.Search("#reason"), "looks right"))
			}
			use("button.approve")
			b.shows("pgfsm makes the call within seconds")
			b.shows("looks right")
			use("#standing > p a")
			b.shows("Steps")
			b.until("the machine is drawn", "document.querySelector('figure svg').getBoundingClientRect().width > 200")
			b.fits(tc.name + "-run")
			if votes := d.Votes(q.RunID); len(votes) != 2 || votes[1].By != alice || votes[1].Reason != "looks right" {
				t.Errorf("the votes are %+v", votes)
			}
			b.do(chromedp.Navigate("http://" + host + console.CallPath + q.RunID)) // as a web hook names it
			b.shows("pgfsm makes the call within seconds")
			use("nav a")
			b.shows("No call is held")
			use("header button")
			b.shows("enter your token")
			b.do(chromedp.Navigate("http://" + host + console.Path))
			b.shows("enter your token")
			if all := b.complaints.Take(); len(all) > 0 {
				t.Errorf("the browser says: %s", strings.Join(all, "\n"))
			}
		})
	}
}

// TestVoteWithoutScript: everything that an approver needs works without JavaScript.
func TestVoteWithoutScript(t *testing.T) {
	d, host := serves(t)
	q := d.Hold(1)
	b := newTab(t, host, "light", 360)
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate("http://"+host+console.CallPath+q.RunID),
		chromedp.SendKeys(chromedp.Search("#token"), d.Token(alice, ledger.RoleApprover)), chromedp.Click(chromedp.Search("button.main")),
		chromedp.WaitVisible(chromedp.Search("button.deny")),
		chromedp.SendKeys(chromedp.Search("#reason"), "not today"), chromedp.Click(chromedp.Search("button.deny")),
		chromedp.WaitVisible(chromedp.Search("p.standing.denied")))
	if votes := d.Votes(q.RunID); len(votes) != 1 || votes[0].Reason != "not today" {
		t.Errorf("the votes are %+v", votes)
	}
}
