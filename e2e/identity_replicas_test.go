package e2e

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/test/cli"
	"pgfsm/traces/ledger"
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

// testBlockInCopy: a copy of a ledger keeps the blocks.
func testBlockInCopy(t *testing.T, target string) {
	t.Parallel()
	o := provide(t, inFile, holdLook)
	admin := map[string]string{tokenVariable: o.person("root", "groups", []string{"platform"})}
	block := func(verb, who string) {
		t.Helper()
		command(t.Context(), admin, "identity", verb, "-c", o.config, o.p.Issuer, who).Want(t, exitYes)
	}
	run := o.held(t, o.agent("/mcp", o.robot("dora")), `{"n":1}`)
	block("block", "ci")
	block("block", "dora")
	block("block", "eve")
	block("unblock", "eve")
	o.stop(t, exitYes)
	if target == inFile {
		target = "sqlite:" + filepath.Join(o.dir, "copy.db")
	}
	command(t.Context(), nil, "ledger", "copy", "sqlite:"+filepath.Join(o.dir, "pgfsm.db"), target).Want(t, exitYes)
	o.writes(t, "pgfsm.yaml", strings.Replace(cli.Read(t, o.config), cli.Quote(inFile), cli.Quote(target), 1))
	o.writes(t, "ledger.url", target)
	o.served = serve(t, o.dir)
	for who, want := range map[string]int{"ci": http.StatusUnauthorized, "dora": http.StatusUnauthorized, "eve": http.StatusOK} { // in any order
		a := &agent{s: o.served, url: o.mcp, token: o.robot(who)}
		if resp, body := a.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
			`"clientInfo":{"name":"test","version":"1"}}}`); resp.StatusCode != want {
			t.Errorf("%s: %s %s", who, resp.Status, body)
		}
	}
	o.decide(t, "approve", run, o.person("carol"))
	o.ended(t, run, ledger.Denied, "approval_mismatch")
	block("unblock", "ci")
	o.agent("/mcp", o.robot("ci")).gets(t, "echo__look", `{"n":1}`, "approval_required")
	o.u.Reached(t, 0)
	verifies(t, o.dir)
}
