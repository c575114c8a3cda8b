package api_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// TestLivePartsInABrowser: when only the time passes, the times of the page change, and nothing is announced. When the call changes, that
// is announced. What a reader opened and typed stays in both cases.
func TestLivePartsInABrowser(t *testing.T) {
	d, host := servesConsole(t)
	q := d.Hold(2)
	p := &traveller{newTab(t, host, "light", 1000), device{}, host}
	p.signsIn(d, alice, ledger.RoleApprover)
	p.opens("/console/calls/" + q.RunID)
	p.until("the page is there", "document.getElementById('reason')")
	const left = "document.querySelector('#head .chip time').textContent"
	see := func(expression string) string {
		t.Helper()
		text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("String("+expression+")"))
		check.NoError(t, err)
		return text
	}
	before := see(left)
	p.do(chromedp.Evaluate[chromedp.Void](`document.getElementById('reason').value = 'as agreed with Bob';
		document.querySelectorAll('details').forEach((d) => { d.open = true; })`))

	comesBack := chromedp.Evaluate[chromedp.Void]("document.dispatchEvent(new Event('visibilitychange'))")
	d.Clock.Add(7 * time.Minute)
	p.do(comesBack)
	p.until("the time passes", fmt.Sprintf("%s !== %q", left, before))
	kept := func() {
		t.Helper()
		if said := see("document.getElementById('reason').value"); said != "as agreed with Bob" {
			t.Errorf("the reason is %q", said)
		}
		if closed := see("document.querySelectorAll('details:not([open])').length"); closed != "0" {
			t.Errorf("%s details were closed", closed)
		}
	}
	kept()
	if said := see("document.getElementById('said').textContent"); said != "" {
		t.Errorf("the page announces %q when only the time passed", said)
	}

	d.Cast(ledgertest.Ballot(q, d.Approver(bob)))
	p.do(comesBack)
	p.until("the change is announced", "document.getElementById('said').textContent === 'The page has changed.'")
	p.shows("1 of 2")
	kept()
	p.quiet()
}

// TestDenialWithoutAReasonInABrowser: the error is beside the field, which has the focus.
func TestDenialWithoutAReasonInABrowser(t *testing.T) {
	d, host := servesConsole(t)
	q := d.Hold(2)
	p := &traveller{newTab(t, host, "dark", 390), device{}, host}
	p.signsIn(d, alice, ledger.RoleApprover)
	p.opens("/console/calls/" + q.RunID)
	p.use("button.deny")
	p.shows("Write why you deny the call")
	p.until("the field has the focus", "document.activeElement.id === 'reason' && document.activeElement.getAttribute('aria-invalid') === 'true'")
	p.fits("denial-without-a-reason")
	d.Clock.Add(7 * time.Minute)
	p.do(chromedp.Evaluate[chromedp.Void]("document.dispatchEvent(new Event('visibilitychange'))"))
	p.until("the time passes", "document.querySelector('#head .chip time').textContent === '53 min left'")
	p.until("the error stays, and nothing is announced",
		"document.getElementById('reason-error') && document.getElementById('said').textContent === ''")
	p.writes("#reason", "not today")
	p.use("button.deny")
	p.shows("denied")
	p.quiet()
}
