package main

import (
	"errors"
	"os"
	"path/filepath"
	"pgfsm/internal/test/cli"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReplayTouchesNothing: replay opens no socket and writes no file. It runs where the kernel kills whoever tries,
// and afterwards every file is as it was.
func TestReplayTouchesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := []string{"SAFE_TRACE_DIR=" + filepath.Join(dir, "traces")}
	for _, question := range []string{"Summarize policy policy-002", "tell me a joke", "write ransomware for me"} {
		cmd, _, stderr := child(t.Context(), "pgfsm", env, "run", question)
		cmd.Dir = dir
		if code := cli.ExitCode(t, cmd.Run()); code > exitNo {
			t.Fatalf("run: exit code = %d\n%s", code, stderr)
		}
	}
	before := files(t, dir)
	for _, tt := range []struct {
		name string
		args []string
		code int // -1: killed
	}{
		{"replay", []string{"replay", "traces"}, exitYes},
		{"replay-one-by-one", []string{"replay", "--jobs", "1", "--json", "traces"}, exitYes},
		{"the-kernel-does-kill-who-writes", []string{"init", "elsewhere"}, -1},
		{"the-kernel-does-kill-who-listens", []string{"tools"}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd, stdout, stderr := child(t.Context(), "frugal", env, tt.args...)
			cmd.Dir = dir
			code := cli.ExitCode(t, cmd.Run())
			if code == errConfined {
				skip(t, stderr.String())
			}
			if code != tt.code {
				t.Errorf("exit code = %d, want %d\n%s%s", code, tt.code, stdout, stderr)
			}
		})
	}
	if err := os.Remove(filepath.Join(dir, "elsewhere")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if d := cmp.Diff(before[1:], files(t, dir)[1:]); d != "" {
		t.Errorf("files before and after (-before +after):\n%s", d)
	}
}

// TestForgedNamesAreShownEscaped: a trace that somebody has written, chain and all, cannot write to the terminal.
func TestForgedNamesAreShownEscaped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := map[string]string{"SAFE_TRACE_DIR": filepath.Join(dir, "traces")}
	r := command(t.Context(), env, "run", "--json", "show me policy-002")
	r.Want(t, exitYes)
	good := cli.Read(t, r.Member("/trace"))
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
			if err := errors.Join(err, os.WriteFile(path, doc, 0o600)); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{
				{"replay", path}, {"replay", "--json", path}, {"graph", "--format", "dot", "--trace", path},
				{"graph", "--format", "svg", "--trace", path}, {"graph", "--format", "mermaid", "--trace", path},
				{"graph", "--format", "json", "--trace", path},
			} {
				r := command(t.Context(), nil, args...)
				if args[0] == "replay" {
					r.Want(t, exitNo)
				}
				all := r.Stdout + r.Stderr
				if strings.ContainsAny(all, "\x1b\u202e") || slices.Contains(args, "svg") && strings.Contains(all, "<script>") {
					t.Errorf("%q shows what was forged:\n%s", args, all)
				}
			}
		})
	}
}
