package e2e

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
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
