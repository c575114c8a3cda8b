package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgfsm/internal/cli"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
)

// TestForgedNamesAreShownEscaped: a trace that somebody has written, chain and all, cannot write to the terminal.
func TestForgedNamesAreShownEscaped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := map[string]string{"SAFE_TRACE_DIR": filepath.Join(dir, "traces")}
	r := command(t.Context(), env, "run", "--json", "show me policy-002")
	r.Want(t, cli.ExitYes)
	good := clitest.Read(t, r.Member("/trace"))
	evil := "\x1b[31m\u202epermitted</text><script>"
	for _, what := range []string{"from", "event", "facts", "bundle"} {
		t.Run(what, func(t *testing.T) {
			old, new := "permitted", evil
			if what != "from" {
				old, new = "policy-002", `policy-\u001b[31m\u202e`
			}
			if what == "bundle" {
				old = "Privacy"
				if !strings.Contains(good, old) {
					old = "dev"
				}
			}
			doc, err := forged([]byte(good), what, old, new)
			path := filepath.Join(t.TempDir(), "trace_forged.json")
			check.NoError(t, errors.Join(err, os.WriteFile(path, doc, 0o600)))
			for _, args := range [][]string{
				{"replay", path}, {"replay", "--json", path}, {"graph", "--format", "dot", "--trace", path},
				{"graph", "--format", "svg", "--trace", path},
				{"graph", "--format", "json", "--trace", path},
			} {
				r := command(t.Context(), nil, args...)
				if args[0] == "replay" {
					r.Want(t, cli.ExitNo)
				}
				all := r.Stdout + r.Stderr
				if strings.ContainsAny(all, "\x1b\u202e") || slices.Contains(args, "svg") && strings.Contains(all, "<script>") {
					t.Errorf("%q shows what was forged:\n%s", args, all)
				}
			}
		})
	}
}
