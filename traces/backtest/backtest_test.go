package backtest_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/policy/ruling"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/backtest"
	"pgfsm/traces/tracestest"

	"github.com/go-json-experiment/json/jsontext"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The old policies are judged with the risk rules of each trace, the new ones with their own.
const (
	firstPolicy = `version: 1
policies:
  - {id: german, when: "risk.mode == 'danger'", effect: deny}
  - {id: bob, when: "actor.id == 'local:bob'", effect: pending}
  - {id: late, match: {env: prod}, effect: allow, require_approval_if: args.version > 3}
  - {id: reads, match: {tool: "fetch_*"}, effect: allow}
`
	otherPolicy = `version: 1
policies:
  - {id: latest, when: "risk.mode == 'danger'", effect: pending, expires: 48h}
  - {id: readers, when: "'readers' in actor.roles", effect: allow}
  - {id: in-german, match: {env: t*t}, when: "has(args.lang) && args.lang == 'de'", effect: deny}
  - {id: rest, effect: allow, deny: args.history == true}
`
	otherRisk = `version: 1
rules:
  - {id: latest, when: {args: {version: {gte: 7, exists: true}}}, set_mode: danger}
`
)

// A pastCall is a recorded call, and all that the policies above ask about it.
type pastCall struct {
	actor, env, lang, history string // lang and history: "" is not given
	version                   int    // 0 is not given
	rated                     bool   // recorded with risk rules
	then                      string // effect of the policy that decided it, which nobody asks about any more; empty: there was none
	stopped                   string // what stopped it before the policy gate, if anything did
}

func (c *pastCall) plan() string {
	args, tool := `"policy_id":"policy-002"`, statestest.Tool
	for _, m := range []struct{ name, value string }{
		{"lang", `"` + c.lang + `"`}, {"version", fmt.Sprint(c.version)}, {"history", c.history},
	} {
		if m.value != `""` && m.value != "0" && m.value != "" { // it is given
			args += fmt.Sprintf(`,%q:%s`, m.name, m.value)
		}
	}
	switch c.stopped {
	case "arguments":
		args += `,"force":true`
	case "allowlist":
		args, tool = `"policy_id":"policy-002"`, statestest.Delete
	}
	return fmt.Sprintf(`{"type":"call_tool","server":%q,"tool":%q,"args":{%s}}`, statestest.Server, tool, args)
}

// record runs a call and returns its trace.
func (c *pastCall) record(t *testing.T) *traces.Trace {
	t.Helper()
	content := statestest.Content()
	content.Env, content.Roles = c.env, []policy.Role{{Role: "readers", Actors: []string{"local:alice"}}}
	if c.rated {
		content.Risk = statestest.Ladder(risk.Rule{ID: "german", SetMode: "danger", Args: []risk.Predicate{
			{Path: "lang", Op: condition.OpNe, Value: jsontext.Value(`"en"`)},
		}})
	}
	if c.then != "" {
		content.Policy = statestest.Policies(rules.Policy{ID: "then", Effect: c.then})
	}
	return traceOf(t, statestest.MustBundle(content, nil), states.Request{Actor: c.actor, Text: canonical.Text(c.plan())})
}

// traceOf runs a request at the time of the scenarios and returns its trace.
func traceOf(t *testing.T, b *policy.Bundle, request states.Request) *traces.Trace {
	t.Helper()
	request.At, request.Kind = statestest.At, cmp.Or(request.Kind, states.KindCall)
	run := states.NewRun("01890a5d-ac96-774b-bcce-000000000000", request, b)
	_, _, trace := tracestest.Record(t, statestest.MustMachine(t), run, statestest.NewWorld().Effects(), func() string { return statestest.At })
	return trace
}

// checkDraft compares policies that allow everything with a draft of one policy, which allows under a condition. The draft decides
// about the call of a trace as wanted or, if what the trace lacks is named, does not decide.
func checkDraft(t *testing.T, trace *traces.Trace, draft, want string, lacks ...string) {
	t.Helper()
	content, err := backtest.ReadDraft("version: 1\npolicies:\n  - {id: new, when: \""+draft+"\", effect: allow}\n", "department", "region")
	check.NoError(t, err)
	c := backtest.Comparer{
		Old:      ruling.NewJudge(statestest.Policies(rules.Policy{ID: "all", Effect: rules.Allow}), nil),
		New:      ruling.NewJudge(content, nil, "department", "region"),
		Replayer: traces.NewReplayer(statestest.MustMachine(t), nil),
	}
	r := backtest.NewReport([]backtest.Call{c.Compare("one", trace, nil)})
	if len(lacks) > 0 {
		if r.Judged != 0 || r.Unusable != 0 || len(r.Unknown) != 1 || !slices.Equal(r.Unknown[0].Unknown, lacks) {
			t.Errorf("NewReport() = %+v, want unknown %q", r, lacks)
		}
		return
	}
	i := slices.IndexFunc(r.Decisions, func(d backtest.DecisionCount) bool { return d.Calls > 0 })
	if r.Judged != 1 || len(r.Unknown) != 0 || r.Decisions[i].New != want {
		t.Errorf("NewReport() = %+v, want %s", r, want)
	}
}

// comparer compares the policies above.
func comparer(t *testing.T) *backtest.Comparer {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"old.yaml": firstPolicy, "policy.yaml": otherPolicy, "risk.yaml": otherRisk} { // in any order
		check.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	c := &backtest.Comparer{Replayer: traces.NewReplayer(statestest.MustMachine(t), nil)}
	var err error
	if c.Old, err = backtest.ReadJudge(filepath.Join(dir, "old.yaml"), os.ReadFile); err != nil {
		t.Fatal(err)
	}
	if c.New, err = backtest.ReadJudge(dir, os.ReadFile); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCompare: the old and the new policies judge recorded calls, whatever was decided then.
func TestCompare(t *testing.T) {
	c := comparer(t)
	for _, tt := range []struct {
		name     string
		past     pastCall
		old, new string // decisions; empty: the call did not come as far as the policy
		by       string
		kinds    []string
	}{
		{"denied-by-another", pastCall{actor: "local:carol", env: "test", lang: "de", version: 1, rated: true}, rules.Deny, rules.Deny, "in-german",
			[]string{"policy-changed", "risk-changed"}},
		{"newly-denied", pastCall{actor: "local:bob", env: "test", version: 1, then: rules.Allow}, rules.Pending, rules.Deny, "rest",
			[]string{"newly-denied", "policy-changed", "risk-changed"}},
		{"held-for-longer", pastCall{actor: "local:bob", env: "test", lang: "en", version: 7, rated: true}, rules.Pending, rules.Pending, "latest",
			[]string{"hold-weakened", "policy-changed", "risk-changed"}},
		{"allowed-by-another", pastCall{actor: "local:alice", env: "prod", lang: "en", version: 2, rated: true, then: rules.Deny}, rules.Allow, rules.Allow, "readers",
			[]string{"policy-changed"}},
		{"condition-failed", pastCall{actor: "local:alice", env: "prod", lang: "en", rated: true}, rules.Deny, rules.Allow, "readers",
			[]string{"newly-allowed", "policy-changed"}},
		{"risk-unknown", pastCall{actor: "local:alice", env: "test", version: 1, rated: true}, rules.Deny, rules.Allow, "readers",
			[]string{"newly-allowed", "policy-changed", "risk-changed"}},
		{"held-by-condition", pastCall{actor: "local:carol", env: "prod", history: "false", version: 5, then: rules.Pending}, rules.Pending, rules.Allow, "rest",
			[]string{"newly-allowed", "policy-changed", "risk-changed"}},
		{"newly-held", pastCall{actor: "local:carol", env: "test", version: 8}, rules.Allow, rules.Pending, "latest",
			[]string{"newly-held", "policy-changed", "risk-changed"}},
		{"stopped-by-the-schema", pastCall{actor: "local:carol", env: "test", stopped: "arguments"}, "", "", "", nil},
		{"stopped-by-the-allowlist", pastCall{actor: "local:carol", env: "test", stopped: "allowlist"}, "", "", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			trace := tt.past.record(t)
			got := backtest.NewReport([]backtest.Call{c.Compare(tt.name, trace, nil)})
			if tt.old == "" {
				if got.Traces != 1 || got.Judged != 0 || got.Unusable != 0 {
					t.Errorf("NewReport() = %+v, want a call that is not judged", got)
				}
				return
			}
			want := []backtest.Call{{
				Path: tt.name, RunID: trace.Header.RunID, Tool: statestest.Server + " " + statestest.Tool,
				Old: tt.old, New: tt.new, By: tt.by, Kinds: tt.kinds,
			}}
			if d := gocmp.Diff(want, got.Changed, cmpopts.IgnoreFields(backtest.Call{}, "Before", "After")); d != "" {
				t.Error(d)
			}
			for _, kind := range ruling.Kinds() {
				if got.HasChange([]string{kind}) != slices.Contains(tt.kinds, kind) {
					t.Errorf("HasChange(%s) = %t", kind, got.HasChange([]string{kind}))
				}
			}
			i := slices.IndexFunc(got.Decisions, func(d backtest.DecisionCount) bool { return d.Calls > 0 })
			if d := got.Decisions[i]; d.Old != tt.old || d.New != tt.new || got.Judged != 1 {
				t.Errorf("the decisions are %+v", got.Decisions)
			}
		})
	}
}

// TestCompareOfAnUnusableTrace shows that a changed trace is an error and no judged call.
func TestCompareOfAnUnusableTrace(t *testing.T) {
	past := pastCall{actor: "local:carol", env: "test"}
	cut, good := past.record(t), past.record(t)
	cut.Steps = cut.Steps[:1]
	c := comparer(t)
	r := backtest.NewReport([]backtest.Call{
		c.Compare("cut", cut, nil), c.Compare("unread", nil, errors.New("no such file")), c.Compare("good", good, nil),
	})
	if r.Traces != 3 || r.Judged != 1 || r.Unusable != 2 || len(r.Errors) != 2 || r.Errors[0].Path != "cut" || r.Errors[1].Error != "no such file" {
		t.Errorf("NewReport() = %+v", r)
	}
}
