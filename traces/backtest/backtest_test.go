package backtest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/policy/ruling"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/backtest"
	"pgfsm/traces/tracestest"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
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

// pastCall is a recorded call, and all that the policies above ask about it.
type pastCall struct {
	actor, env, lang, history string // lang and history: "" is not given
	version                   int    // 0 is not given
	rated                     bool   // recorded with risk rules
	stopped                   string // what stopped it before the policy gate, if anything did
}

// expected is a decision, the policy that makes it, the risk, and until when a held call waits.
type expected struct{ decision, by, risk, until string }

// at adds the risk and, to a hold, until when it waits.
func (s expected) at(risk, until string) expected {
	if s.risk = risk; s.decision == rules.Pending {
		s.until = until
	}
	return s
}

// byOld is what the old policies decide, read from them by hand.
func (c *pastCall) byOld() expected {
	german := c.rated && c.lang != "en" // not given is unknown, and counts as danger
	s := func() expected {
		switch {
		case german:
			return expected{decision: rules.Deny, by: "german"}
		case c.actor == "local:bob":
			return expected{decision: rules.Pending, by: "bob"}
		case c.env == "prod" && c.version == 0: // the condition fails
			return expected{decision: rules.Deny, by: "late"}
		case c.env == "prod" && c.version > 3:
			return expected{decision: rules.Pending, by: "late"}
		case c.env == "prod":
			return expected{decision: rules.Allow, by: "late"}
		}
		return expected{decision: rules.Allow, by: "reads"}
	}()
	switch {
	case german:
		return s.at("danger 90", "a day")
	case c.rated:
		return s.at("safe 0", "a day")
	}
	return s.at("unrated 0", "a day")
}

// byNew is what the new policies decide, read from them by hand.
func (c *pastCall) byNew() expected {
	s := func() expected {
		switch {
		case c.version >= 7:
			return expected{decision: rules.Pending, by: "latest"}
		case c.actor == "local:alice":
			return expected{decision: rules.Allow, by: "readers"}
		case c.env == "test" && c.lang == "de":
			return expected{decision: rules.Deny, by: "in-german"}
		case c.history != "false": // also where the condition fails
			return expected{decision: rules.Deny, by: "rest"}
		}
		return expected{decision: rules.Allow, by: "rest"}
	}()
	if c.version >= 7 {
		return s.at("danger 90", "two days")
	}
	return s.at("safe 0", "two days")
}

// naiveKinds are the kinds of change from one to the other. Every policy of the new ones has another name.
func naiveKinds(before, after expected) (kinds []string) {
	switch {
	case before.decision != after.decision:
		kinds = append(kinds, map[string]string{rules.Allow: "newly-allowed", rules.Deny: "newly-denied", rules.Pending: "newly-held"}[after.decision])
	case before.until != after.until: // the new ones wait longer, and differ in nothing else
		kinds = append(kinds, "hold-weakened")
	}
	kinds = append(kinds, "policy-changed")
	if before.risk != after.risk {
		kinds = append(kinds, "risk-changed")
	}
	return kinds
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

func randomPastCall(r *rand.Rand) pastCall {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	return pastCall{
		actor: one("local:alice", "local:bob", "local:carol"), env: one("test", "prod"), lang: one("", "en", "de"),
		history: one("", "true", "false"), version: r.IntN(10), rated: r.IntN(2) == 0,
		stopped: one("", "", "", "", "", "", "arguments", "allowlist"),
	}
}

// pastBundles are what the calls were recorded with, by environment, whether there were risk rules, and how a policy that
// nobody asks about any more decided.
func pastBundles() map[string]*policy.Bundle {
	all := make(map[string]*policy.Bundle)
	for _, env := range []string{"test", "prod"} {
		for _, rated := range []bool{false, true} {
			for _, effect := range []string{"", rules.Allow, rules.Deny, rules.Pending} {
				c := statestest.Content()
				c.Env, c.Roles = env, []policy.Role{{Role: "readers", Actors: []string{"local:alice"}}}
				if rated {
					c.Risk = statestest.Ladder(risk.Rule{ID: "german", SetMode: "danger", Args: []risk.Predicate{
						{Path: "lang", Op: risk.OpNe, Value: jsontext.Value(`"en"`)},
					}})
				}
				if effect != "" {
					c.Policy = statestest.Policies(rules.Policy{ID: "then", Effect: effect})
				}
				all[fmt.Sprint(env, rated, effect)] = statestest.MustBundle(c, nil)
			}
		}
	}
	return all
}

// record runs n calls and returns their traces.
func record(t *testing.T, n int) (past []pastCall, recorded []*traces.Trace) {
	t.Helper()
	machine, bundles := statestest.MustMachine(t), pastBundles()
	r := rand.New(rand.NewPCG(10, 4))
	for i := range n {
		c, effect := randomPastCall(r), []string{"", rules.Allow, rules.Deny, rules.Pending}[r.IntN(4)]
		run := states.NewRun(fmt.Sprintf("01890a5d-ac96-774b-bcce-%012x", i), states.Request{
			Actor: c.actor, At: statestest.At, Kind: states.KindCall, Text: canonical.Text(c.plan()),
		}, bundles[fmt.Sprint(c.env, c.rated, effect)])
		past, recorded = append(past, c), append(recorded, traceOf(t, machine, run))
	}
	return past, recorded
}

// traceOf advances a run and writes its trace as docs/reference/trace-format.md says, without a file.
func traceOf(t *testing.T, m *states.Machine, run *states.Run) *traces.Trace {
	t.Helper()
	var steps statestest.Memory
	outcome, err := m.Advance(t.Context(), run, statestest.NewWorld().Effects(), &steps)
	check.NoError(t, err)
	doc := tracestest.Doc{}
	check.NoError(t, json.Unmarshal(canonical.MustMarshal(traces.NewHeader(m, run)), &doc.Members))
	doc.Members["outcome"] = canonical.MustMarshal(outcome)
	for _, s := range steps.Steps {
		doc.Steps = append(doc.Steps, tracestest.Members{
			"at": canonical.MustMarshal(statestest.At), "command": s.Command, "event": s.Event, "facts": s.Facts,
			"from": canonical.MustMarshal(s.From), "to": canonical.MustMarshal(s.To), "trigger": canonical.MustMarshal(s.On),
		})
	}
	text, err := doc.Seal()
	check.NoError(t, err)
	trace, err := traces.Read(text)
	check.NoError(t, err)
	return trace
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

// wanted is the report, made from the calls themselves.
func wanted(past []pastCall, recorded []*traces.Trace) *backtest.Report {
	decisions, kinds := make(map[[2]string]int), make(map[string]int)
	r := &backtest.Report{Traces: len(past)}
	for i := range past {
		if past[i].stopped != "" {
			continue
		}
		r.Judged++
		before, after := past[i].byOld(), past[i].byNew()
		decisions[[2]string{before.decision, after.decision}]++
		all := naiveKinds(before, after)
		for _, kind := range all {
			kinds[kind]++
		}
		r.Changed = append(r.Changed, backtest.Call{
			Path: fmt.Sprint(i), RunID: recorded[i].Header.RunID, Tool: statestest.Server + " " + statestest.Tool,
			Old: before.decision, New: after.decision, By: after.by, Kinds: all,
		})
	}
	for _, from := range []string{rules.Allow, rules.Pending, rules.Deny} {
		for _, to := range []string{rules.Allow, rules.Pending, rules.Deny} {
			r.Decisions = append(r.Decisions, backtest.DecisionCount{Old: from, New: to, Calls: decisions[[2]string{from, to}]})
		}
	}
	for _, kind := range ruling.Kinds() {
		r.Kinds = append(r.Kinds, backtest.KindCount{Kind: kind, Calls: kinds[kind]})
	}
	return r
}

// TestCompareEqualsANaiveOne compares thousands of calls in parallel with decisions that were read from the policies by hand.
func TestCompareEqualsANaiveOne(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 400
	}
	past, recorded := record(t, n)
	c, calls := comparer(t), make([]backtest.Call, n)
	var all sync.WaitGroup
	for first := range 4 {
		all.Go(func() {
			for i := first; i < n; i += 4 {
				calls[i] = c.Compare(fmt.Sprint(i), recorded[i], nil)
			}
		})
	}
	all.Wait()
	got, want := backtest.NewReport(calls), wanted(past, recorded)
	withoutRulings := cmpopts.IgnoreFields(backtest.Call{}, "Before", "After")
	if d := cmp.Diff(want, got, withoutRulings); d != "" {
		t.Error(visible.Clip(d, 4000))
	}
	for _, d := range got.Decisions {
		if d.Calls < n/200 {
			t.Errorf("%d calls go %s -> %s, want at least %d: the policies show too little", d.Calls, d.Old, d.New, n/200)
		}
	}
	for _, k := range got.Kinds {
		if got.HasChange([]string{k.Kind}) != (k.Calls > 0) {
			t.Errorf("Has(%s) with %d calls", k.Kind, k.Calls)
		}
	}
	past[0].stopped, past[1].stopped = "now", "now" // the comparison can fail
	if cmp.Equal(wanted(past, recorded), got, withoutRulings) {
		t.Error("two calls more make no difference")
	}
}

// TestCompareOfAnUnusableTrace shows that a changed trace is an error and no judged call.
func TestCompareOfAnUnusableTrace(t *testing.T) {
	_, recorded := record(t, 2)
	recorded[0].Steps = recorded[0].Steps[:1]
	c := comparer(t)
	r := backtest.NewReport([]backtest.Call{
		c.Compare("cut", recorded[0], nil), c.Compare("unread", nil, errors.New("no such file")), c.Compare("good", recorded[1], nil),
	})
	if r.Traces != 3 || r.Unusable != 2 || len(r.Errors) != 2 || r.Errors[0].Path != "cut" || r.Errors[1].Error != "no such file" {
		t.Errorf("NewReport() = %+v", r)
	}
}
