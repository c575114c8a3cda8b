package runner_test

import (
	"slices"
	"strings"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/internal/runner"
	"pgfsm/internal/test/check"
	"pgfsm/mcp/upstream"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
)

// newClientStage is a stage with one server more: a coding agent with its own tools.
func newClientStage(t *testing.T, policies *rules.Content) *stage {
	t.Helper()
	s := newStage(t, policies)
	content := *s.options.Bundle.Content()
	content.Servers = append(slices.Clone(content.Servers), policy.Server{Name: "claude", Type: upstream.TypeClient})
	content.Allowlist = append(slices.Clone(content.Allowlist), policy.Allowance{Server: "claude", Tools: []string{"Bash"}})
	s.options.Bundle = statestest.MustBundle(content, nil)

	servers := []upstream.Server{{Name: "claude", Type: upstream.TypeClient,
		ToolList: []byte(`{"tools":[{"name":"Bash","inputSchema":{"type":"object","properties":{"command":{"type":"string"}}}}]}`)}}
	for _, server := range s.fleet.Servers() {
		servers = append(servers, upstream.Server{Name: server.Name(), Type: upstream.TypeSSE, URL: s.fleet.URL(server.Name(), "sse")})
	}
	s.options.Upstreams = upstream.New(servers, upstream.Limits{}, upstream.Info{}, s.options.Secrets)
	t.Cleanup(func() { _ = s.options.Upstreams.Close() })
	return s
}

// A call of a coding agent's tool fails before any gate is asked, and says why.
func TestACallOfACodingAgentsTool(t *testing.T) {
	r := newClientStage(t, nil).runner()
	got, err := r.Run(t.Context(), runner.Request{Actor: "local:tester", Kind: states.KindCall,
		Text: []byte(`{"type":"call_tool","server":"claude","tool":"Bash","args":{"command":"ls"}}`)}, nil)
	check.NoError(t, err)
	o := got.Outcome
	if o.Type != states.TypeFailed || o.Code != upstream.CodeClientTool || o.Effect != states.NotSent ||
		!strings.Contains(o.Reason, "executes them itself") {
		t.Errorf("the outcome is %+v, want it failed with client_tool, and nothing sent", o)
	}
}

// A run that asks every server does not see a coding agent's tools.
func TestAQuestionDoesNotSeeACodingAgentsTools(t *testing.T) {
	s := newClientStage(t, nil)
	got, err := s.runner().Run(t.Context(), runner.Request{Actor: "local:tester", Kind: states.KindAsk, Text: []byte(question)}, nil)
	check.NoError(t, err)
	discovered := got.Run.Facts().Discovered
	for _, server := range discovered.Servers {
		if server.Server == "claude" {
			t.Error("the run has listed the coding agent's tools, want MCP servers only")
		}
	}
	if got.Outcome.Effect != states.EffectDone || len(discovered.Servers) != 3 {
		t.Errorf("the outcome is %+v after %d servers, want the answer of one of three", got.Outcome, len(discovered.Servers))
	}
}

// People see a coding agent's tools beside those of servers, without a question to anything.
func TestPeopleSeeACodingAgentsTools(t *testing.T) {
	r := newClientStage(t, nil).runner()
	pins := &present.Pins{Definition: func(canonical.Digest) []byte { return nil }}
	servers := r.Configured().Servers(pins)
	last := servers[len(servers)-1]
	if last.Server != "claude" || last.Status != policy.ServerUp || last.Protocol != "" || len(last.Tools) != 1 || !last.Tools[0].Allowed {
		t.Errorf("the last server is %+v, want claude, up, without a revision of MCP, with the allowed tool Bash", last)
	}
	if servers[0].Status != present.ServerUnknown {
		t.Errorf("the server %s is %s, want it not to have been asked", servers[0].Server, servers[0].Status)
	}

	listed, err := r.List(t.Context(), "claude")
	check.NoError(t, err)
	if len(listed.Servers) != 1 || listed.Servers[0].Status != policy.ServerUp {
		t.Errorf("List() = %+v, want the coding agent, up", listed.Servers)
	}
}
