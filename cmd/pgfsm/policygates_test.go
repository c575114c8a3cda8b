package main

import (
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/cli"
	"pgfsm/internal/test/clitest"
	"pgfsm/policy/rules"
)

// TestExplainLiveAnswersAsCall shows that explain --live exits and answers as pgfsm call does.
func TestExplainLiveAnswersAsCall(t *testing.T) {
	t.Parallel()
	const typed = `{"name":"typed","inputSchema":{"type":"object","properties":{"n":{"type":"integer"},"to":{"type":"string"}},"required":["n"]}}`
	const bad = `{"name":"bad","inputSchema":{"type":"object","properties":{"n":{"type":"nothing"}}}}`
	p := newPinned(t, `{"puppet":["typed","bad","twice","gone","moved","free"]}`, typed, bad,
		`{"name":"twice","inputSchema":{"type":"object"}}`, `{"name":"moved","inputSchema":{"type":"object"}}`,
		`{"name":"free","inputSchema":{"type":"object"}}`, `{"name":"hidden","inputSchema":{"type":"object"}}`)
	p.pins("approve", "puppet", "moved").Want(t, cli.ExitYes)
	p.lists(typed, bad, `{"name":"twice","inputSchema":{"type":"object"}}`, `{"name":"twice","inputSchema":{"type":"object"}}`,
		`{"name":"moved","description":"Moved.","inputSchema":{"type":"object"}}`, `{"name":"free","inputSchema":{"type":"object"}}`,
		`{"name":"hidden","inputSchema":{"type":"object"}}`)
	p.writes("grant.yaml", "version: 1\ntools: {puppet: {typed: {args: {to: {in: [a, b]}}}, bad: {}, twice: {}, gone: {}, moved: {}}}\n")
	p.writes("policy.yaml", `version: 1
policies:
  - {id: much, match: {tool: typed}, effect: deny, when: args.n > 100}
  - {id: typed, match: {tool: typed}, effect: allow, require_approval_if: args.n > 10}
`)
	config := strings.Replace(p.text("pgfsm.yaml"), "version: 1\n", "version: 1\npolicy: policy.yaml\ngrants: [grant.yaml]\n", 1)
	config = strings.Replace(config, "servers: {puppet:", "servers: {down: {type: http, url: \"http://127.0.0.1:9/mcp\"}, puppet:", 1)
	p.writes("pgfsm.yaml", config)
	for _, tt := range []struct{ name, server, tool, args, code string }{
		{"allowed", "puppet", "typed", `{"n":1,"to":"a"}`, ""},
		{"held", "puppet", "typed", `{"n":11,"to":"a"}`, "approval_required"},
		{"denied", "puppet", "typed", `{"n":101,"to":"b"}`, "policy_denied"},
		{"not-granted-argument", "puppet", "typed", `{"n":1,"to":"c"}`, "arguments_not_granted"},
		{"wrong-type", "puppet", "typed", `{"n":"1","to":"a"}`, "arguments_invalid"},
		{"missing", "puppet", "typed", `{}`, "arguments_invalid"},
		{"undeclared", "puppet", "typed", `{"n":1,"to":"a","more":1}`, "arguments_invalid"},
		{"no-object", "puppet", "typed", `[1]`, "plan_invalid"},
		{"no-name", "puppet", "", `{}`, "plan_invalid"},
		{"schema-refused", "puppet", "bad", `{}`, "schema_refused"},
		{"listed-twice", "puppet", "twice", `{}`, "tool_ambiguous"},
		{"definition-changed", "puppet", "moved", `{}`, "tool_definition_changed"},
		{"not-granted", "puppet", "free", `{}`, "tool_not_granted"},
		{"not-allowed", "puppet", "hidden", `{}`, "tool_not_allowed"},
		{"not-listed", "puppet", "gone", `{}`, "tool_unknown"},
		{"no-server", "nowhere", "typed", `{}`, "server_unknown"},
		{"server-down", "down", "typed", `{}`, "no_servers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			called := command(t.Context(), nil, "call", "-c", p.config, "--json", tt.server, tt.tool, tt.args)
			told := command(t.Context(), nil, "policy", "explain", "-c", p.config, "--json", "--live",
				"--server", tt.server, "--tool", tt.tool, "--args", tt.args)
			if called.Member("/code") != tt.code {
				t.Errorf("call: exit code %d, %s; want the code %q", called.Code, called.Member("/code"), tt.code)
			}
			if told.Code != called.Code || told.Member("/code") != called.Member("/code") {
				t.Errorf("explain --live: exit code %d, %s; call: %d, %s\n%s%s", told.Code, told.Member("/code"), called.Code,
					called.Member("/code"), told.Stdout, told.Stderr)
			}
			offline := command(t.Context(), nil, "policy", "explain", "-c", p.config, "--json",
				"--server", tt.server, "--tool", tt.tool, "--args", tt.args)
			if offline.Code == cli.ExitYes || offline.Member("/decision") == rules.Allow {
				t.Errorf("explain says allow of a tool without a kept definition\n%s", offline.Stdout)
			}
		})
	}
}

func (p *pinned) writes(name, text string) {
	p.t.Helper()
	clitest.Write(p.t, filepath.Join(p.dir, name), text)
}
