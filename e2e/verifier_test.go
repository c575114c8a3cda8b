package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/xeipuuv/gojsonschema"

	"pgfsm/internal/hook"
	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
	"pgfsm/internal/test/tool"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// threeEnds holds calls that end in each way.
const threeEnds = `version: 1
policies:
  - {id: people, match: {tool: look}, when: 'args.n < 9', effect: pending, reason: "People decide.", approvers: [owners], expires: 1h}
  - {id: soon, match: {tool: look}, when: 'history.count("actor", "1h") < 9', effect: pending, reason: "Soon.", expires: 1s}
  - {id: client, match: {server: claude}, effect: allow, reason: "The client's own."}
`

// hookEvents are the events of a client's hook: a prompt, and calls that are reported, rewritten, and not reported in time.
var hookEvents = []string{
	`{"kind":"prompt","client":"claude","session":"s","source":"user","text":"Look around."}`,
	`{"kind":"call","client":"claude","session":"s","call":"1","tool":"Read","arguments":{"file_path":"/a"}}`,
	`{"kind":"result","client":"claude","session":"s","call":"1","tool":"Read","arguments":{"file_path":"/a"},"result":"text"}`,
	`{"kind":"call","client":"claude","session":"s","call":"2","tool":"Read","arguments":{"file_path":"/a"}}`,
	`{"kind":"failure","client":"claude","session":"s","call":"2","tool":"Read","arguments":{"file_path":"/b"}}`,
	`{"kind":"call","client":"claude","session":"s","call":"3","tool":"Read","arguments":{"file_path":"/a"}}`,
	`{"kind":"end","client":"claude","session":"s"}`,
	`{"kind":"result","client":"claude","session":"s","call":"3","tool":"Read","arguments":{"file_path":"/a"}}`,
}

// TestSecondVerifierReadsServe gives the verifier in JavaScript a ledger with every type of event, which a gateway wrote for callers of an
// identity provider, and its traces and proofs.
func TestSecondVerifierReadsServe(t *testing.T) {
	t.Parallel()
	node := tool.Path(t, "nodejs", "node")
	p := identitytest.New(t)
	p.Clients["pgfsm-cli"] = ""
	u := mcptest.New(t, func(method string) string {
		if method == "initialize" {
			return strings.Replace(mcptest.Hello, `"tools":{}`, `"tools":{},"resources":{}`, 1)
		}
		return mcptest.Except("tools/list", mcptest.TwoTools)(method)
	})
	o := &provided{&office{u: u, dir: gatewayFolder(t, u, inOffice+fmt.Sprintf(`checkpoints: {key: log.key}
identity:
  scopes: [call]
  issuers: [{issuer: %s, audiences: {mcp: [gateway], admin: [approvals]}, people: [pgfsm-cli], groups: /groups, display: /email, login: {cli: pgfsm-cli}}]
  may: {approve: ["group:owners"], administer: ["group:platform"]}
roles: {owners: ["group:owners"]}
`, p.Issuer))}, p}
	in := func(name string) string { return filepath.Join(o.dir, name) }
	o.writes(t, "policy.yaml", threeEnds)
	o.writes(t, "pgfsm.yaml", strings.Replace(clitest.Read(t, in("pgfsm.yaml")), "{echo: {type: http,",
		"{claude: {kind: client, tools: builtin}, forge: {type: http, url: \""+u.URL+"\", auth: {person: {secret: {}}}}, "+
			"echo: {type: http, expose: [tools, resources],", 1)+"connections: {keys: ["+sealKey+"]}\n")
	o.writes(t, "allowlist.json", `{"echo": ["look"], "claude": ["Read"]}`)
	o.served = serve(t, o.dir)
	admin := map[string]string{tokenVariable: o.person("root", "groups", []string{"platform"})}
	do := func(args ...string) clitest.Result {
		t.Helper()
		r := command(t.Context(), admin, append(args, "-c", o.config)...)
		r.Want(t, exitYes)
		return r
	}

	acting := o.agent("/mcp", o.robot("bob", "act", map[string]any{"sub": "ci", "email": "ci@example.com"}, "email", "bob@example.com", "scope", "call"))
	approved := o.held(t, acting, `{"n":1}`)
	ofAnother := fmt.Sprintf(`{"expected_digest":%q}`, o.bindingOf(t, approved, o.person("carol")))
	o.decide(t, "approve", approved, o.person("carol", "email", "carol@example.com"))
	acting.becomes(t, "echo__look", `{"n":1}`, "approval_required", "hi")
	o.decide(t, "deny", o.held(t, acting, `{"n":2}`), o.person("carol"))
	expires := o.held(t, acting, `{"n":9}`)
	soon(t, "a vote finds that the time for it is over", func() bool {
		resp, err := send(t.Context(), http.MethodPost, o.admin+"/approve/"+expires,
			http.Header{"Authorization": {"Bearer " + o.person("carol")}, "Content-Type": {"application/json"}}, ofAnother)
		check.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(body), "approval_expired")
	})
	waits := o.held(t, acting, `{"n":3}`)
	direct := o.agent("/servers/echo/mcp", acting.token)
	direct.post(`{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"x:y"}}`)
	direct.token = o.robot("ci", "scope", "other")
	if resp, body := direct.post(callMessage("look", `{}`)); resp.StatusCode != http.StatusForbidden {
		t.Fatalf("without a scope: %s %s", resp.Status, body)
	}
	shows := do("approvals", "show", approved).Stdout + do("ledger", "list", "--actor", "ci@example.com", "--limit", "1").Stdout
	for _, name := range []string{"ci@example.com (" + p.Issuer + "#ci)", "bob@example.com (" + p.Issuer + "#bob)", "by carol@example.com (" + p.Issuer + "#carol)"} {
		if !strings.Contains(shows, name) {
			t.Errorf("approvals show and ledger list print no %s: %s", name, shows)
		}
	}
	told := do("token", "create", "--role", "hook", "--name", "hook-1", "--json").Member("/secret")
	for _, event := range hookEvents {
		resp, err := send(t.Context(), http.MethodPost, o.base+hook.Path,
			http.Header{"Authorization": {"Bearer " + told}, "Content-Type": {"application/json"}}, event)
		check.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		check.NoError(t, err)
		resp.Body.Close()
		if !strings.Contains(string(body), `"allowed":true`) {
			t.Errorf("the hook's %s is answered %s", event, body)
		}
	}
	fay := signedIn(t, o.served, do("token", "create", "--role", "person", "--name", "fay", "--json").Member("/secret"))
	fay.connects("pat-fay-1")
	fay.disconnects()
	do("identity", "block", p.Issuer, "eve")
	do("identity", "unblock", p.Issuer, "eve")
	vkey := do("ledger", "key", "new", "-o", in("log.key"), "--json").Member("/key")
	do("ledger", "key", "remove", do("ledger", "key", "new", "-o", in("other.key"), "--json").Member("/key"))
	o.writes(t, "policy.yaml", holdLook)
	check.NoError(t, o.cmd.Process.Signal(syscall.SIGHUP))
	soon(t, "the gateway reloads", func() bool { return len(activations(t, o.dir)) == 2 })
	o.stop(t, exitYes, `actor="ci@example.com (`+p.Issuer+`#ci)"`)

	command(t.Context(), nil, "call", "-c", o.config, "echo", "look", "{}").Want(t, exitPending)

	verifies := func(args ...string) {
		t.Helper()
		cmd := exec.Command(node, append([]string{"../traces/ledger/checkpoint/testdata/verifier.mjs"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("the verifier refuses %s: %s", args[0], out)
		}
	}
	do("ledger", "checkpoint", "-o", in("checkpoint"))
	for _, run := range []string{approved, waits} {
		o.writes(t, run+".json", do("ledger", "trace", run).Stdout)
		o.writes(t, run+".proof", do("ledger", "prove", run, "--checkpoint", in("checkpoint")).Stdout)
		verifies("proof", in(run+".json"), in(run+".proof"), "--key", vkey)
	}
	seen := make(map[string]bool)
	exported := func() {
		t.Helper()
		text := do("ledger", "export").Stdout
		o.writes(t, "export", text)
		verifies("export", in("export"), "--checkpoint", in("checkpoint"), "--key", vkey)
		do("ledger", "verify-export", in("export"), "--deep", "--checkpoint", in("checkpoint"), "--key", vkey)
		keepSchema(t, text)
		for _, kind := range ledger.Types() {
			seen[string(kind)] = seen[string(kind)] || strings.Contains(text, `"type":"`+string(kind)+`"`)
		}
	}
	exported()
	do("ledger", "prune", "--unstated", "--before", time.Now().UTC().Format(policy.TimeForm))
	do("ledger", "close", "--to", "sqlite:"+in("moved.db"))
	o.writes(t, "closed", do("ledger", "export").Stdout)
	o.writes(t, "pgfsm.yaml", strings.Replace(clitest.Read(t, o.config), inFile, "sqlite:moved.db", 1))
	do("ledger", "import", in("closed"))
	do("token", "revoke", tokenOf(do("token", "create", "--role", "auditor", "--name", "audit", "--json").Member("/secret")))
	exported()
	for _, kind := range ledger.Types() {
		if !seen[string(kind)] {
			t.Errorf("no entry is %s: the test does not show that the verifier reads it", kind)
		}
	}
}

// keepSchema compares each event of an export with the published schema.
func keepSchema(t *testing.T, export string) {
	t.Helper()
	published, err := gojsonschema.NewSchema(gojsonschema.NewStringLoader(clitest.Read(t, "../docs/reference/events.schema.json")))
	check.NoError(t, err)
	for line := range strings.Lines(export) {
		var entry struct {
			Body struct {
				Events []jsontext.Value `json:"events"`
			} `json:"body"`
		}
		check.NoError(t, json.Unmarshal([]byte(line), &entry))
		for _, event := range entry.Body.Events {
			if result, err := published.Validate(gojsonschema.NewBytesLoader(event)); err != nil || !result.Valid() {
				t.Errorf("%s: %v, %v", event, err, result.Errors())
			}
		}
	}
}
