package config

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPoliciesReadClaims shows that policies and risk rules may read the configured claims, and no others.
func TestPoliciesReadClaims(t *testing.T) {
	for name, ok := range map[string]bool{"department": true, "team": false} {
		dir := t.TempDir()
		for file, text := range map[string]string{
			"pgfsm.yaml": "version: 1\nservers: {docs: {command: docs}}\nallowlist: a.json\npolicy: policy.yaml\nrisk: risk.yaml\n" +
				"identity: {issuers: [{issuer: \"https://login.example.com\", claims: {department: /department}}]}\n",
			"a.json":      "{}",
			"policy.yaml": "version: 1\npolicies: [{id: a, effect: allow, when: \"actor.claims." + name + " == 'x'\"}]\n",
			"risk.yaml":   "version: 1\nrules: [{id: r, score_expr: \"actor.claims." + name + " == 'x' ? 1 : 0\"}]\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Load(filepath.Join(dir, "pgfsm.yaml"), os.ReadFile, Overrides{}); (err == nil) != ok {
			t.Errorf("Load() with actor.claims.%s = %v, want accepted: %t", name, err, ok)
		}
	}
}
