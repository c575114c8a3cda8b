package main

import (
	"context"
	"testing"

	"pgfsm/internal/cli"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
)

// TestStopped: who cancels, and time that runs out, end a run with the truth about its effect, a trace that replays,
// and nothing left over.
func TestStopped(t *testing.T) {
	t.Parallel()
	const quick, impatient = "limits: {run_timeout: 400ms}", ", timeout: 400ms, connect_timeout: 400ms"
	for _, tt := range []struct {
		name, hangs, server, more string
		cancel                    bool
		code                      int
		typ, reason, effect       string
	}{
		{"cancel-while-listing", "tools/list", "", "", true, cli.ExitNo, "blocked", "cancelled", "not_sent"},
		{"cancel-while-connecting", "initialize", "", "", true, cli.ExitNo, "blocked", "cancelled", "not_sent"},
		{"cancel-while-calling", "tools/call", "", "", true, cli.ExitFailed, "failed", "cancelled", "unknown"},
		{"run-timeout-while-listing", "tools/list", "", quick, false, cli.ExitFailed, "failed", "deadline_exceeded", "not_sent"},
		{"run-timeout-leaves-the-call-out", "tools/call", ", timeout: 6s", "limits: {run_timeout: 5s}", false, cli.ExitFailed, "failed", "server_timeout", "unknown"},
		{"total-while-calling", "tools/call", ", timeout_total: 400ms", "", false, cli.ExitFailed, "failed", "server_timeout", "unknown"},
		{"server-timeout-while-listing", "tools/list", impatient, "", false, cli.ExitFailed, "failed", "no_servers", "not_sent"},
		{"server-timeout-while-calling", "tools/call", impatient, "", false, cli.ExitFailed, "failed", "server_timeout",
			"unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := mcptest.New(t, mcptest.Except(tt.hangs, ""))
			config, traces := mcptest.Config(t, p, tt.server, tt.more)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.cancel {
				go func() { p.Await(t, tt.hangs); cancel() }()
			}
			r := command(ctx, nil, "call", "--json", "-c", config, "puppet", "look", "{}")
			r.Want(t, tt.code, "/type", tt.typ, "/code", tt.reason, "/effect", tt.effect)
			if list := clitest.Traces(t, traces); len(list) != 1 {
				t.Errorf("traces = %q, want one", list)
			}
			command(t.Context(), nil, "replay", "--head", r.Member("/head"), traces).Want(t, cli.ExitYes)
		})
	}
}

// TestStoppedCommandSaysSo: a command that a signal ended does not speak of contexts.
func TestStoppedCommandSaysSo(t *testing.T) {
	config, _ := mcptest.Config(t, mcptest.New(t, mcptest.Honest), "", "ledger: sqlite:pgfsm.db")
	command(t.Context(), nil, "token", "create", "-c", config, "--role", "agent", "--name", "ci").Want(t, cli.ExitYes)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"ledger", "list"}, {"ledger", "verify"}} {
		r := command(ctx, nil, append(args, "-c", config)...)
		r.Want(t, cli.ExitFailed)
		if r.Stderr != "pgfsm: stopped by a signal, before the command was done\n" {
			t.Errorf("%v says %s", args, r.Stderr)
		}
	}
}
