// Package agentdojo_test tests import.py, which writes the cases of AgentDojo in the format of package eval. The other files of the
// folder are the bundles and grants of these cases.
package agentdojo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/eval"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/golden"
	"pgfsm/internal/test/tool"
)

// TestImport compares what import.py makes of a small folder with golden files, and reads it as pgfsm-eval attack does.
func TestImport(t *testing.T) {
	python := tool.Path(t, "python3", "python3")
	folder := clitest.Folder(t, "bundles/notes/pgfsm.yaml", "", "bundles/notes/grants/UserTask2.yaml", "")
	out := filepath.Join(folder, "out")
	if text, err := exec.Command(python, "import.py", "testdata", out, filepath.Join(folder, "bundles")).CombinedOutput(); err != nil {
		t.Fatalf("import.py: %v\n%s", err, text)
	}

	made := func(name string) string {
		text := clitest.Read(t, filepath.Join(out, name))
		golden.File(t, filepath.Join("testdata", "golden", name), text)
		return text
	}
	if _, err := eval.ReadTools("all.tools.json", []byte(made("all.tools.json"))); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"all.cases.jsonl", "all.retargeted.jsonl"} {
		if _, err := eval.ReadCases(name, strings.NewReader(made(name))); err != nil {
			t.Error(err)
		}
	}
	for _, suite := range []string{"bank", "notes", "quiet"} {
		clitest.Read(t, filepath.Join(out, suite+".cases.jsonl"))
	}
}

// TestImportSessions does the same with the results of calls.
func TestImportSessions(t *testing.T) {
	python := tool.Path(t, "python3", "python3")
	data := t.TempDir()
	check.NoError(t, os.CopyFS(data, os.DirFS("testdata/sessions")))
	for _, name := range []string{"sessions.jsonl", "adaptive.jsonl"} {
		if text, err := exec.Command(python, "-m", "gzip", filepath.Join(data, name)).CombinedOutput(); err != nil {
			t.Fatalf("gzip: %v\n%s", err, text)
		}
	}
	out := t.TempDir()
	if text, err := exec.Command(python, "import.py", data, out, data).CombinedOutput(); err != nil {
		t.Fatalf("import.py: %v\n%s", err, text)
	}
	for _, name := range []string{"static", "knows", "whole", "splits", "retargeted"} {
		text := clitest.Read(t, filepath.Join(out, "all.sessions-"+name+".jsonl"))
		golden.File(t, filepath.Join("testdata", "golden", "all.sessions-"+name+".jsonl"), text)
		if _, err := eval.ReadCases(name, strings.NewReader(text)); err != nil {
			t.Error(err)
		}
	}
}

// TestImportRefuses: an argument that is no parameter of its tool ends the import.
func TestImportRefuses(t *testing.T) {
	python := tool.Path(t, "python3", "python3")
	users := strings.Replace(clitest.Read(t, "testdata/user_tasks.json"), `"args": {"note_id": 4}`, `"args": [4]`, 1)
	data := clitest.Folder(t, "tools.json", clitest.Read(t, "testdata/tools.json"), "user_tasks.json", users, "injection/injection_tasks.json", "[]")
	text, err := exec.Command(python, "import.py", data, t.TempDir()).CombinedOutput()
	if want := "read_note: its arguments are no object"; err == nil || !strings.Contains(string(text), want) {
		t.Errorf("import.py: %v, %s, want an error with %q", err, text, want)
	}
}
