package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgfsm/internal/present"
	"pgfsm/internal/test/check"
	"pgfsm/policy/rules"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// TestRunDocuments: steps, what-if and inclusion are for people who may read, and only auditors get the evidence.
func TestRunDocuments(t *testing.T) {
	d := newFixture(t)
	done := d.Ask(carol, statestest.Content())
	held := d.Hold(1)
	denying := statestest.Content()
	denying.Policy = statestest.Policies(rules.Policy{ID: "no", Effect: rules.Deny, Reason: "Not any more."})
	get := func(role, path string) reply { return d.call(http.MethodGet, path, d.token(role, role+"-name"), "") }
	get(ledger.RoleAuditor, "/what-if/"+done.RunID).want(t, http.StatusBadRequest, "query_invalid") // nothing is active
	check.NoError(t, d.Activate(t.Context(), statestest.MustBundle(denying, nil), ledger.Why{Cause: ledger.CauseStart}))
	for _, path := range []string{"/steps/", "/what-if/", "/inclusion/"} {
		d.call(http.MethodGet, path+done.RunID, "", "").want(t, http.StatusUnauthorized, "token_missing")
		get(ledger.RoleAgent, path+done.RunID).want(t, http.StatusForbidden, "role_not_sufficient")
		get(ledger.RoleAuditor, path+ledgertest.NewID(t)).want(t, http.StatusNotFound, "request_unknown")
	}
	for _, role := range []string{ledger.RoleAuditor, ledger.RoleApprover, ledger.RoleAdmin} {
		var steps present.Steps
		got := get(role, "/steps/"+done.RunID)
		got.into(t, &steps)
		if n := len(steps.Steps); steps.UnderWay || n == 0 || steps.Steps[n-1].To != "answered" {
			t.Errorf("the steps are %+v", steps)
		}
		if evidence := strings.Contains(string(got.body), "400 days"); evidence != (role == ledger.RoleAuditor) {
			t.Errorf("%s sees the evidence: %t", role, evidence)
		}
		var judged present.WhatIf
		get(role, "/what-if/"+done.RunID).into(t, &judged)
		if judged.Own.Decision != "allow" || judged.Judged.Decision != "deny" || !strings.Contains(judged.Judged.Reason, "Not any more.") || !slices.Contains(judged.Changes, "newly-denied") {
			t.Errorf("what if: %+v", judged)
		}
		var in ledger.Inclusion
		get(role, "/inclusion/"+held.RunID).into(t, &in)
		if in.Index != held.Entry || in.Size <= in.Index || len(in.Entries) != held.Entries {
			t.Errorf("the inclusion is %+v", in)
		}
	}
	own := url.QueryEscape(string(done.Bundle))
	var same present.WhatIf
	get(ledger.RoleAuditor, "/what-if/"+done.RunID+"?bundle="+own).into(t, &same)
	if len(same.Changes) != 0 || same.Bundle != done.Bundle {
		t.Errorf("by its own bundle: %+v", same)
	}
	for _, bad := range []string{"", "x", url.QueryEscape("sha256:" + strings.Repeat("0", 64))} {
		get(ledger.RoleAuditor, "/what-if/"+done.RunID+"?bundle="+bad).want(t, http.StatusBadRequest, "query_invalid")
	}
}
