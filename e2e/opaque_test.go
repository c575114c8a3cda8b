package e2e

import (
	"bytes"
	"fmt"
	"testing"

	"pgfsm/internal/test/clitest"
)

// secretRules are policies whose names and reasons agents must not learn where denials are opaque.
const secretRules = `version: 1
policies:
  - {id: rule-of-seven, match: {tool: look}, when: 'has(args.n) && args.n == 7', effect: deny, reason: "Seven is hidden."}
  - {id: rule-of-people, match: {tool: look}, effect: pending, reason: "Why is hidden.", expires: 1h}
`

// TestServeOpaqueDenials: the operator's rules are refused in one sentence, and what waits does not say why, whichever way it waits.
func TestServeOpaqueDenials(t *testing.T) {
	t.Parallel()
	o := newOffice(t, secretRules, "serve: {denials: opaque, decide_url: \"https://approvals.example.com/{run_id}\"}\napprovals: {hold: 1s}\n")
	hides := func(t *testing.T, said []byte) {
		t.Helper()
		for _, word := range []string{"hidden", "rule-of", "allowlist", "burn"} {
			if bytes.Contains(said, []byte(word)) {
				t.Errorf("%q is told: %s", word, said)
			}
		}
	}
	for _, tt := range []struct{ name, path, tool, args, want string }{
		{"denied", "/mcp", "echo__look", `{"n":7}`, "refused"},
		{"not-allowed", "/mcp", "echo__burn", `{}`, "refused"},
		{"unknown", "/mcp", "echo__sing", `{}`, "refused"},
		{"not-allowed-at-its-server", "/servers/echo/mcp", "burn", `{}`, "refused"},
		{"unknown-at-its-server", "/servers/echo/mcp", "sing", `{}`, "refused"},
		{"arguments-invalid", "/mcp", "echo__look", `{"n":"one"}`, "arguments_invalid"}, // of a tool that it can see
		{"held", "/mcp", "echo__look", `{"n":1}`, "approval_required"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := o.agent(tt.path, o.ci).call(tt.tool, tt.args)
			if got.code() != tt.want {
				t.Errorf("%s, want %s: %s", got.code(), tt.want, got.Raw)
			}
			hides(t, got.Raw)
			if r := got.Result; r != nil && tt.want == "refused" && (r.Meta.Decision.Reason != "The operator's rules do not allow this call." || r.Meta.Decision.Effect != "not_sent" ||
				r.Meta.Decision.Policy != "" || r.Meta.Decision.Retry != "no" || r.Meta.Decision.RunID == "" || !r.IsError) {
				t.Errorf("the refusal is %s", got.Raw)
			}
		})
	}
	t.Run("held-as-a-task", func(t *testing.T) {
		got := o.taskClient(o.ci).call(t, "echo__look", `{"n":2}`)
		if got.Result == nil || got.Result.TaskID == "" {
			t.Fatalf("it is no task: %s", got.Raw)
		}
		hides(t, got.Raw)
		hides(t, o.taskClient(o.ci).task(t, "tasks/get", got.Result.TaskID).Raw)
	})
	t.Run("held-open", func(t *testing.T) {
		a := o.agentThat("/mcp", o.ci, `{"elicitation":{"form":{},"url":{}}}`)
		received := 0
		s := a.streams(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo__look","arguments":{"n":3},"_meta":{"progressToken":"p"}}}`)
		for said := s.next(); said != nil; said = s.next() {
			hides(t, said)
			if id, err := clitest.ValueAt(said, "/id"); err == nil && bytes.Contains(said, []byte(`"elicitation/create"`)) {
				a.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept"}}`, id))
			}
			received++
		}
		if received < 3 { // where to decide, progress, and the answer
			t.Errorf("only %d messages", received)
		}
	})
}
