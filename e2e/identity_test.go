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
	"pgfsm/traces/ledger"
)

// people hold calls until one of the owners agrees, and owners are a group of the identity provider.
const peopleHold = `version: 1
policies:
  - {id: people, match: {tool: look}, when: 'actor.kind == "agent"', effect: pending, reason: "People decide.", approvers: [owners], expires: 1h}
`

// provided is an office whose agents and people have tokens of an identity provider only.
type provided struct {
	*office
	p *identitytest.Provider
}

func provide(t *testing.T, url, policy string) *provided {
	t.Helper()
	p := identitytest.New(t)
	p.Clients["pgfsm-cli"], p.Clients["pgfsm-console"] = "", "s3cret-of-the-console"
	o := newOfficeOn(t, url, policy, fmt.Sprintf(`roles: {owners: ["group:owners"]}
identity:
  required: true
  issuers:
    - issuer: %s
      audiences: {mcp: [gateway], admin: [approvals]}
      people: [pgfsm-cli, pgfsm-console]
      groups: /groups
      login: {cli: pgfsm-cli, console: pgfsm-console, console_secret: "s3cret-of-the-console"}
  may: {approve: ["group:owners"], audit: ["group:audit"], administer: ["group:platform"]}
`, p.Issuer))
	return &provided{o, p}
}

// robot is a token of an agent for the gateway.
func (o *provided) robot(sub string, more ...any) string {
	return o.token(map[string]any{"sub": sub, "client_id": "robot", "aud": "gateway"}, more...)
}

// person is a token of a person for the admin address.
func (o *provided) person(sub string, more ...any) string {
	return o.token(map[string]any{"sub": sub, "client_id": "pgfsm-cli", "aud": "approvals", "groups": []string{"owners"}}, more...)
}

func (o *provided) token(claims map[string]any, more ...any) string {
	for i := 0; i < len(more); i += 2 {
		claims[more[i].(string)] = more[i+1]
	}
	return o.p.Sign(claims)
}

// refused wants a vote refused with a status and a code.
func (o *provided) refused(t *testing.T, run, binding, token string, want int, code string) {
	t.Helper()
	resp, err := send(t.Context(), http.MethodPost, o.admin+"/approve/"+run,
		http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}, fmt.Sprintf(`{"expected_digest":%q}`, binding))
	check.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	check.NoError(t, err)
	if resp.StatusCode != want || !strings.Contains(string(body), `"`+code+`"`) {
		t.Errorf("the vote is answered %s %s, want %d %s", resp.Status, body, want, code)
	}
}

// bindingOf is the digest that votes on a run name.
func (o *provided) bindingOf(t *testing.T, run, token string) string {
	t.Helper()
	_, shown := status(t, o.admin, run, token)
	binding, err := clitest.ValueAt([]byte(shown), "/request/binding")
	if err != nil {
		t.Fatalf("%s: %v", shown, err)
	}
	return strings.Trim(string(binding), `"`)
}

// TestServeIdentity: requester, approver and worker know each other by an identity provider alone.
func TestServeIdentity(t *testing.T) {
	t.Parallel()
	t.Run("approval-across-a-restart", func(t *testing.T) {
		t.Parallel()
		o := provide(t, newLedger(t), peopleHold)
		run := o.held(t, o.agent("/mcp", o.robot("ci")), `{"n":1}`)
		o.stop(t, exitYes)
		o.served = serve(t, o.dir)
		o.decide(t, "approve", run, o.person("bob"))
		o.agent("/mcp", o.robot("ci")).becomes(t, "echo__look", `{"n":1}`, "approval_required", "hi")
		o.u.Reached(t, 1)
		verifies(t, o.dir)
	})
	t.Run("voters-who-do-not-count", func(t *testing.T) {
		t.Parallel()
		o := provide(t, newLedger(t), peopleHold)
		acting := o.robot("bob", "act", map[string]any{"sub": "ci"}) // on behalf of bob
		run := o.held(t, o.agent("/mcp", acting), `{"n":1}`)
		binding := o.bindingOf(t, run, o.person("carol"))
		if shown := command(t.Context(), map[string]string{tokenVariable: o.person("carol")}, "approvals", "show", "-c", o.config, run); !strings.Contains(shown.Stdout, "#bob") {
			t.Errorf("approvers do not see for whom the agent asks: %s", shown.Stdout)
		}
		o.refused(t, run, binding, o.person("bob"), http.StatusForbidden, "approver_not_eligible")
		o.refused(t, run, binding, o.person("ci"), http.StatusForbidden, "approver_not_eligible")
		o.refused(t, run, binding, o.person("carol", "act", map[string]any{"sub": "ci"}), http.StatusUnauthorized, "token_refused")
		o.refused(t, run, binding, o.person("carol", "client_id", "robot"), http.StatusUnauthorized, "token_refused")
		o.refused(t, run, binding, o.robot("carol"), http.StatusUnauthorized, "token_refused")
		o.refused(t, run, binding, o.person("carol", "groups", []string{"audit"}), http.StatusForbidden, "role_not_sufficient")
		o.refused(t, run, binding, o.person("carol", "groups", nil), http.StatusForbidden, "role_not_sufficient")
		o.refused(t, run, binding, o.person("carol", "groups", []string{"owners", "platform"}), http.StatusForbidden, "role_not_sufficient")
		o.u.Reached(t, 0)
		o.decide(t, "approve", run, o.person("carol"))
		o.agent("/mcp", acting).becomes(t, "echo__look", `{"n":1}`, "approval_required", "hi")
		verifies(t, o.dir)
	})
	t.Run("blocked-at-two-replicas", func(t *testing.T) { testBlockAtReplicas(t, newLedger(t)) })
}

// TestLogin: the token that login prints is good for the commands and for the API.
func TestLogin(t *testing.T) {
	t.Parallel()
	o := provide(t, inFile, peopleHold)
	run := o.held(t, o.agent("/mcp", o.robot("ci")), `{"n":1}`)
	o.p.Audience, o.p.Users["carol"] = "approvals", map[string]any{"groups": []string{"owners"}}
	o.p.SignIn("carol")
	got := command(t.Context(), nil, "login", "--device", "-c", o.config)
	got.Want(t, exitYes)
	if !strings.Contains(got.Stderr, "/device") || !strings.Contains(got.Stderr, "WDJB-MJHT") {
		t.Errorf("login does not say where to sign in: %s", got.Stderr)
	}
	with := map[string]string{tokenVariable: strings.TrimSpace(got.Stdout)}
	command(t.Context(), with, "approvals", "list", "-c", o.config).Want(t, exitYes)
	command(t.Context(), with, "approvals", "approve", "-c", o.config, run, "--digest", o.bindingOf(t, run, with[tokenVariable])).Want(t, exitYes)
	o.ended(t, run, ledger.Executed, "")
	if list := command(t.Context(), with, "token", "create", "-c", o.config, "--role", "agent", "--name", "x"); list.Code == exitYes {
		t.Error("who approves creates tokens")
	}
	verifies(t, o.dir)
}

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
