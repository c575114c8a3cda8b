package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pgfsm/eval"
	"pgfsm/internal/config"
	"pgfsm/internal/runner"
	"pgfsm/internal/runner/explain"
	"pgfsm/internal/secret"
	"pgfsm/internal/test/check"
	"pgfsm/mcp/upstream"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// newSuiteStage is a gateway with the configuration of an evaluation suite. Its servers are clients with the tools of the suite: pgfsm
// makes none of their calls.
func newSuiteStage(t *testing.T, folder string) *hookStage {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "tools.json"))
	check.NoError(t, err)
	tools, err := eval.ReadTools("tools.json", text)
	check.NoError(t, err)
	loaded, err := config.Load(filepath.Join(folder, "pgfsm.yaml"), os.ReadFile, config.Overrides{})
	check.NoError(t, err)
	var servers []upstream.Server
	for i := range loaded.Content.Servers {
		server := &loaded.Content.Servers[i]
		list, _ := tools.ToolsOf(server.Name)
		doc, err := json.Marshal(map[string]any{"tools": list})
		check.NoError(t, err)
		*server = policy.Server{Name: server.Name, Type: upstream.TypeClient}
		servers = append(servers, upstream.Server{Name: server.Name, Type: upstream.TypeClient, ToolList: doc})
	}

	s := &hookStage{stage: &stage{t: t, memory: ledgertest.NewStore(t)}}
	s.options = runner.Options{Config: runner.Config{
		Bundle: statestest.MustBundle(loaded.Content, nil), Secrets: secret.New(nil), Serve: loaded.Serve,
	}}
	s.options.Upstreams = upstream.New(servers, upstream.Limits{}, upstream.Info{}, s.options.Secrets)
	t.Cleanup(func() { _ = s.options.Upstreams.Close() })
	s.ledger = s.open()
	return s
}

// TestAuthZENAgreesWithExplain: for every call of the suites, the decision and the code are those of pgfsm explain.
func TestAuthZENAgreesWithExplain(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob(filepath.Join("..", "..", "eval", "suites", "*", "cases.jsonl"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("the suites are %v, %v", folders, err)
	}
	for _, cases := range folders {
		t.Run(filepath.Base(filepath.Dir(cases)), func(t *testing.T) {
			t.Parallel()
			compareSuite(t, filepath.Dir(cases))
		})
	}
}

// compareSuite compares the calls of one suite. Those of parser-differentials are all texts of planners.
func compareSuite(t *testing.T, folder string) {
	s := newSuiteStage(t, folder)
	o := s.options
	o.Ledger = s.ledger
	r := newRunner(t, o)
	s.mcp, _ = serve(t, r, runner.ServiceOptions{Store: s.memory.Open()})
	text, err := os.ReadFile(filepath.Join(folder, "cases.jsonl"))
	check.NoError(t, err)
	cases, err := eval.ReadCases("cases.jsonl", bytes.NewReader(text))
	check.NoError(t, err)

	points := make(map[string]*enforcementPoint)
	counts := make(map[string]int)
	for _, c := range cases {
		if c.Bundle != "" || c.Tools != "" || c.Grant != "" {
			continue // another configuration
		}
		// Cases name no actor if any will do. The suite's policies tell tenants apart.
		actor := c.Actor
		if actor == "" || actor == eval.DefaultActor {
			actor = "acme-agent"
		}
		if points[actor] == nil {
			text, _, err := s.ledger.CreateToken(t.Context(), ledger.LocalUser("local:root"), actor, ledger.RoleHook, "")
			if err != nil { // some attacks have names that no token can have
				t.Logf("%s: %v", c.ID, err)
				continue
			}
			points[actor] = newEnforcementPoint(t, s.mcp, text)
		}
		for i, call := range append(c.Needs, c.Wants...) {
			if call.Plan != nil {
				continue // a planner's text, which no enforcement point sends
			}
			t.Run(fmt.Sprintf("%s-%d", c.ID, i), func(t *testing.T) {
				x, err := explain.Answer(t.Context(), explain.Sources{
					Bundle: o.Bundle,
					Catalog: func(ctx context.Context, b *policy.Bundle, _ bool) (*policy.Catalog, error) {
						listed, err := r.List(ctx)
						if err != nil {
							return nil, err
						}
						return b.Catalog(listed.Catalog(), listed.Servers), nil
					},
					History: func(context.Context, *explain.Explainer, *explain.Call) error { return nil },
					Now:     "2026-11-27T20:00:00.000Z",
				}, explain.Question{Server: call.Server, Tool: call.Tool, Actor: actor, Args: string(call.Args), Agent: true, Live: true})
				check.NoError(t, err)
				p := *points[actor]
				p.t = t
				d := p.evaluate(fmt.Sprintf(`{"subject":{"type":"agent","id":%q},"action":{"name":"tools/call"},`+
					`"resource":{"type":"tool","id":%q},"context":{"arguments":%s}}`, actor, call.Server+"__"+call.Tool, call.Args))
				got := rules.Deny
				switch {
				case *d.Decision:
					got = rules.Allow
				case d.Context.AccessRequest != nil:
					got = rules.Pending
				}
				if got != x.Decision || got == rules.Deny && d.Context.Reason != string(x.Code) {
					t.Errorf("the evaluation says %s %q, explain says %s %q", got, d.Context.Reason, x.Decision, x.Code)
				}
				counts[got]++
			})
		}
	}
	if filepath.Base(folder) != "parser-differentials" && (counts[rules.Allow] == 0 || counts[rules.Pending] == 0 || counts[rules.Deny] == 0) {
		t.Errorf("the decisions are %v, want some of each", counts)
	}
	s.sound()
}
