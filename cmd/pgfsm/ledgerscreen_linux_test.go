package main

import (
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/cli"
	"pgfsm/internal/test/mcptest"
)

// TestTerminalSeesEscapes: a document keeps its bytes, and a terminal is not led by them.
func TestTerminalSeesEscapes(t *testing.T) {
	t.Parallel()
	const odd = "\u009b\u202e\u2028\U000e0041"
	const told = `\u009b\u202e\u2028\udb40\udc41`
	config, _ := mcptest.Config(t, mcptest.New(t, mcptest.Honest), "", "ledger: sqlite:pgfsm.db")
	at := "sqlite:" + filepath.Join(filepath.Dir(config), "pgfsm.db")
	r := command(t.Context(), nil, "call", "--json", "-c", config, "puppet", "look", `{"x": "`+odd+`"}`)
	run := r.Member("/run_id")
	for _, args := range [][]string{{"ledger", "export", "--ledger", at}, {"ledger", "trace", run, "--ledger", at}} {
		plain := command(t.Context(), nil, args...)
		plain.Want(t, cli.ExitYes)
		if !strings.Contains(plain.Stdout, odd) || strings.Contains(plain.Stdout, told) {
			t.Errorf("%v: %q, want the bytes that hashes are over", args, plain.Stdout)
		}
		code, seen := onTerminal(t, nil, args...)
		if code != cli.ExitYes || !strings.Contains(seen, told) || strings.ContainsAny(seen, odd) {
			t.Errorf("%v on a terminal: exit code %d, %q", args, code, seen)
		}
	}
}
