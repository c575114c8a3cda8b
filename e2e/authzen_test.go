package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
	"pgfsm/traces/ledger"
)

// TestServeAuthZEN: a mesh that identity.speakers lists asks about the calls of others. The calls reach no server.
func TestServeAuthZEN(t *testing.T) {
	t.Parallel()
	p := identitytest.New(t)
	o := &office{u: mcptest.New(t, mcptest.Except("tools/list", mcptest.TwoTools))}
	o.dir = clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {echo: {type: http, url: %q}}
allowlist: allowlist.json
ledger: %s
identity:
  required: true
  speakers: ["group:meshes"]
  issuers:
    - {issuer: %s, audiences: {mcp: [gateway]}, groups: /groups}
`, o.u.URL, inFile, p.Issuer), "allowlist.json", `{"echo": ["look"]}`)
	o.served = serve(t, o.dir)

	mesh := p.Sign(map[string]any{"sub": "mesh", "aud": "gateway", "groups": []string{"meshes"}})
	robot := p.Sign(map[string]any{"sub": "robot", "aud": "gateway", "groups": []string{"robots"}})
	for _, tc := range []struct {
		name, token, tool string
		status            int
		want              string
	}{
		{"a-mesh", mesh, "look", http.StatusOK, `"decision":true`},
		{"a-tool-that-is-not-allowed", mesh, "burn", http.StatusOK, `"reason":"tool_not_allowed"`},
		{"another-agent", robot, "look", http.StatusOK, `"reason":"subject_refused"`},
		{"no-token", "none", "look", http.StatusUnauthorized, "token"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			resp, err := send(t.Context(), http.MethodPost, o.base+"/access/v1/evaluation",
				http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + tc.token}},
				fmt.Sprintf(`{"subject":{"type":"identity","id":"ann"},"action":{"name":"tools/call"},`+
					`"resource":{"type":"tool","id":%q,"properties":{"server":"echo"}},"context":{"arguments":{"n":1}}}`, tc.tool))
			check.NoError(t, err)
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			check.NoError(t, err)
			if resp.StatusCode != tc.status || !strings.Contains(string(text), tc.want) {
				t.Errorf("the answer is %s %s, want %d with %s\n%s", resp.Status, text, tc.status, tc.want, o.stderr)
			}
		})
	}
	for _, run := range recorded(t, o.dir) {
		if run.Actor != p.Issuer+"#mesh" || run.OnBehalfOf != p.Issuer+"#ann" {
			t.Errorf("a run of %s on behalf of %s, want one of the mesh for ann", run.Actor, run.OnBehalfOf)
		}
	}
	inLedger(t, o.dir, func(r ledger.Reader) error {
		for e, err := range ledger.Events(r, 0) {
			if err != nil {
				return err
			}
			if e.Type == ledger.BundleActivated && !strings.Contains(string(e.Payload), `"speakers":["group:meshes"]`) {
				t.Errorf("%s does not state the speakers: %s", e.Type, e.Payload)
			}
		}
		return nil
	})
	o.stop(t, 0)
	commandIn(t.Context(), o.dir, nil, "ledger", "verify", "--deep").Want(t, exitYes)
}
