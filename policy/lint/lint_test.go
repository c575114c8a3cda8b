package lint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/lint"
	"pgfsm/policy/origin"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/states/statestest"
)

// The tools of the two servers that most tests have.
const (
	payTools = `{"tools":[
		{"name":"refund","annotations":{"destructiveHint":true},"inputSchema":{"type":"object","required":["amount","currency","lines","note"],"properties":{
			"amount":{"type":"number"},"currency":{"type":"string"},"lines":{"type":"array","items":{
			"type":"object","properties":{"sku":{"type":"string"}}}},"note":{}}}},
		{"name":"balance","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{
			"account":{"type":"string"},"deep":{"type":"object","properties":{"all":{"type":"boolean"}}},"kind":{"enum":["a","b"]}}}}]}`
	gitTools = `{"tools":[
		{"name":"push","inputSchema":{"type":"object","properties":{"branch":{"type":"string"},"amount":{"type":"string"}}}}]}`
)

// config is a configuration without findings, changed by change.
func config(change func(*policy.Content)) *policy.Content {
	c := statestest.Content()
	c.Env, c.Outputs = "prod", nil
	c.Servers = []policy.Server{
		{Name: "pay", Type: "http", URL: "http://127.0.0.1:1/mcp", Timeout: 1000},
		{Name: "git", Type: "http", URL: "http://127.0.0.1:2/mcp", Timeout: 1000},
	}
	c.Allowlist = []policy.Allowance{{Server: "pay", Tools: []string{"refund", "balance"}}, {Server: "git", Tools: []string{"push"}}}
	c.Roles = []policy.Role{{Role: "lead", Actors: []string{"ann"}}}
	c.Risk = &risk.Content{Modes: risk.DefaultModes(), Initial: "safe", Rules: []risk.Rule{{ID: "big", SetMode: "danger",
		Match: risk.Match{Tool: "refund"}, Args: []risk.Predicate{{Path: "amount", Op: "gt", Value: jsontext.Value(`100`)}}}}}
	c.Policy = &rules.Content{Policies: []rules.Policy{
		{ID: "read", Match: rules.Match{Server: "pay", Tool: "balance"}, Effect: rules.Allow},
		{ID: "refunds", Match: rules.Match{Server: "pay"}, When: "args.amount < 10", Effect: rules.Pending, Approvers: []string{"lead"}},
		{ID: "pushes", Match: rules.Match{Server: "git"}, Effect: rules.Pending},
		{ID: "rest", Effect: rules.Deny},
	}}
	if change != nil {
		change(&c)
	}
	return &c
}

// when changes the condition of the policy refunds.
func when(src string) func(*policy.Content) {
	return func(c *policy.Content) { c.Policy.Policies[1].When = src }
}

func insert(at int, p rules.Policy) func(*policy.Content) {
	return func(c *policy.Content) { c.Policy.Policies = slices.Insert(c.Policy.Policies, at, p) }
}

func scored(src string) func(*policy.Content) {
	return func(c *policy.Content) { c.Risk.Rules[0].ScoreExpr = src }
}

// labelled gives labels to a tool of the server pay.
func labelled(r origin.RoleLabel) func(*policy.Content) {
	return func(c *policy.Content) {
		r.Server = "pay"
		c.Labels = &origin.Labels{Roles: []origin.RoleLabel{r}}
	}
}

// writable trusts results of balance, and adds a policy about writes.
func writable(m rules.Match, effect, ask string, label origin.ToolLabel) func(*policy.Content) {
	return func(c *policy.Content) {
		label.Server, label.Tool = "pay", "balance"
		c.Labels = &origin.Labels{Tools: []origin.ToolLabel{label}, Roles: []origin.RoleLabel{{Server: "pay", Tool: "refund", Target: []string{"note"}}}}
		insert(1, rules.Policy{ID: "x", Effect: effect, Match: m, When: "pinned == args.lines.exists(l, has(l.sku))", RequireApprovalIf: ask})(c)
	}
}

func asked(path, op, value string) func(*policy.Content) {
	return func(c *policy.Content) {
		c.Risk.Rules[0].Args = []risk.Predicate{{Path: path, Op: op, Value: jsontext.Value(value)}}
	}
}

func listing(server, page string) policy.Listing {
	return policy.Listing{Server: server, Status: policy.ServerUp, Pages: []canonical.Text{canonical.Text(page)}}
}

func catalog(tb testing.TB, c *policy.Content, listings ...policy.Listing) *policy.Catalog {
	tb.Helper()
	b, err := policy.Compile(*c)
	if err != nil {
		tb.Fatalf("Compile() = %v", err)
	}
	return b.Catalog(canonical.Sum("catalog", fmt.Append(nil, listings)), listings)
}

func usual(tb testing.TB, c *policy.Content) *policy.Catalog {
	return catalog(tb, c, listing("pay", payTools), listing("git", gitTools))
}

// brief is what most tests compare of a finding.
func brief(found []lint.Finding) []string {
	var out []string
	for _, f := range found {
		s := fmt.Sprintf("%s %s[%d] %s", f.Code, f.List, f.Place, f.Key)
		if f.Line > 0 {
			s += fmt.Sprintf(" %d:%d", f.Line, f.Column)
		}
		out = append(out, s)
	}
	return out
}

// TestLint shows each code once, and how it goes away.
func TestLint(t *testing.T) {
	shown := map[string]bool{}
	for _, tc := range []struct {
		name  string
		red   func(*policy.Content)
		want  []string
		green func(*policy.Content)
	}{
		{"clean", nil, nil, nil},
		{"policy-below-one-that-decides", insert(0, rules.Policy{ID: "x", Effect: rules.Deny, Match: rules.Match{Tool: "ba*"}}),
			[]string{"policy_unreachable policies[1] match"},
			insert(0, rules.Policy{ID: "x", Effect: rules.Deny, Match: rules.Match{Tool: "ba?*", Env: "de?"}})},
		{"approval-below-an-allow", insert(1, rules.Policy{ID: "x", Effect: rules.Allow, Match: rules.Match{Server: "p*"},
			Deny: "args.amount > 5"}),
			[]string{"destructive_allowed policies[1] effect", "approval_unreachable policies[2] match"},
			insert(1, rules.Policy{ID: "x", Effect: rules.Allow, Match: rules.Match{Server: "p*y", Tool: "b*"}, Deny: "pinned"})},
		{"approval-where-the-same-condition-allows", insert(1, rules.Policy{ID: "x", Effect: rules.Allow,
			Match: rules.Match{Tool: "*"}, When: "args.amount < 10", Deny: "false"}),
			[]string{"destructive_allowed policies[1] effect", "condition_never_true policies[1] deny",
				"approval_unreachable policies[2] match"}, // the amount of git's push is a text, which fails
			insert(1, rules.Policy{ID: "x", Effect: rules.Pending, Match: rules.Match{Tool: "*"}, When: "args.amount < 10 && pinned"})},
		{"never-true", when("env == 'prod' && env == 'dev'"), []string{
			"condition_never_true policies[1] when", "name_unconfigured policies[1] when 1:25"}, when("env == 'prod'")},
		{"hold-for-one-mode-only", insert(0, rules.Policy{ID: "x", Effect: rules.Allow, Match: rules.Match{Tool: "balance", Env: "dev"},
			RequireApprovalIf: "risk.mode == 'review'"}), []string{"risk_not_monotonic policies[0] require_approval_if"},
			insert(0, rules.Policy{ID: "x", Effect: rules.Allow, Match: rules.Match{Tool: "balance", Env: "dev"}, RequireApprovalIf: "risk.mode != 'safe'"})},
		{"always-true", when("args.amount < 10 || true"), []string{"condition_always_true policies[1] when"}, nil},
		{"always-fails", when("1 / 0 == 1"), []string{"condition_always_fails policies[1] when"}, when("args.amount / 0.0 == 1.0")},
		{"score-always-fails", scored("10 / 0"), []string{"condition_always_fails rules[0] score_expr"}, scored("10 / 1")},
		{"score-fails-if-nothing-is-found", scored("session.private ? 10 : 10 / 0"), nil, scored(`found("note") || history.count("actor", "1h") > 1 ? 10 : 10 / 0`)},
		{"always-held-unless-found", func(c *policy.Content) { c.Policy.Policies[0].RequireApprovalIf = "!found('account')" }, nil, nil},
		{"variable-always-fails", func(c *policy.Content) { c.Risk.Vars = []risk.Var{{Name: "n", Expr: "1 / 0"}} },
			[]string{"condition_always_fails vars[0] expr"},
			func(c *policy.Content) { c.Risk.Vars = []risk.Var{{Name: "n", Expr: "double(args.amount)"}} }},
		{"allows-everything", insert(3, rules.Policy{ID: "x", Effect: rules.Allow}),
			[]string{"allows_everything policies[3] match", "destructive_allowed policies[3] effect",
				"policy_unreachable policies[4] match"},
			insert(3, rules.Policy{ID: "x", Effect: rules.Allow, Match: rules.Match{Env: "dev"}})},
		{"argument-that-no-tool-has", when("args.amuont < 10"), []string{"argument_unknown policies[1] when 1:6"},
			when("args.account == 'x'")}, // another tool of the server has it
		{"argument-in-a-list", when("args.lines.exists(l, l.skv == 'x')"), []string{"argument_unknown policies[1] when 1:24"},
			when("args.lines.exists(l, l.sku == 'x')")},
		{"text-compared-with-a-number", when("args.currency > 5"), []string{"argument_type policies[1] when 1:15"},
			when("args.amount > 5")},
		{"number-equals-a-text", when("tool == 'refund' && args.amount == '5'"), []string{"argument_type policies[1] when 1:33"},
			when("tool == 'refund' && args.amount == 5.0")},
		{"type-differs-between-tools", insert(3, rules.Policy{ID: "x", Match: rules.Match{Tool: "p*"}, Effect: rules.Deny,
			When: "args.amount > 5"}), []string{"argument_type policies[3] when 1:13"},
			insert(3, rules.Policy{ID: "x", Match: rules.Match{Tool: "*u*"}, Effect: rules.Deny, When: "args.amount > 5"})},
		{"variable-of-an-argument-that-is-not-there", func(c *policy.Content) {
			c.Risk.Vars = []risk.Var{{Name: "a", Expr: "1"}, {Name: "b", Expr: "vars.a + double(args.rows)"}}
		}, []string{"argument_unknown vars[1] expr 1:22"}, nil},
		{"predicate-on-an-argument-that-is-not-there", asked("amuont", "gt", "5"),
			[]string{"argument_unknown rules[0] args[0].path"}, asked("/lines/0/sku", "eq", `"x"`)},
		{"predicate-of-another-type", asked("currency", "gt", "5"), []string{"argument_type rules[0] args[0].value"},
			asked("currency", "contains", `"x"`)},
		{"mode-misspelt", when("risk.mode in ['danger', 'dangr']"), []string{"mode_unknown policies[1] when 1:25"},
			when("risk.mode in ['danger', 'review']")},
		{"rule-misspelt", when("risk.rules.exists(r, r == 'bigg') || 'bigger' in risk.rules"),
			[]string{"rule_unknown policies[1] when 1:27", "rule_unknown policies[1] when 1:38"}, when("'big' in risk.rules")},
		{"risk-without-risk-rules", func(c *policy.Content) { c.Risk = nil; when("risk.score > 5")(c) },
			[]string{"risk_unconfigured policies[1] when"}, func(c *policy.Content) { c.Risk = nil }},
		{"approvers-who-cannot-vote", func(c *policy.Content) { c.Roles[0].Actors = []string{"local:ann"} },
			[]string{"quorum_unreachable policies[1] approvers"},
			func(c *policy.Content) { c.Roles[0].Actors = []string{"local:ann", "group:leads"} }},
		{"quorum-above-the-approvers", func(c *policy.Content) { c.Policy.Policies[1].Quorum = 2 },
			[]string{"quorum_unreachable policies[1] approvers"},
			func(c *policy.Content) { c.Policy.Policies[1].Quorum, c.Roles[0].Actors = 2, []string{"ann", "bob"} }},
		{"role-misspelt", when("'leed' in actor.roles"), []string{"condition_never_true policies[1] when", "role_unknown policies[1] when 1:1"}, when("'lead' in actor.roles")},
		{"server-of-elsewhere", insert(0, rules.Policy{ID: "x", Effect: rules.Deny, Match: rules.Match{Tool: "b*"}, When: "server == 'Pay'"}),
			[]string{"server_unconfigured policies[0] when 1:11"},
			insert(0, rules.Policy{ID: "x", Effect: rules.Deny, Match: rules.Match{Tool: "b*", Env: "d*"}, When: "server == 'pay'"})},
		{"match-in-another-case", insert(0, rules.Policy{ID: "x", Effect: rules.Deny, Match: rules.Match{Server: "Pay"}}),
			[]string{"server_unconfigured policies[0] match.server"},
			insert(0, rules.Policy{ID: "x", Effect: rules.Deny, Match: rules.Match{Server: "p*", Tool: "b*", Env: "dev"}})},
		{"deny-with-a-class", insert(0, rules.Policy{ID: "x", Effect: rules.Deny, Match: rules.Match{Tool: "[br]*"}}),
			[]string{"match_impossible policies[0] match.tool"}, nil},
		{"allow-with-a-class", insert(0, rules.Policy{ID: "x", Effect: rules.Allow, Match: rules.Match{Tool: "[br]*"}}),
			[]string{"matches_no_tool policies[0] match"}, nil},
		{"deny-by-the-joined-name", insert(0, rules.Policy{ID: "x", Effect: rules.Deny, Match: rules.Match{Tool: "pay__refund"}}),
			[]string{"match_impossible policies[0] match.tool"}, nil},
		{"condition-on-the-joined-name", insert(0, rules.Policy{ID: "x", Effect: rules.Deny, When: "tool == 'pay__refund'"}),
			[]string{"match_impossible policies[0] when 1:9"}, nil},
		{"tool-that-nobody-speaks-of", func(c *policy.Content) { c.Policy.Policies = c.Policy.Policies[:2] },
			[]string{"tool_unmentioned allowlist[1] "}, func(c *policy.Content) { c.Policy.Policies = c.Policy.Policies[:3] }},
		{"tool-in-shadow-only", func(c *policy.Content) {
			c.Policy.Policies = c.Policy.Policies[:3]
			c.Policy.Policies[2].Mode = rules.Shadow
		}, []string{"tool_unmentioned allowlist[1] "}, nil},
		{"destructive-without-a-person", insert(0, rules.Policy{ID: "x", Effect: rules.Allow, Match: rules.Match{Server: "pay", Tool: "refun?"},
			When: "args.amount < 10"}), []string{"destructive_allowed policies[0] effect"},
			insert(0, rules.Policy{ID: "x", Effect: rules.Allow, Match: rules.Match{Server: "pay", Tool: "refun?"},
				When: "!tool_annotations.destructiveHint"})},
		{"write-without-a-person", insert(0, rules.Policy{ID: "x", Effect: rules.Allow, Match: rules.Match{Tool: "pu*"}}),
			[]string{"write_allowed policies[0] effect"},
			insert(0, rules.Policy{ID: "x", Effect: rules.Allow, Match: rules.Match{Tool: "pu*", Env: "dev"}})},
		{"trusted-by-a-write-that-nobody-holds", writable(rules.Match{Tool: "refund"}, rules.Allow, "!found()", origin.ToolLabel{Results: "trusted"}),
			[]string{"trusted_writable tools[0] "},
			writable(rules.Match{Tool: "refund"}, rules.Pending, "", origin.ToolLabel{Trusted: []string{"/account"}})},
		{"trusted-place-of-a-write-that-nobody-holds", writable(rules.Match{Tool: "refund"}, rules.Allow, "!found()", origin.ToolLabel{Trusted: []string{"/account"}}),
			[]string{"trusted_writable tools[0] "},
			writable(rules.Match{Tool: "refund"}, rules.Allow, "!found()", origin.ToolLabel{Creates: []string{"/id"}})},
		{"trusted-items-without-a-policy", func(c *policy.Content) {
			c.Policy = nil
			c.Labels = &origin.Labels{Tools: []origin.ToolLabel{{Server: "pay", Tool: "balance", Items: "/*", TrustedIf: "true"}}}
		}, []string{"trusted_writable tools[0] "}, func(c *policy.Content) {
			c.Policy, c.Labels = nil, &origin.Labels{Tools: []origin.ToolLabel{{Server: "git", Tool: "push", Items: "/*", TrustedIf: "true"}}}
		}},
		{"enum-without-a-role", labelled(origin.RoleLabel{Tool: "balance", Target: []string{"account"}}),
			[]string{"argument_unlabelled roles[0] "},
			labelled(origin.RoleLabel{Tool: "balance", Target: []string{"account", "kind"}, Content: []string{"deep"}})},
		{"enum-without-a-role-and-no-target", labelled(origin.RoleLabel{Tool: "balance", Content: []string{"account"}}), nil, nil},
		{"role-of-an-argument-that-no-tool-has", labelled(origin.RoleLabel{Tool: "refund", Target: []string{"note"}, Amount: []string{"lines.*.sku", "amuont"}}),
			[]string{"argument_unknown roles[0] amount[1]"},
			labelled(origin.RoleLabel{Tool: "refund", Target: []string{"note"}, Amount: []string{"lines.*.sku", "amount"}})},
		{"found-without-a-target", func(c *policy.Content) {
			labelled(origin.RoleLabel{Tool: "refund", Content: []string{"note"}})(c)
			when("!found() && found('note') || found()")(c)
		}, []string{"found_without_target policies[1] when 1:7", "found_without_target policies[1] when 1:35"}, func(c *policy.Content) {
			labelled(origin.RoleLabel{Tool: "refund", Target: []string{"note"}})(c)
			when("!found() && found('note') || found()")(c)
		}},
		{"found-in-a-score-without-labels", scored("found() ? 1 : 2"), []string{"found_without_target rules[0] score_expr 1:6"}, nil},
		{"origin-of-an-argument-that-no-tool-has", when("origin('amuont') == 'none' || found('lines/*/sku')"),
			[]string{"argument_unknown policies[1] when 1:7"}, when("found('lines') && found('*') && found('note/x')")},
		{"shadow-does-not-hide", insert(0, rules.Policy{ID: "x", Effect: rules.Deny, Mode: rules.Shadow}), nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := config(tc.red)
			found := lint.Lint(c, usual(t, c))
			if diff := cmp.Diff(tc.want, brief(found), cmp.Transformer("", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
				t.Errorf("Lint() = %v (-want +got)\n%s", found, diff)
			}
			for _, f := range found {
				shown[f.Code] = true
				if f.Problem == "" || strings.Contains(f.Problem+f.Remedy, "%!") {
					t.Errorf("Lint() says %+v", f)
				}
			}
			c = config(tc.green)
			if found := lint.Lint(c, usual(t, c)); len(found) > 0 {
				t.Errorf("Lint() of the mended one = %v", found)
			}
		})
	}
	for code := range lint.Severities {
		if !shown[code] {
			t.Errorf("no situation shows %s", code)
		}
	}
}

// TestLabelsBesideBrokenPolicies: policies that do not compile are reported elsewhere, and say nothing about labels.
func TestLabelsBesideBrokenPolicies(t *testing.T) {
	c := config(writable(rules.Match{}, rules.Allow, "!found()", origin.ToolLabel{Results: "trusted"}))
	tools := usual(t, c)
	c.Policy.Policies[0].When = "1 +"
	if found := lint.Lint(c, tools); len(found) > 0 {
		t.Errorf("Lint() = %v, want nothing", found)
	}
}

// TestConditionsAbove: what policies above decide by their conditions leaves nothing to one below, or does.
func TestConditionsAbove(t *testing.T) {
	p := func(effect, when string, m rules.Match) rules.Policy {
		return rules.Policy{Effect: effect, When: when, Match: m}
	}
	var all rules.Match
	prod := rules.Match{Env: "prod"}
	for _, tc := range []struct {
		name  string
		above []rules.Policy
		below rules.Policy
		want  string // of the one below: unreached, unasked or nothing
	}{
		{"equal-above-match", []rules.Policy{p("allow", `env == "prod"`, all)}, p("pending", "", prod), "unasked"},
		{"equal-above-another-match", []rules.Policy{p("allow", `env == "prod"`, all)}, p("pending", "", rules.Match{Env: "prod*"}), ""},
		{"glob-above-starts-with", []rules.Policy{p("allow", "", rules.Match{Tool: "get*"})}, p("pending", `tool.startsWith("get_")`, all), "unasked"},
		{"or-above-one-of-both", []rules.Policy{p("deny", `args.a == 1 || pinned`, all)}, p("deny", `args.a == 1`, all), "unreached"},
		{"in-above-equal", []rules.Policy{p("allow", `env in ["prod", "live"]`, all)}, p("pending", `env == "live"`, all), "unasked"},
		{"both-ways-of-a-hint", []rules.Policy{p("allow", "pinned", all), p("allow", "!pinned", all)}, p("pending", "", all), "unasked"},
		{"glob-and-not-equal", []rules.Policy{p("allow", "", prod), p("allow", "env != 'prod'", all)}, p("pending", "", all), "unasked"},
		{"scores-side-by-side", []rules.Policy{p("allow", "risk.score < 50", all), p("allow", "risk.score >= 50", all)}, p("pending", "", all), "unasked"},
		{"argument-that-can-fail", []rules.Policy{p("allow", "args.a == 1", all), p("allow", "!(args.a == 1)", all)}, p("pending", "", all), ""},
		{"argument-that-denies-where-it-fails", []rules.Policy{p("deny", "args.a == 1", all), p("deny", "!(args.a == 1)", all)}, p("deny", "", all), "unreached"},
		{"brackets-that-make-a-difference", []rules.Policy{p("allow", "(-args.x).size() == -1", all)}, p("pending", "-(args.x.size()) == -1", all), ""},
		{"score-below-its-mode", []rules.Policy{p("allow", "risk.score >= 50", all)}, p("pending", "risk.mode == 'danger'", all), "unasked"},
		{"both-ways-of-a-text-that-can-be-too-long", []rules.Policy{p("allow", "actor.id == 'a'", all), p("allow", "actor.id != 'a'", all)},
			p("pending", "", all), ""},
		{"bound-above-a-greater-one", []rules.Policy{p("deny", "args.n > 5", all)}, p("deny", "args.n > 9", all), "unreached"},
		{"bound-above-a-lower-one", []rules.Policy{p("deny", "args.n > 9", all)}, p("deny", "args.n > 5", all), ""},
		{"globs-that-together-match-all", []rules.Policy{p("allow", "", rules.Match{Tool: "a*"}), p("allow", "!tool.startsWith('a')", all)},
			p("pending", "", all), "unasked"},
		{"only-where-it-would-not-ask", []rules.Policy{p("allow", "pinned", all)},
			rules.Policy{Effect: "allow", RequireApprovalIf: "pinned && args.a == 1"}, "unasked"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			policies := append(slices.Clone(tc.above), tc.below)
			for i := range policies {
				policies[i].ID = fmt.Sprint("p", i)
			}
			last := policies[len(policies)-1].ID
			found := reachOf(&policy.Content{Policy: &rules.Content{Policies: policies},
				Risk: &risk.Content{Modes: risk.DefaultModes(), Initial: "safe"}})
			got := ""
			switch {
			case found.unreachable[last]:
				got = "unreached"
			case found.unasked[last]:
				got = "unasked"
			}
			if got != tc.want || len(found.unreachable)+len(found.unasked) != min(1, len(tc.want)) {
				t.Errorf("lint of %v: %q is %q, want %q; found %v", policies, last, got, tc.want, found)
			}
		})
	}
}

// TestRiskNotMonotonic: what stops a call must not let it go when its risk rises, unless something else stops it then.
func TestRiskNotMonotonic(t *testing.T) {
	allow := func(when, deny, ask string, m rules.Match) rules.Policy {
		return rules.Policy{Effect: rules.Allow, When: when, Deny: deny, RequireApprovalIf: ask, Match: m}
	}
	stop := func(effect, when string, m rules.Match) rules.Policy {
		return rules.Policy{Effect: effect, When: when, Match: m}
	}
	var all rules.Match
	byScore := []risk.Threshold{{Mode: "danger", When: "score >= 90"}, {Mode: "review", When: "score >= 50"}}
	for _, tc := range []struct {
		name     string
		byScore  []risk.Threshold
		policies []rules.Policy
		want     []string
	}{
		{"one-mode", nil, []rules.Policy{allow("", "", "risk.mode == 'review'", all)}, []string{"p0 require_approval_if"}},
		{"both-modes", nil, []rules.Policy{allow("", "", "risk.mode in ['review', 'danger']", all)}, nil},
		{"all-but-the-lowest", nil, []rules.Policy{allow("", "", "risk.mode != 'safe'", all)}, nil},
		{"danger-denied-by-itself", nil, []rules.Policy{allow("", "risk.mode == 'danger'", "risk.mode == 'review'", all)}, nil},
		{"danger-denied-above", nil, []rules.Policy{stop("deny", "risk.mode == 'danger'", all), allow("", "", "risk.mode == 'review'", all)}, nil},
		{"danger-denied-above-with-more", nil, []rules.Policy{stop("deny", "risk.mode == 'danger' && args.x == 1", all),
			allow("", "", "risk.mode == 'review'", all)}, nil}, // it could be meant
		{"something-else-denied-above", nil, []rules.Policy{stop("deny", "args.x == 1", all), allow("", "", "risk.mode == 'review'", all)},
			[]string{"p1 require_approval_if"}},
		{"hold-above-an-allow", nil, []rules.Policy{stop("pending", "risk.mode == 'review'", all), allow("", "", "", rules.Match{Tool: "get"})},
			[]string{"p0 when"}},
		{"hold-above-nothing", nil, []rules.Policy{stop("pending", "risk.mode == 'review'", all)}, nil},
		{"denial-of-one-mode", nil, []rules.Policy{stop("deny", "risk.mode == 'review'", all), allow("", "", "", all)}, []string{"p0 when"}},
		{"deny-of-one-mode", nil, []rules.Policy{allow("", "risk.mode == 'review' && pinned", "", all)}, []string{"p0 deny"}},
		{"window-of-scores", nil, []rules.Policy{allow("", "", "risk.score >= 50 && risk.score < 90", all)}, []string{"p0 require_approval_if"}},
		{"window-closed-by-the-mode", byScore, []rules.Policy{stop("deny", "risk.mode == 'danger'", all),
			allow("", "", "risk.score >= 50 && risk.score < 90", all)}, nil},
		{"window-not-closed-by-the-mode", nil, []rules.Policy{stop("deny", "risk.mode == 'danger'", all),
			allow("", "", "risk.score >= 50 && risk.score < 90", all)}, []string{"p1 require_approval_if"}},
		{"low-scores-held", nil, []rules.Policy{allow("", "", "risk.score < 50", all)}, []string{"p0 require_approval_if"}},
		{"by-an-argument-too", nil, []rules.Policy{allow("", "", "args.x == 1 && risk.mode == 'review'", all)}, []string{"p0 require_approval_if"}},
		{"an-argument-alone", nil, []rules.Policy{allow("", "", "args.x == 1 || risk.mode == 'danger'", all)}, nil},
		{"on-trial", nil, []rules.Policy{{Effect: rules.Allow, RequireApprovalIf: "risk.mode == 'review'", Mode: rules.Shadow}}, nil},
		{"division-that-fails-at-the-least", nil, []rules.Policy{allow("", "", "100 / risk.score < 10", all)}, nil},
		{"mode-and-score-together", nil, []rules.Policy{allow("", "", "risk.score + size(risk.mode) < 60", all)}, []string{"p0 require_approval_if"}},
		{"loop-over-literals", nil, []rules.Policy{allow("", "", "[50, 60].exists(n, n == risk.score)", all)}, nil}, // loops are unknown
		{"decided-above", nil, []rules.Policy{stop("deny", "", all), allow("", "", "risk.mode == 'review'", all)}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &policy.Content{Policy: &rules.Content{Policies: tc.policies},
				Risk: &risk.Content{Modes: risk.DefaultModes(), Initial: "safe", ModeByScore: tc.byScore}}
			for i := range tc.policies {
				tc.policies[i].ID = fmt.Sprint("p", i)
			}
			var got []string
			for _, f := range lint.Lint(c, nil) {
				if f.Code == lint.RiskNotMonotonic {
					got = append(got, f.Policy+" "+f.Key)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("not monotonic are %q, want %q", got, tc.want)
			}
			c.Risk = nil
			for _, f := range lint.Lint(c, nil) {
				if f.Code == lint.RiskNotMonotonic {
					t.Errorf("without risk rules: %v", f)
				}
			}
		})
	}
}

// TestNothingToLint: what is missing, or does not compile, has no findings, and nothing panics.
func TestNothingToLint(t *testing.T) {
	for name, c := range map[string]*policy.Content{
		"nil": nil, "zero": {}, "no-policies": {Policy: &rules.Content{}, Risk: &risk.Content{}},
		"policy-that-does-not-compile": {Policy: &rules.Content{Policies: []rules.Policy{{ID: "x", When: "env ==", Effect: rules.Allow}}}},
		"risk-that-does-not-compile":   {Risk: &risk.Content{Vars: []risk.Var{{Name: "1", Expr: "1 / 0"}}}},
	} {
		if found := lint.Lint(c, nil); len(found) > 0 {
			t.Errorf("Lint(%s) = %v", name, found)
		}
		if found := lint.Lint(c, &policy.Catalog{}); len(found) > 0 {
			t.Errorf("Lint(%s) with an empty catalog = %v", name, found)
		}
	}
}

// TestUnknownTools: of arguments nothing is said as long as one tool could be anything.
func TestUnknownTools(t *testing.T) {
	typo := func(c *policy.Content) {
		when("args.amuont < 10")(c)
		c.Policy.Policies[1].Match.Server = "*"
	}
	down := policy.Listing{Server: "git", Status: policy.ServerDown}
	refused := strings.Replace(gitTools, `"type":"object"`, `"$ref":"http://example.com/x"`, 1)
	for _, tc := range []struct {
		name     string
		listings []policy.Listing
		want     bool // the typo is found
	}{
		{"all-known", []policy.Listing{listing("pay", payTools), listing("git", gitTools)}, true},
		{"server-down", []policy.Listing{listing("pay", payTools), down}, false},
		{"server-not-asked", []policy.Listing{listing("pay", payTools)}, false},
		{"schema-refused", []policy.Listing{listing("pay", payTools), listing("git", refused)}, false},
		{"tool-is-not-there", []policy.Listing{listing("pay", payTools), listing("git", `{"tools":[]}`)}, false},
		{"tool-is-there-twice", []policy.Listing{listing("pay", payTools), listing("git", gitTools[:len(gitTools)-2]+","+gitTools[len(`{"tools":[`):])}, false},
		{"nothing-known", nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := config(typo)
			found := lint.Lint(c, catalog(t, c, tc.listings...))
			got := slices.ContainsFunc(found, func(f lint.Finding) bool { return f.Code == lint.ArgumentUnknown })
			if got != tc.want {
				t.Errorf("Lint() = %v; the misspelt argument is found = %t, want %t", found, got, tc.want)
			}
		})
	}
	c := config(typo)
	if found := lint.Lint(c, nil); slices.ContainsFunc(found, func(f lint.Finding) bool { return f.Code == lint.ArgumentUnknown }) {
		t.Errorf("Lint() without a catalog = %v", found)
	}
}

// TestOrder: the same configuration has the same findings, each once, in the order of the files.
func TestOrder(t *testing.T) {
	c := config(func(c *policy.Content) {
		when("args.amuont < 10 && args.amuont > 5 && env == 'dev' && 'x' in actor.roles")(c)
		asked("amuont", "gt", "5")(c)
		c.Risk.Vars = []risk.Var{{Name: "n", Expr: "1 / 0"}}
		insert(0, rules.Policy{ID: "x", Effect: rules.Allow})(c)
		c.Allowlist[0].Tools = append(c.Allowlist[0].Tools, "other")
	})
	first := lint.Lint(c, usual(t, c))
	var places []string
	for _, f := range first {
		places = append(places, fmt.Sprintf("%s[%d]", f.List, f.Place))
	}
	if got, want := slices.Compact(places), []string{"policies[0]", "policies[1]", "policies[2]", "policies[3]", "policies[4]", "vars[0]",
		"rules[0]"}; !slices.Equal(got, want) {
		t.Errorf("findings stand at %q, want %q", got, want)
	}
	for range 20 {
		if diff := cmp.Diff(first, lint.Lint(c, usual(t, c))); diff != "" {
			t.Fatalf("Lint() again (-first +now)\n%s", diff)
		}
	}
}
