package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/present"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/ledgertest"
)

// TestSummary: what happened in a period, with what to do about refusals.
func TestSummary(t *testing.T) {
	d := newFixture(t)
	auditor := d.token(ledger.RoleAuditor, "auditor")
	read := func(query string) (s present.Summary) {
		t.Helper()
		got := d.call(http.MethodGet, "/summary"+query, auditor, "")
		got.want(t, 200, "")
		got.into(t, &s)
		return s
	}
	if s := read(""); s.Runs != 0 || s.Partial || s.Active != nil || len(s.Statuses)+len(s.Times)+len(s.Refusals) != 0 {
		t.Errorf("an empty ledger: %+v", s)
	}
	bundle := statestest.MustBundle(statestest.Content(), nil)
	check.NoError(t, d.Activate(t.Context(), bundle, ledger.Why{Cause: ledger.CauseStart}))
	d.Ask(carol, statestest.Content())
	d.Clock.Add(time.Hour)
	denied := d.Hold(1)
	d.Clock.Add(time.Minute)
	d.deny(denied, d.token(ledger.RoleApprover, alice)).want(t, 200, "")
	d.Hold(1)
	d.Ask(carol, ledgertest.Holding(1))
	d.Clock.Add(time.Second)
	s := read("?since=30m")
	want := []present.StatusCount{{Status: ledger.Pending, Runs: 2}, {Status: ledger.Denied, Runs: 1}}
	if s.Runs != 3 || len(s.Statuses) != 2 || s.Statuses[0] != want[0] || s.Statuses[1] != want[1] || s.Unit != 600 || s.First != denied.At {
		t.Errorf("%+v", s)
	}
	if remedy := policy.Remedy(policy.CodeApprovalDenied); len(s.Refusals) != 1 || s.Refusals[0] != (present.Refusal{Code: "approval_denied", Runs: 1, Remedy: remedy}) {
		t.Errorf("refusals: %+v", s.Refusals)
	}
	if w := s.Approvals; w.Decided != 1 || w.Median != 60 || w.Longest != 60 || w.Pending != 2 {
		t.Errorf("approvals: %+v", w)
	}
	if s.Active == nil || s.Active.Bundle != bundle.Digest() || s.Active.By != d.Owner() {
		t.Errorf("active: %+v", s.Active)
	}
	if s := read(""); s.Runs != 4 || s.Unit != 3600 {
		t.Errorf("a day: %+v", s)
	}
	if s := read("?since=2001-01-01"); s.Runs != 4 || s.Unit != 86400 || !strings.HasSuffix(s.Times[0].At, "T00:00:00Z") {
		t.Errorf("since long ago: %+v", s)
	}
	d.call(http.MethodGet, "/summary?since=yesterday", auditor, "").want(t, 400, api.QueryInvalid)
	d.call(http.MethodGet, "/summary?until=1h", auditor, "").want(t, 400, api.QueryInvalid)
}
