package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/policy/risk"
)

func TestRiskDefaultsAreWrittenOut(t *testing.T) {
	files := map[string]string{"r.yaml": "version: 1\n", "m.yaml": "version: 1\nmodes: {low: 1, high: 2}\n"}
	for name, want := range map[string]*risk.Content{
		"r.yaml": {Modes: risk.DefaultModes(), Initial: risk.DefaultModes()[0].Name},
		"m.yaml": {Modes: []risk.Mode{{Name: "low", Baseline: 1}, {Name: "high", Baseline: 2}}, Initial: "low"},
	} {
		got, _, err := ReadRisk(name, []byte(files[name]))
		check.NoError(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ReadRisk(%s) (-want +got):\n%s", name, diff)
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
