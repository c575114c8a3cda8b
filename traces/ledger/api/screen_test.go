package api_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	browsertest "pgfsm/internal/test/browser"
	"pgfsm/internal/test/check"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// TestCallOnAPhone: the first screen of a held call shows who asks, for what, with which arguments, what is unusual, and both buttons, without
// scrolling, and the form covers none of it.
func TestCallOnAPhone(t *testing.T) {
	d, host := servesConsole(t)
	first := d.ask(1, carol, "Refund", `{"amount":42.5,"currency":"EUR","notify":true,"payment_id":"pay_7Ad0Kk31","reason":"lost"}`, "")
	d.Cast(ledgertest.Ballot(first, d.Approver(bob)))
	q := d.ask(2, carol, "Refund", `{"amount":4800,"currency":"EUR","notify":true,"payment_id":"pay_9Qx2LmT4","reason":"lost"}`, "")
	d.Token(carol, ledger.RoleAgent) // without one, her call would not be made
	b := newTab(t, host, "light", 390)
	p := &traveller{b, device{width: 390}, host}
	p.signsIn(d, alice, ledger.RoleApprover)
	b.do(chromedp.EmulateViewport(390, 844))
	p.opens("/console/calls/" + q.RunID)
	p.shows(statestest.Tool)
	hidden, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](`(() => {
		const form = document.getElementById('decide').getBoundingClientRect();
		const seen = (e, limit) => { const r = e.getBoundingClientRect(); return r.height > 0 && r.top >= 0 && r.bottom <= limit + 1; };
		const parts = { tool: ['h1'], requester: ['.lead b'], argument: ['.args > li', 5], sign: ['.signs > li', 1, 1] };
		const bad = [];
		for (const [name, [selector, count = 1, atLeast]] of Object.entries(parts)) {
			const all = [...document.querySelectorAll(selector)].slice(0, atLeast ?? undefined);
			if (all.length < count) bad.push(name + ': there are ' + all.length);
			for (const e of all.filter((e) => !seen(e, form.top)))
				bad.push(name + ': ' + e.textContent.trim() + ' ends at ' + e.getBoundingClientRect().bottom + ', the form begins at ' + form.top);
		}
		for (const e of document.querySelectorAll('.decide button')) if (!seen(e, innerHeight)) bad.push('button ' + e.textContent);
		return bad;
	})()`))
	check.NoError(t, err)
	for _, what := range hidden {
		t.Errorf("the first screen hides: %s", what)
	}
	browsertest.Shoot(t, b.ctx, "call-on-a-phone")
	b.quiet()
}
