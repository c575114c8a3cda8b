package ctrl_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pgfsm/policy/ctrl"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/policy/settings"
	"pgfsm/policy/visible"
)

var update = flag.Bool("update", false, "write the golden files anew")

func bundles(t *testing.T) []string {
	t.Helper()
	folders, err := filepath.Glob("testdata/*/policy.yaml")
	if err != nil || len(folders) < 5 {
		t.Fatalf("Glob = %v, %v, want bundles", folders, err)
	}
	for i := range folders {
		folders[i] = filepath.Dir(folders[i])
	}
	return folders
}

func mustImport(t *testing.T, folder string) *ctrl.Result {
	t.Helper()
	r, err := ctrl.Import(os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func report(r *ctrl.Result) string {
	var b strings.Builder
	for i := range r.Findings {
		b.WriteString(r.Findings[i].String() + "\n")
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	for _, folder := range bundles(t) {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			r := mustImport(t, folder)
			golden(t, folder, "policy.yaml", r.PolicyYAML())
			golden(t, folder, "risk.yaml", r.RiskYAML())
			golden(t, folder, "report.txt", report(r))
		})
	}
}

func golden(t *testing.T, folder, name, got string) {
	t.Helper()
	path := filepath.Join(folder, "want", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// What is written is read as what was meant, and compiles.
func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, folder := range bundles(t) {
		t.Run(filepath.Base(folder), func(t *testing.T) { checkWritten(t, mustImport(t, folder)) })
	}
}

func checkWritten(t *testing.T, r *ctrl.Result) {
	t.Helper()
	open := func(name string) ([]byte, error) {
		if name == ctrl.RiskFile {
			return []byte(r.RiskYAML()), nil
		}
		return []byte(r.PolicyYAML()), nil
	}
	for _, text := range []string{r.PolicyYAML(), r.RiskYAML()} {
		if visible.Lines(text) != text || strings.Contains(text, "\t") {
			t.Errorf("a file is written that holds what does not show: %q", text)
		}
	}
	policy, err := settings.LoadPolicy(ctrl.PolicyFile, open)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.PolicyYAML())
	}
	if _, err := rules.Compile(*policy); err != nil {
		t.Error(err)
	}
	same := []cmp.Option{cmpopts.EquateEmpty(), cmpopts.IgnoreFields(rules.Policy{}, "Mode", "Quorum", "Expires")}
	if diff := cmp.Diff(r.Policy, policy, same...); diff != "" {
		t.Errorf("policy.yaml (-meant +read):\n%s", diff)
	}
	if r.Risk == nil {
		if text := r.RiskYAML(); text != "" {
			t.Errorf("RiskYAML = %q, want nothing", text)
		}
		return
	}
	model, err := settings.LoadRisk(ctrl.RiskFile, open)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.RiskYAML())
	}
	if _, err := risk.Compile(*model); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(r.Risk, model, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("risk.yaml (-meant +read):\n%s", diff)
	}
}
