package fromtraces

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/config"
	"pgfsm/policy"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/policy/screen"
	"pgfsm/states/statestest"
)

// demo is the bundle of the demo's configuration, changed.
func demo(t *testing.T, change func(*policy.Content)) *policy.Content {
	t.Helper()
	loaded, err := config.Load(config.FileName, config.Demo.ReadFile, config.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	change(&loaded.Content)
	return &loaded.Content
}

func starter(t *testing.T, name string) func(*policy.Content) {
	folder, err := config.Bundle(name)
	if err != nil {
		t.Fatal(err)
	}
	open := func(name string) ([]byte, error) { return fs.ReadFile(folder, name) }
	return func(c *policy.Content) {
		if c.Risk, err = config.LoadRisk(config.BundleRisk, open); err != nil {
			t.Fatal(err)
		}
		if c.Policy, err = config.LoadPolicy(config.BundlePolicy, open); err != nil {
			t.Fatal(err)
		}
	}
}

func grantOf(args ...policy.Constraint) policy.Grant {
	three := 3
	return policy.Grant{Name: "any.yaml", Tools: []policy.Granted{
		{Server: "mcp-policy-kb", Tool: "search_policy_kb", Calls: &three}, {Server: "mcp-policy-kb", Tool: "fetch_policy_entry", Args: args},
	}}
}

func at(place, schema string) policy.Constraint {
	return policy.Constraint{At: place, Schema: jsontext.Value(schema)}
}

// TestEncodedBundlesAreReadBack: encode reads its files back and compares them, or returns an error.
func TestEncodedBundlesAreReadBack(t *testing.T) {
	pin := policy.Pin{Definition: statestest.Definition(), Server: "mcp-policy-kb", Tool: "fetch_policy_entry"}
	type test struct {
		name   string
		change func(*policy.Content)
		says   string // what one of the files holds
		cannot bool
	}
	tests := []test{
		{"demo", func(*policy.Content) {}, `"defaults": true`, false},
		{"no-input-rules", func(c *policy.Content) { c.Input.Rules = nil }, `"defaults": false`, false},
		{"own-input-rules", func(c *policy.Content) {
			c.Input.Rules = append(c.Input.Rules, policy.InputRule{
				Rule: screen.Rule{ID: "pay", Pattern: `\bsalar(y|ies)\b`, Reason: "No salaries."}, On: []string{policy.KindAsk, policy.KindAgent},
			})
		}, `"agent"`, false},
		{"other-environment", func(c *policy.Content) { c.Env = "prod" }, `"env": "prod"`, false},
		{"nothing-allowed", func(c *policy.Content) { c.Allowlist = []policy.Allowance{} }, `{}`, false},
		{"pins", func(c *policy.Content) { c.Pins = []policy.Pin{pin} }, string(pin.Definition), false},
		{"roles", func(c *policy.Content) {
			c.Roles = []policy.Role{{Role: "zeta", Actors: []string{"b", "a"}}, {Role: "alpha", Actors: []string{"c"}}}
		}, `"zeta"`, false},
		{"limits", func(c *policy.Content) {
			c.Limits = policy.Limits{PlanBytes: 1, ArgumentsBytes: 5, JSONDepth: 2, ResultBytes: 3, RunTimeout: 4}
		}, `"run_timeout": "4ms"`, false},
		{"history", func(c *policy.Content) {
			starter(t, "sandbox")(c)
			c.Policy.Policies[0].When = `history.count("actor", "1h") < 5`
		}, unopened, false},
		{"two-grants", func(c *policy.Content) { c.Grants = []policy.Grant{grantOf(), grantOf()} }, `grant-1.json`, false},
		{"risk-in-full", func(c *policy.Content) {
			c.Risk = &risk.Content{
				Modes: []risk.Mode{{Name: "calm", Baseline: 0}, {Name: "wild", Baseline: 10}}, Initial: "wild",
				Vars: []risk.Var{{Name: "n", Expr: "has(args.n) ? double(args.n) : 0.0"}},
				Rules: []risk.Rule{{
					ID: "r", Match: risk.Match{Server: "a*", Tool: "?", Env: "*"}, SetMode: "wild", Escalate: true, ScoreExpr: "vars.n + 1.0", Reason: "Why not.",
					Args: []risk.Predicate{
						{Path: "n", Op: risk.OpGte, Value: jsontext.Value("10")}, {Path: "n", Op: risk.OpLt, Value: jsontext.Value("2e1")},
						{Path: "/to/0", Op: risk.OpIn, Value: jsontext.Value(`["a",1,true]`)},
					},
				}},
				ModeByScore: []risk.Threshold{{Mode: "wild", When: "score >= 5.0"}},
			}
		}, `2e1`, false},
		{"policy-in-full", func(c *policy.Content) {
			c.Policy = &rules.Content{Policies: []rules.Policy{
				{ID: "a", Match: rules.Match{Server: "*", Tool: "x*", Env: "*"}, When: "args.n > 1", Effect: rules.Allow, Deny: `env == "prod"`,
					RequireApprovalIf: "args.n > 5", Reason: "A reason.", Mode: rules.Shadow, Approvers: []string{"owner", "boss"}, Quorum: 2, Expires: 61_001},
				{ID: "b", Match: rules.Match{Server: "*", Tool: "*", Env: "*"}, Effect: rules.Deny, Mode: rules.Enforce},
			}}
		}, `"61001ms"`, false},
		{"pin-without-its-tool", func(c *policy.Content) { c.Pins = []policy.Pin{{Definition: pin.Definition, Server: "x", Tool: "y"}} }, "", true},
		{"default-rule-of-another-version", func(c *policy.Content) {
			c.Input.Rules = append([]policy.InputRule{{Rule: screen.Rule{ID: "malware", Pattern: strings.Repeat("x", 5000), Reason: "r"}, On: []string{policy.KindAsk}}}, c.Input.Rules...)
		}, "", true},
		{"bidi-in-a-reason", func(c *policy.Content) {
			c.Input.Rules = append(c.Input.Rules, policy.InputRule{Rule: screen.Rule{ID: "odd", Pattern: "x", Reason: "a\u202eb"}, On: []string{policy.KindAsk}})
		}, "", true},
	}
	for _, name := range []string{"change-management", "contextual-controls", "gated-deploys", "regulated-data", "sandbox"} {
		tests = append(tests, test{name, starter(t, name), `"policies"`, false})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := demo(t, tt.change)
			c.Grants = append(c.Grants, policy.Grant{}) // the last grant is the case's
			d := divide(c)
			files, err := encode(&d.content)
			if tt.cannot {
				if !errors.Is(err, errNoConfig) {
					t.Errorf("encode() = %d files, %v, want %v", len(files), err, errNoConfig)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			all := ""
			for _, f := range files {
				all += string(f.text)
			}
			if !strings.Contains(all, tt.says) {
				t.Errorf("no file says %q:\n%s", tt.says, all)
			}
		})
	}
}

// TestCompareSeesADifference: files of another bundle are refused, whatever differs.
func TestCompareSeesADifference(t *testing.T) {
	c := demo(t, func(c *policy.Content) { starter(t, "sandbox")(c) })
	d := divide(c)
	files, err := encode(&d.content)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*policy.Content){ // in any order
		"allowlist": func(c *policy.Content) { c.Allowlist = c.Allowlist[1:] },
		"env":       func(c *policy.Content) { c.Env = "other" },
		"policy":    func(c *policy.Content) { c.Policy = nil },
		"risk":      func(c *policy.Content) { c.Risk = nil },
		"grant":     func(c *policy.Content) { c.Grants = []policy.Grant{{}} },
		"input":     func(c *policy.Content) { c.Input.MaxBytes++ },
		"server":    func(c *policy.Content) { c.Servers = c.Servers[:1] },
	} {
		other := d.content
		change(&other)
		if err := compare(files, &other); !errors.Is(err, errNoConfig) {
			t.Errorf("%s: compare() = %v, want %v", name, err, errNoConfig)
		}
	}
}

func TestGrantsAreReadBack(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   []policy.Constraint
		cannot bool
	}{
		{"free", nil, false},
		{"eq", []policy.Constraint{at("/policy_id", `{"const":"policy-002"}`)}, false},
		{"in", []policy.Constraint{at("/policy_id", `{"enum":["policy-001","policy-002"]}`)}, false},
		{"schema", []policy.Constraint{at("/policy_id", `{"pattern":"^policy-00[12]$","type":"string"}`)}, false},
		{"several-places", []policy.Constraint{at("/b/c", `{"const":1}`), at("/a", `{"type":"string"}`)}, false},
		{"several-of-one-place", []policy.Constraint{at("/a", `{"const":1}`), at("/a", `{"enum":[1,2]}`), at("/a", `{"type":"number"}`)}, false},
		{"the-whole", []policy.Constraint{at("", `{"additionalProperties":false,"properties":{"policy_id":{}}}`)}, false},
		{"two-schemas-of-one-place", []policy.Constraint{at("/a", `{"type":"number"}`), at("/a", `{"minimum":1}`)}, true},
		{"a-place-twice-apart", []policy.Constraint{at("/a", `{"const":1}`), at("/b", `{"const":1}`), at("/a", `{"enum":[1]}`)}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			maker, err := NewMaker(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			g := grantOf(tt.args...)
			g.Name = ""
			name, err := maker.keepGrant(&g)
			var none errNoCase
			if tt.cannot != errors.As(err, &none) || tt.cannot != (name == "") {
				t.Errorf("keepGrant() = %q, %v", name, err)
			}
		})
	}
}

// TestDivideKeepsTheOriginal: the bundle that a run holds is not touched.
func TestDivideKeepsTheOriginal(t *testing.T) {
	c := demo(t, func(c *policy.Content) { c.Grants = []policy.Grant{grantOf(), grantOf()} })
	was := *demo(t, func(c *policy.Content) { c.Grants = []policy.Grant{grantOf(), grantOf()} })
	d := divide(c)
	if diff := cmp.Diff(&was, c); diff != "" {
		t.Errorf("the bundle changed (-was +is):\n%s", diff)
	}
	if len(d.content.Grants) != 1 || d.grant == nil || d.grant.Name != "" {
		t.Errorf("divide() = %d grants and %v, want one and one", len(d.content.Grants), d.grant)
	}
}
