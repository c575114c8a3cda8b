package api_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// TestWarningsComeWhileACallIsRead: a page that somebody reads says as soon as it is known that the call will not be made, and compares its
// arguments with the call that it names.
func TestWarningsComeWhileACallIsRead(t *testing.T) {
	d, host := servesConsole(t)
	_, token, err := d.CreateToken(t.Context(), ledger.LocalUser("local:root"), carol, ledger.RoleAgent, "")
	check.NoError(t, err)
	first := d.ask(1, carol, "one", `{"amount":1}`, "")
	d.Cast(ledgertest.Ballot(first, d.Approver(bob)))
	later := d.ask(1, carol, "two", `{"amount":2}`, "")
	q := d.ask(2, carol, "three", `{"amount":3}`, "")
	p := &traveller{newTab(t, host, "light", 1000), device{}, host}
	p.signsIn(d, alice, ledger.RoleApprover)
	p.opens("/console/calls/" + q.RunID)
	p.until("the page compares with the first call", "document.querySelector('.args del').textContent === '1'")
	comesBack := chromedp.Evaluate[chromedp.Void]("document.dispatchEvent(new Event('visibilitychange'))")
	d.Cast(ledgertest.Ballot(later, d.Approver(bob)))
	p.do(comesBack)
	p.until("the page names the later call", fmt.Sprintf("document.querySelector('#compared a').href.endsWith(%q)", later.RunID))
	p.until("the page compares with the later call", "document.querySelector('.args del').textContent === '2'")
	_, err = d.RevokeToken(t.Context(), ledger.LocalUser("local:root"), token.ID)
	check.NoError(t, err)
	p.do(comesBack)
	p.shows("This call will not be made, even if approvers agree")
	p.quiet()
}
