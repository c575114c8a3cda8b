package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"pgfsm/internal/cli"
	"pgfsm/internal/config"
	"pgfsm/internal/test/check"
)

// TestEvalDojoFilesAreGood: what the figures on AgentDojo rest on can be read as it is committed, means what its tests say, and has nothing
// in it that cannot be meant. The data itself is not part of the project.
func TestEvalDojoFilesAreGood(t *testing.T) {
	grants := 0
	for _, suite := range []string{"banking", "slack", "travel", "workspace"} {
		dir := copied(t, filepath.Join(repository, "eval", "agentdojo", suite))
		path := filepath.Join(dir, "pgfsm.yaml")
		for _, args := range [][]string{{"config", "check", "-c", path}, {"policy", "lint", "-c", path}} {
			if r := command(t.Context(), nil, args...); r.Code != cli.ExitYes {
				t.Errorf("pgfsm %q: exit code %d\n%s%s", args, r.Code, r.Stdout, r.Stderr)
			}
		}
		if tests := filepath.Join(dir, "tests.yaml"); suite == "banking" || suite == "slack" {
			if r := command(t.Context(), nil, "policy", "test", "-c", path, tests); r.Code != cli.ExitYes {
				t.Errorf("policy test %s: exit code %d\n%s%s", tests, r.Code, r.Stdout, r.Stderr)
			}
		}
		files, err := filepath.Glob(filepath.Join(dir, "grants", "UserTask*.yaml"))
		check.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err == nil {
				_, err = config.ReadGrant(file, text)
			}
			if err != nil {
				t.Error(err)
			}
		}
		grants += len(files)
	}
	if grants != 86 {
		t.Errorf("there are %d grants, want 86", grants)
	}
}

// copied is a folder of our own with the same files: those of a clone may be writable for others, and are refused then.
func copied(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	err := fs.WalkDir(os.DirFS(from), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return errors.Join(err, os.MkdirAll(filepath.Join(to, path), 0o700))
		}
		text, err := os.ReadFile(filepath.Join(from, path))
		return errors.Join(err, os.WriteFile(filepath.Join(to, path), text, 0o600))
	})
	check.NoError(t, err)
	return to
}
