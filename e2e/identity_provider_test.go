package e2e

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
)

// again stops the gateway and starts it with another configuration.
func (o *provided) again(t *testing.T, old, other string) {
	t.Helper()
	o.stop(t, exitYes)
	conf, err := os.ReadFile(o.config)
	check.NoError(t, err)
	o.writes(t, "pgfsm.yaml", strings.Replace(string(conf), old, other, 1))
	o.served = serve(t, o.dir)
}

// TestServeIdentityClaims: a provider gives a person another sub for each application, as Entra ID does, and the configuration names the claim by
// which pgfsm knows the person, the type of access tokens, and a claim that a policy reads.
func TestServeIdentityClaims(t *testing.T) {
	t.Parallel()
	o := provide(t, inFile, peopleHold)
	o.writes(t, "policy.yaml", strings.Replace(peopleHold, `actor.kind == "agent"`, `actor.claims.department == "sales"`, 1))
	o.again(t, "groups: /groups", "groups: /groups\n      subject: /oid\n      token_types: [corp+jwt]\n      claims: {department: /org/department}")
	sign := func(claims map[string]any) string { return o.p.Sign(claims, identitytest.Type("corp+jwt")) }
	person := func(oid string) string {
		return sign(map[string]any{"sub": "at-approvals", "oid": oid, "client_id": "pgfsm-cli", "aud": "approvals", "groups": []string{"owners"}})
	}
	robot := map[string]any{"sub": "at-gateway", "oid": "bob", "client_id": "robot", "aud": "gateway", "org": map[string]any{"department": "sales"}}
	run := o.held(t, o.agent("/mcp", sign(robot)), `{"n":1}`)
	binding := o.bindingOf(t, run, person("carol"))
	o.refused(t, run, binding, person("bob"), http.StatusForbidden, "approver_not_eligible")
	o.refused(t, run, binding, o.person("carol", "oid", "carol"), http.StatusUnauthorized, "token_refused") // of the type at+jwt
	o.decide(t, "approve", run, person("carol"))
	o.ended(t, run, ledger.Executed, "")
	robot["org"] = nil
	o.agent("/mcp", sign(robot)).gets(t, "echo__look", `{"n":2}`, "policy_failed") // a claim that is missing is unknown
	o.u.Reached(t, 1)
	verifies(t, o.dir)
}

// TestServeIdentityProviderDown: the gateway starts while the provider is down, says so, and recovers by itself.
func TestServeIdentityProviderDown(t *testing.T) {
	t.Parallel()
	o := provide(t, inFile, peopleHold)
	o.p.SetDown(true)
	o.again(t, "", "")
	const warning = `"warnings":["identity_provider_unavailable"]`
	if code, body := readURL(t, o.admin+"/readyz", ""); code != http.StatusOK || !strings.Contains(body, warning) {
		t.Errorf("GET /readyz: %d %s", code, body)
	}
	for at, token := range map[string]string{o.mcp: o.robot("ci"), o.admin + "/requests": o.person("carol")} { // in any order
		method := http.MethodGet
		if at == o.mcp {
			method = http.MethodPost
		}
		resp, err := send(t.Context(), method, at, http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}, "")
		check.NoError(t, err)
		resp.Body.Close()
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %s, Retry-After %q", at, resp.Status, resp.Header.Get("Retry-After"))
		}
	}
	o.held(t, o.agent("/mcp", o.ci), `{"n":1}`) // tokens of the ledger need no provider
	o.p.SetDown(false)
	soon(t, "the gateway has the keys of the provider", func() bool {
		_, body := readURL(t, o.admin+"/readyz", "")
		return !strings.Contains(body, warning)
	})
	o.held(t, o.agent("/mcp", o.robot("ci")), `{"n":1}`)
}
