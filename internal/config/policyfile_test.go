package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

func TestRiskDefaultsAreWrittenOut(t *testing.T) {
	files := map[string]string{"r.yaml": "version: 1\n", "m.yaml": "version: 1\nmodes: {low: 1, high: 2}\n"}
	for name, want := range map[string]*risk.Content{
		"r.yaml": {Modes: risk.DefaultModes(), Initial: risk.DefaultModes()[0].Name},
		"m.yaml": {Modes: []risk.Mode{{Name: "low", Baseline: 1}, {Name: "high", Baseline: 2}}, Initial: "low"},
	} {
		got, err := LoadRisk(name, openMap(files))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("LoadRisk(%s) (-want +got):\n%s", name, diff)
		}
	}
}

// TestNoPoliciesAreNotNoPolicy: a list that is empty denies, and so it must not get lost.
func TestNoPoliciesAreNotNoPolicy(t *testing.T) {
	files := map[string]string{"c.yaml": minimal + "policy: p.yaml\n", "allow.json": "{}",
		"p.yaml": "version: 1\npolicies: []\n"}
	l, err := Load("c.yaml", openMap(files), Overrides{})
	if err != nil || l.Content.Policy == nil || l.Content.Risk != nil {
		t.Fatalf("Load = %v, want policies, and no risk rules", err)
	}
	if l.AllowlistPath == "" {
		t.Error("the rest of the configuration is not loaded")
	}
}

// TestWhatIsWrittenOutMeansTheSame: a policy with its defaults written out decides as rules.Compile takes it without.
func TestWhatIsWrittenOutMeansTheSame(t *testing.T) {
	c, err := LoadPolicy("p.yaml", openMap(map[string]string{"p.yaml": "version: 1\npolicies:\n" +
		"  - {id: a, match: {tool: held}, effect: pending}\n  - {id: b, match: {tool: asked}, effect: allow, " +
		"require_approval_if: pinned}\n  - {id: c, effect: allow}\n"}))
	if err != nil {
		t.Fatal(err)
	}
	written, err := rules.Compile(*c)
	if err != nil {
		t.Fatal(err)
	}
	short, err := rules.Compile(rules.Content{Policies: []rules.Policy{
		{ID: "a", Match: rules.Match{Tool: "held"}, Effect: rules.Pending},
		{ID: "b", Match: rules.Match{Tool: "asked"}, Effect: rules.Allow, RequireApprovalIf: "pinned"},
		{ID: "c", Effect: rules.Allow},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for tool, effect := range map[string]string{"held": rules.Pending, "asked": rules.Pending, "other": rules.Allow} {
		in := &condition.Input{Server: "s", Tool: tool, Env: "e", Args: []byte("{}"), Pinned: true}
		got, want := written.Decide(condition.NewSubject(in)), short.Decide(condition.NewSubject(in))
		if diff := cmp.Diff(want, got); diff != "" || got.Effect != effect {
			t.Errorf("Decide(%s) = %s, want %s (-short +written):\n%s", tool, got.Effect, effect, diff)
		}
	}
}

func TestLoadAlone(t *testing.T) {
	files := map[string]string{"bad.yaml": "version: 1\npolicies: [{id: a, effect: deny, when: x}]\n"}
	for _, c := range []struct{ name, want string }{
		{"none.yaml", "none.yaml: cannot be read: file does not exist"},
		{"bad.yaml", "bad.yaml:2:40: policies[0].when: undeclared reference to 'x'"},
	} {
		got, err := LoadPolicy(c.name, openMap(files))
		if got != nil || err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("LoadPolicy(%s) = %v, %v, want %q", c.name, got, err, c.want)
		}
	}
	if got, err := LoadRisk("none.yaml", openMap(files)); got != nil || err == nil {
		t.Errorf("LoadRisk of a file that is not there = %v, %v, want an error", got, err)
	}
	if got, err := LoadRisk("bad.yaml", openMap(files)); got != nil || err == nil {
		t.Errorf("LoadRisk of policies = %v, %v, want an error", got, err)
	}
}
