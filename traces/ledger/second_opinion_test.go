package ledger_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
)

// secondOpinion has the verifier in JavaScript verify an export of a forged ledger. If Verify found that a rule is broken, it finds the
// same. What only the rows or another execution show, it cannot find. Without Node, TestSecondVerifier says what is missing.
func secondOpinion(t *testing.T, forged ledger.Store, found error) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		return
	}
	var export bytes.Buffer
	x := ledger.Exporter{To: &export}
	if err := forged.View(t.Context(), x.Export); err != nil {
		return // a blob is missing
	}
	file := filepath.Join(t.TempDir(), "export")
	check.NoError(t, os.WriteFile(file, export.Bytes(), 0o600))
	out, err := exec.Command(node, verifierScript, "export", file).CombinedOutput()

	var fault *ledger.Fault
	switch {
	case found == nil && err != nil:
		t.Errorf("the second verifier refuses what Verify accepts: %s", out)
	case errors.As(found, &fault) && fault.Rule != "" && (err == nil || !strings.Contains(string(out), fault.Rule.Cited())):
		t.Errorf("Verify() = %v; the second verifier says %s", fault, out)
	}
}
