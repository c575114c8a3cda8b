package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy/risk"
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
