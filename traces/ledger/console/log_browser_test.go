package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/console"
	"pgfsm/traces/ledger/ledgertest"
)

// TestAuditorInABrowser takes an auditor from what happens now to the text of an entry.
func TestAuditorInABrowser(t *testing.T) {
	for _, tc := range []struct {
		name, scheme string
		width        int
		keyboard     bool
	}{{"desk", "light", 1280, false}, {"phone", "dark", 360, true}} {
		t.Run(tc.name, func(t *testing.T) {
			d, host := serves(t)
			if err := d.Activate(t.Context(), statestest.MustBundle(statestest.Content(), nil), ledger.Why{Cause: ledger.CauseStart}); err != nil {
				t.Fatal(err)
			}
			denied := ledgertest.Ballot(d.ask(1, hostile, "Clean up", `{"path":"/srv"}`, "Delete a folder."), d.Approver(bob))
			denied.Approve, denied.Reason = false, hostile
			d.Cast(denied)
			d.Ask(carol, statestest.Content())
			link, err := d.NewLink(t.Context(), d.Caller(d.Token(alice, ledger.RoleAuditor)))
			if err != nil {
				t.Fatal(err)
			}
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
			use("nav a[href$=now]")
			b.shows("approval_denied")
			b.until("the pictures are drawn", "[...document.querySelectorAll('svg.chart')].filter(p => p.getBoundingClientRect().width > 200).length === 2")
			b.fits(tc.name + "-now")
			use("nav a[href$=log]")
			b.shows("approval.denied")
			b.fits(tc.name + "-log")
			d.Ask(carol, statestest.Content())
			var end ledger.End
			d.Look(func(r ledger.Reader) (err error) {
				end, err = r.End()
				return err
			})
			b.shows(fmt.Sprintf("looked at the entries 0 to %d", end.Size-1)) // without a reload
			use("#entries td a")
			b.shows("which the text below has")
			b.fits(tc.name + "-entry")
			if all := b.complaints.Take(); len(all) > 0 {
				t.Errorf("the browser says: %s", strings.Join(all, "\n"))
			}
		})
	}
}
