package traces_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/tracestest"
)

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// randomArgs draws arguments that the world's schema takes.
func randomArgs(r *rand.Rand) string {
	members := []string{`"policy_id":` + pick(r, `"policy-001"`, `"policy-002"`)}
	for _, m := range []struct {
		name   string
		values []string
	}{
		{"lang", []string{`"en"`, `"de"`}},
		{"version", []string{"1", "3", "5", "9"}},
		{"sections", []string{`[]`, `["scope"]`, `["id","SSN"]`}},
		{"as_of", []string{`""`, `"2026-11-21"`}},
		{"history", []string{"true", "false"}},
		{"weight", []string{"0", "0.5", "1e3", "1e400", "9007199254740993"}},
		{"filter", []string{`{}`, `{"owner":"Records Office"}`, `{"owner":"HR"}`}},
	} {
		if r.IntN(2) == 0 {
			members = append(members, fmt.Sprintf("%q:%s", m.name, pick(r, m.values...)))
		}
	}
	r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, ",") + "}"
}

func randomRisk(r *rand.Rand) *risk.Content {
	c := &risk.Content{Modes: risk.DefaultModes(), Initial: pick(r, "safe", "review"), Vars: []risk.Var{{Name: "w", Expr: "args.weight / 2.0"}}}
	predicates := []risk.Predicate{
		{Path: "version", Op: risk.OpGte, Value: jsontext.Value("3")},
		{Path: "lang", Op: risk.OpEq, Value: jsontext.Value(`"de"`)},
		{Path: "sections", Op: risk.OpContains, Value: jsontext.Value(`"ssn"`)},
		{Path: "/filter/owner", Op: risk.OpMatches, Value: jsontext.Value(`"^Rec"`)},
		{Path: "as_of", Op: risk.OpExists, Value: jsontext.Value("true")},
		{Path: "weight", Op: risk.OpLt, Value: jsontext.Value("1e300")},
	}
	for i := range r.IntN(5) {
		rule := risk.Rule{ID: fmt.Sprintf("rule-%d", i), Reason: "It is so."}
		rule.Match = pick(r, risk.Match{}, risk.Match{}, risk.Match{Env: "prod"}, risk.Match{Tool: "fetch_*"}, risk.Match{Server: "elsewhere"})
		for range r.IntN(3) {
			rule.Args = append(rule.Args, pick(r, predicates...))
		}
		switch r.IntN(3) {
		case 0:
			rule.SetMode = pick(r, "safe", "review", "danger")
		case 1:
			rule.Escalate = true
		default:
			rule.ScoreExpr = pick(r, "score + 30.0", "vars.w", "args.version * 20", "100 / args.version", "has(args.lang) ? 70.0 : score", "env == 'prod' ? 90 : 5")
		}
		c.Rules = append(c.Rules, rule)
	}
	if r.IntN(2) == 0 {
		c.ModeByScore = []risk.Threshold{{Mode: "danger", When: "score >= 85"}, {Mode: "review", When: "score >= 40"}}
	}
	return c
}

func randomPolicies(r *rand.Rand) *rules.Content {
	condition := func() string {
		return pick(r, "risk.score >= 50", "risk.mode == 'danger'", "risk.mode != 'safe'", "size(risk.rules) > 1", "args.version > 3",
			"has(args.lang) && args.lang == 'de'", "'readers' in actor.roles", "actor.id == 'local:bob'", "tool_annotations.readOnlyHint",
			"tool_annotations.destructiveHint", "pinned", "env == 'prod'", "args.sections.exists(s, s.lowerAscii() == 'ssn')",
			"now >= timestamp('2026-11-21T12:00:00Z')", "args.weight > 1.0", "args.filter.owner == 'HR'", "args.history == true", "server == tool")
	}
	c := &rules.Content{}
	for i := range r.IntN(8) {
		p := rules.Policy{ID: fmt.Sprintf("policy-%d", i), Effect: pick(r, rules.Allow, rules.Allow, rules.Allow, rules.Deny, rules.Pending)}
		p.Match.Server = pick(r, "", "*", "mcp-*", "elsewhere")
		p.Match.Tool = pick(r, "", "fetch_*", "*_entry", "delete_*")
		p.Match.Env = pick(r, "", "", "prod", "t?st")
		if r.IntN(3) > 0 {
			p.When = condition()
		}
		if p.Effect == rules.Allow && r.IntN(2) == 0 {
			p.Deny = condition()
		}
		if p.Effect == rules.Allow && r.IntN(2) == 0 {
			p.RequireApprovalIf = condition()
		}
		if p.Effect == rules.Pending || p.RequireApprovalIf != "" {
			p.Quorum, p.Expires, p.Approvers = r.IntN(3), pick[int64](r, 0, 1000, 3_600_000), pick(r, nil, []string{"owners"})
		}
		p.Mode = pick(r, "", rules.Enforce, rules.Enforce, rules.Shadow)
		p.Reason = pick(r, "", "So it was agreed.")
		c.Policies = append(c.Policies, p)
	}
	return c
}

// randomCall is a call that an operator makes under rules and policies of all kinds, and the call's arguments.
func randomCall(tb testing.TB, r *rand.Rand) (statestest.Scenario, string) {
	s := statestest.Find(tb, "operator-call")
	args := randomArgs(r)
	s.Request.Text = canonical.Text(fmt.Sprintf(`{"type":"call_tool","server":%q,"tool":%q,"args":%s}`, statestest.Server, statestest.Tool, args))
	s.Request.Actor = pick(r, "local:alice", "local:bob", "local:carol")
	s.Request.At = pick(r, statestest.At, "2026-11-21T12:00:00Z", "2026-12-31T23:59:59Z")
	s.Content.Env = pick(r, "test", "prod")
	s.Content.Roles = []policy.Role{{Role: "readers", Actors: []string{"local:alice", "local:carol"}}, {Role: "owners", Actors: []string{"local:bob"}}}
	if r.IntN(2) == 0 {
		s.Content.Pins = []policy.Pin{{Definition: statestest.Definition(), Server: statestest.Server, Tool: statestest.Tool}}
	}
	if r.IntN(5) > 0 {
		s.Content.Risk = randomRisk(r)
	}
	if r.IntN(8) > 0 {
		s.Content.Policy = randomPolicies(r)
	}
	return s, args
}

// input is what conditions are told of the call, put together here and not by the bundle.
func input(s *statestest.Scenario, args string) *condition.Input {
	in := &condition.Input{
		Server: statestest.Server, Tool: statestest.Tool, Env: s.Content.Env, Args: []byte(args), Pinned: len(s.Content.Pins) > 0,
		Now: s.Request.At, Actor: condition.Actor{ID: s.Request.Actor}, Annotations: condition.Annotations{ReadOnly: new(true)},
	}
	for _, role := range s.Content.Roles {
		for _, actor := range role.Actors {
			if actor == s.Request.Actor {
				in.Actor.Roles = append(in.Actor.Roles, role.Role)
			}
		}
	}
	return in
}

// A way is one of those that lead to a decision. A run that was blocked keeps the verdict alone.
type way struct {
	by       string
	assessed policy.Assessment
	blocked  bool
}

// ofRun is what a run was told.
func ofRun(by string, run *states.Run) way {
	facts := run.Facts()
	if f := facts.Assessed; f != nil {
		return way{by, policy.Assessment{
			Approvers: f.Approvers, Condition: f.Condition, Expires: f.Expires, Mode: f.Mode, Policy: f.Policy, Quorum: f.Quorum,
			Risk: f.Risk, Score: f.Score, Shadow: f.Shadow, Verdict: f.Verdict,
		}, false}
	}
	w := way{by: by, blocked: true}
	if facts.Stopped != nil {
		w.assessed.Verdict = facts.Stopped.Verdict
	}
	return w
}

// disagreement says which of the ways does not lead where the first does.
func disagreement(ways []way) string {
	first := ways[0].assessed
	for _, w := range ways[1:] {
		want := first
		if w.blocked {
			want = policy.Assessment{Verdict: first.Verdict}
		}
		if d := cmp.Diff(want, w.assessed, cmpopts.EquateEmpty()); d != "" || w.blocked && !first.Verdict.Blocks() {
			return fmt.Sprintf("by %s: %+v\nby %s: %+v\n%s", ways[0].by, first, w.by, w.assessed, d)
		}
	}
	return ""
}

// decided goes every way: the bundle's own, that of explain, a run's, its replay's, and that of what the trace keeps of the
// bundle, compiled anew.
func decided(t *testing.T, m *states.Machine, s *statestest.Scenario, args string) []way {
	t.Helper()
	asked, err := canonical.JSON([]byte(args))
	if err != nil {
		t.Fatal(err)
	}
	in := input(s, string(asked))
	b := statestest.MustBundle(s.Content, nil)
	explained, considered := b.Explain(in)
	if n := len(considered); explained.Policy != "" && (n == 0 || considered[n-1].Policy != explained.Policy || !considered[n-1].Matched) {
		t.Errorf("Explain() considered %+v, want %q to be the last, and matched", considered, explained.Policy)
	}
	run := s.Run()
	_, _, trace := tracestest.Record(t, m, run, s.Entry(), clock)
	again, err := traces.NewReplayer(m, nil).Replay(trace)
	if err != nil {
		t.Fatalf("Replay() = %v", err)
	}
	question, ok := again.Question()
	if !ok {
		t.Fatalf("the run ended as %s before the policy was asked: %s", trace.Outcome.State, trace.Outcome.Reason)
	}
	var content policy.Content
	if err := canonical.Unmarshal(trace.Header.Bundle.Content, &content); err != nil {
		t.Fatal(err)
	}
	anew := statestest.MustBundle(content, nil)
	return []way{
		{"Assess", b.Assess(in), false}, {"Explain", explained, false}, {"Decide", b.Decide(question), false},
		ofRun("a run", run), ofRun("its replay", again), {"Decide of the trace's bundle", anew.Decide(question), false},
		{"Explain of the trace's bundle", must(anew.Explain(in)), false},
	}
}

func must(a policy.Assessment, _ []rules.Considered) policy.Assessment { return a }

// TestOneDecision: for rules, policies and calls of all kinds, every way to a decision leads to the same one.
func TestOneDecision(t *testing.T) {
	calls := 60
	if os.Getenv("PGFSM_SOAK") != "" {
		calls = 1500
	}
	m := statestest.MustMachine(t)
	r := rand.New(rand.NewPCG(4, 4))
	seen := map[string]int{}
	for range calls {
		s, args := randomCall(t, r)
		ways := decided(t, m, &s, args)
		if problem := disagreement(ways); problem != "" {
			t.Fatalf("%s\nrisk %+v\npolicy %+v\nargs %s", problem, s.Content.Risk, s.Content.Policy, args)
		}
		a := ways[0].assessed
		for what, is := range map[string]bool{ // counted, and looked up by name below
			"allowed": a.Verdict.Allows(), "held": a.Verdict.Holds(), "denied": a.Verdict.Code == policy.CodePolicyDenied,
			"failed": a.Verdict.Code == policy.CodePolicyFailed, "on trial": len(a.Shadow) > 0, "raised": a.Mode == "danger",
			"by a condition": a.Condition != "", "no rules": a.Mode == policy.Unrated,
		} {
			if is {
				seen[what]++
			}
		}
		for _, c := range a.Risk {
			if c.Failed != "" {
				seen["risk unknown"]++
				break
			}
		}
	}
	for _, what := range []string{"allowed", "held", "denied", "failed", "on trial", "raised", "by a condition", "no rules", "risk unknown"} {
		if seen[what] < calls/30 {
			t.Errorf("%d of %d calls are %s, want at least %d: too few to show anything", seen[what], calls, what, calls/30)
		}
	}
	t.Logf("%d calls: %v", calls, seen)
}

// TestDisagreementFinds shows that the property can fail: for each member of what is decided, and for a run that was
// blocked or was not.
func TestDisagreementFinds(t *testing.T) {
	allowed := policy.Verdict{Outcome: policy.Allow, Gate: policy.GatePolicy}
	same := policy.Assessment{Verdict: allowed, Mode: "safe", Policy: "p"}
	if problem := disagreement([]way{{"a", same, false}, {"b", same, false}}); problem != "" {
		t.Error(problem)
	}
	for name, change := range map[string]func(*way){ // each alone
		"verdict": func(w *way) { w.assessed.Verdict.Outcome = policy.Block }, "mode": func(w *way) { w.assessed.Mode = "danger" },
		"policy": func(w *way) { w.assessed.Policy = "q" }, "score": func(w *way) { w.assessed.Score++ },
		"shadow":  func(w *way) { w.assessed.Shadow = []rules.ShadowDecision{{Policy: "s"}} },
		"risk":    func(w *way) { w.assessed.Risk = []risk.Contribution{{Rule: "r"}} },
		"blocked": func(w *way) { *w = way{"b", policy.Assessment{Verdict: allowed}, true} },
	} {
		other := way{"b", same, false}
		change(&other)
		if disagreement([]way{{"a", same, false}, other}) == "" {
			t.Errorf("disagreement() finds nothing in another %s", name)
		}
	}
}

// TestReplayUnderAnotherPolicyDiverges: a trace whose bundle names another policy than the run had is not the run's.
func TestReplayUnderAnotherPolicyDiverges(t *testing.T) {
	m := statestest.MustMachine(t)
	s := statestest.Find(t, "policy-allows")
	_, doc := record(t, m, &s)
	trace, err := traces.Read(doc)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*rules.Content{ // each alone
		"denies": statestest.Policies(), "holds": statestest.Policies(rules.Policy{ID: "h", Effect: rules.Pending}),
		"allows-by-another": statestest.Policies(rules.Policy{ID: "other", Effect: rules.Allow}),
	} {
		t.Run(name, func(t *testing.T) {
			p := traces.NewReplayer(m, func(content policy.Content) (*policy.Bundle, error) {
				b, err := policy.Compile(content)
				if err != nil {
					return nil, err
				}
				content.Policy = c
				return b.WithDecider(statestest.MustBundle(content, nil)), nil
			})
			if _, err := p.Replay(trace); err == nil || !strings.Contains(err.Error(), "divergence_") {
				t.Errorf("Replay() = %v, want a divergence", err)
			}
		})
	}
}

// TestPolicyFactsAreKept: the trace of a continued run has the results of risk rules and policies.
func TestPolicyFactsAreKept(t *testing.T) {
	m := statestest.MustMachine(t)
	raised := []risk.Contribution{{Matched: true, Mode: "review", Reason: "This policy is looked at.", Rule: "second", Score: 50}}
	for _, tt := range []struct {
		name string
		want states.AssessedFact
	}{
		{"policy-allows", states.AssessedFact{Mode: policy.Unrated, Policy: "reads"}},
		{"policy-match-fails-and-goes-on", states.AssessedFact{Mode: policy.Unrated, Policy: "reads"}},
		{"risk-without-policies", states.AssessedFact{Mode: "review", Score: 50, Risk: raised}},
		{"risk-that-is-not-raised", states.AssessedFact{Mode: "safe", Policy: "reads"}},
		{"policy-on-trial-is-recorded", states.AssessedFact{
			Mode: "review", Score: 50, Risk: raised, Policy: "reads",
			Shadow: []rules.ShadowDecision{{Effect: rules.Deny, Policy: "trial"}, {Effect: rules.Pending, Policy: "trial-hold"}},
		}},
		{"policy-holds", states.AssessedFact{
			Mode: "review", Score: 50, Risk: raised, Policy: "looked-at", Approvers: []string{"owners"}, Quorum: 1,
			Expires: "2026-11-21T10:00:00Z",
		}},
		{"policy-asks-by-condition", states.AssessedFact{
			Mode: "review", Score: 50, Risk: raised, Policy: "reads", Condition: "require_approval_if", Quorum: rules.DefaultQuorum,
			Expires: "2026-11-22T09:00:00Z",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := statestest.Find(t, tt.name)
			_, doc := record(t, m, &s)
			got := assessedFact(t, doc)
			got.Arguments, got.Bundle, got.Definition, got.Plan, got.Verdict = "", "", "", "", policy.Verdict{}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("assessed (-want +got):\n%s", d)
			}
		})
	}
}

// TestFailedRiskIsKept: a rule that could not be evaluated says so in the trace, and why.
func TestFailedRiskIsKept(t *testing.T) {
	m := statestest.MustMachine(t)
	for name, rule := range map[string]string{"risk-that-fails-is-more": "old", "risk-of-an-unknown-argument": "german"} { // each alone
		s := statestest.Find(t, name)
		_, doc := record(t, m, &s)
		got := assessedFact(t, doc)
		if len(got.Risk) != 1 || got.Risk[0].Rule != rule || got.Risk[0].Failed == "" || got.Mode == "safe" {
			t.Errorf("%s: %+v, want a more severe mode by %s, with what failed", name, got, rule)
		}
	}
}

// assessedFact returns the recorded fact of the step that assessed.
func assessedFact(t *testing.T, doc []byte) (f states.AssessedFact) {
	t.Helper()
	trace, err := traces.Read(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range trace.Steps {
		if step.To == states.Assessed {
			if err := canonical.Unmarshal(step.Facts, &f); err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	t.Fatalf("no step of the run, which ended as %s, assessed it", trace.Outcome.State)
	return f
}

// TestEveryChangeOfPolicyFactsIsDetected is [TestEveryChangeIsDetected] for runs that rules and policies decided.
func TestEveryChangeOfPolicyFactsIsDetected(t *testing.T) {
	m := statestest.MustMachine(t)
	for _, name := range []string{"policy-on-trial-is-recorded", "risk-that-fails-is-more"} {
		s := statestest.Find(t, name)
		_, doc := record(t, m, &s)
		var tree any
		if err := json.Unmarshal(doc, &tree); err != nil {
			t.Fatal(err)
		}
		changes := 0
		visit(tree, "", func(any) {}, func(change spot) {
			changes++
			checkSpot(t, name, change)
		}, func() []byte { return canonical.MustMarshal(tree) })
		if changes < 150 {
			t.Errorf("%s: only %d changes were tried", name, changes)
		}
	}
}
