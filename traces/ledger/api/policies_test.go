package api_test

import (
	"net/http"
	"strings"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/ledgertest"
)

// TestPoliciesAndServers: people see how often each policy decided, and the servers; agents do not.
func TestPoliciesAndServers(t *testing.T) {
	d := newFixture(t)
	for _, path := range []string{"/policies", "/servers"} { // an empty ledger
		d.call(http.MethodGet, path, d.token(ledger.RoleAuditor, "auditor"), "").want(t, 200, "")
		d.call(http.MethodGet, path, d.token(ledger.RoleAgent, "robot"), "").want(t, 403, "role_not_sufficient")
		d.call(http.MethodGet, path, "", "").want(t, 401, api.TokenMissing)
		d.call(http.MethodGet, path+"?before=x", d.token(ledger.RoleAuditor, "auditor"), "").want(t, 400, api.QueryInvalid)
		d.call(http.MethodPost, path, d.token(ledger.RoleAuditor, "auditor"), "{}").want(t, 405, api.MethodUnknown)
	}
	c := ledgertest.Holding(1)
	check.NoError(t, d.Activate(t.Context(), statestest.MustBundle(c, nil), ledger.Why{Cause: ledger.CauseStart}))
	d.Hold(1)
	d.Ask(carol, statestest.Content())
	var policies present.Policies
	d.call(http.MethodGet, "/policies", d.token(ledger.RoleApprover, alice), "").into(t, &policies)
	if one := policies.Policies; len(one) != 1 || one[0].ID != "looked-at" || one[0].Runs != 1 || one[0].Last == "" || policies.Counted.Runs != 2 || !policies.Counted.All {
		t.Errorf("the policies are %+v", policies)
	}
	got := d.call(http.MethodGet, "/servers", d.token(ledger.RoleAdmin, "root"), "")
	if body := string(got.body); !strings.Contains(body, `"calls":1,`) || !strings.Contains(body, "this service has no servers") {
		t.Errorf("the servers are %s", body)
	}
	page := `{"tools":[{"name":"fetch_policy_entry","description":"\u202e<b>","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`
	c.Allowlist = []policy.Allowance{{Server: statestest.Server, Tools: []string{"fetch_policy_entry", "absent"}}}
	c.Pins = []policy.Pin{{Server: statestest.Server, Tool: "fetch_policy_entry", Definition: statestest.Definition()}}
	b := statestest.MustBundle(c, nil)
	tools := present.ServerTools(&c, b.Catalog("", statestest.Listings(page)), statestest.Server, &present.Pins{
		Allowlist: "allowlist.json", Definition: func(canonical.Digest) []byte { return []byte(`{"name":"fetch_policy_entry"}`) },
	})
	own := func() *policy.Bundle { return b }
	d.handler = api.New(api.Options{Ledger: d.Ledger, Hosts: []string{service}, Bundle: own, Servers: func() ([]present.Server, string) {
		return []present.Server{{Server: statestest.Server, Status: policy.ServerUp, Tools: tools}, {Server: "away", Status: policy.ServerDown, Tools: []present.ServerTool{}}}, ""
	}})
	var servers present.Servers
	d.call(http.MethodGet, "/servers", d.token(ledger.RoleApprover, alice), "").into(t, &servers)
	if s := servers.Servers; len(s) != 2 || s[0].Calls != 1 || len(s[0].Tools) != 2 || !s[0].Tools[0].Drifted || len(s[0].Tools[0].Changes) == 0 ||
		!strings.HasPrefix(s[0].Tools[0].Next, "pgfsm pins approve --expect sha256:") {
		t.Errorf("the servers are %+v", servers)
	}
}
