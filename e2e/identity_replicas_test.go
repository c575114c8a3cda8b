package e2e

import (
	"net/http"
	"testing"
)

// testBlockAtReplicas: a block takes effect at once at each gateway on the ledger, in sessions that are open and in new ones.
func testBlockAtReplicas(t *testing.T, url string) {
	t.Parallel()
	o := provide(t, url, holdLook)
	second := serve(t, o.dir)
	robot, acting, carol := o.robot("ci"), o.robot("bob", "act", map[string]any{"sub": "desk"}), o.person("carol")
	tokens := map[string]string{"requester": robot, "person-for-whom-an-agent-asks": acting}
	open := map[string][]*agent{}
	for who, token := range tokens { // in any order
		for _, s := range []*served{o.served, second} {
			a := s.agent("/mcp", token)
			a.gets(t, "echo__look", `{"n":1}`, "approval_required")
			open[who] = append(open[who], a)
		}
	}
	admin := map[string]string{tokenVariable: o.person("root", "groups", []string{"platform"})}
	for _, who := range []string{"ci", "bob", "carol"} {
		command(t.Context(), admin, "identity", "block", "-c", o.config, o.p.Issuer, who).Want(t, exitYes)
	}
	for i, s := range []*served{o.served, second} {
		for who, token := range tokens { // in any order
			for kind, a := range map[string]*agent{"open-session": open[who][i], "no-session": {s: s, url: s.mcp, token: token}} { // in any order
				if resp, body := a.post(callMessage("echo__look", `{"n":1}`)); resp.StatusCode != http.StatusUnauthorized {
					t.Errorf("replica %d, %s, %s: %s %s", i, who, kind, resp.Status, body)
				}
			}
		}
		if code, body := s.gets(t, "/pending", carol); code != http.StatusForbidden {
			t.Errorf("replica %d, approver: %d %s", i, code, body)
		}
	}
	o.u.Reached(t, 0)
	command(t.Context(), admin, "identity", "unblock", "-c", o.config, o.p.Issuer, "ci").Want(t, exitYes)
	for _, a := range open["requester"] {
		a.gets(t, "echo__look", `{"n":1}`, "approval_required")
	}
	verifies(t, o.dir)
}
