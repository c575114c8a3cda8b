package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// puppetConfig writes a configuration whose only server is a puppet, and returns the path of it and of the traces.
func puppetConfig(t *testing.T, p *puppet, server, more string) (config, traces string) {
	t.Helper()
	dir := folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {puppet: {type: http, url: %q%s}}
allowlist: allowlist.json
%s
`, p.URL, server, more), "allowlist.json", `{"puppet": ["look"]}`)
	return filepath.Join(dir, "pgfsm.yaml"), filepath.Join(dir, "traces")
}

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
		{"cancel-while-listing", "tools/list", "", "", true, exitNo, "blocked", "cancelled", "not_sent"},
		{"cancel-while-connecting", "initialize", "", "", true, exitNo, "blocked", "cancelled", "not_sent"},
		{"cancel-while-calling", "tools/call", "", "", true, exitCould, "failed", "cancelled", "unknown"},
		{"run-timeout-while-listing", "tools/list", "", quick, false, exitCould, "failed", "deadline_exceeded", "not_sent"},
		{"run-timeout-leaves-the-call-out", "tools/call", ", timeout: 6s", "limits: {run_timeout: 5s}", false, exitCould, "failed", "server_timeout", "unknown"},
		{"total-while-calling", "tools/call", ", timeout_total: 400ms", "", false, exitCould, "failed", "server_timeout", "unknown"},
		{"server-timeout-while-listing", "tools/list", impatient, "", false, exitCould, "failed", "no_servers", "not_sent"},
		{"server-timeout-while-calling", "tools/call", impatient, "", false, exitCould, "failed", "server_timeout",
			"unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPuppet(t, but(tt.hangs, ""))
			config, traces := puppetConfig(t, p, tt.server, tt.more)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.cancel {
				go func() { p.await(t, tt.hangs); cancel() }()
			}
			r := command(ctx, nil, "call", "--json", "-c", config, "puppet", "look", "{}")
			r.want(t, tt.code, "/type", tt.typ, "/code", tt.reason, "/effect", tt.effect)
			if list := files(t, traces); len(list) != 2 {
				t.Errorf("left behind: %q, want the folder and one trace", list)
			}
			command(t.Context(), nil, "replay", "--head", r.member("/head"), traces).want(t, exitYes)
		})
	}
}

// TestInterruptKey: what Ctrl-C sends ends the process in good order.
func TestInterruptKey(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, but("tools/list", ""))
	config, traces := puppetConfig(t, p, "", "")
	cmd, stdout, stderr := child(t.Context(), "pgfsm", nil, "run", "--json", "-c", config, "anything")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.await(t, "tools/list")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // its error is the exit code, below
	ran{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}.want(t, exitNo,
		"/type", "blocked", "/code", "cancelled")
	command(t.Context(), nil, "replay", traces).want(t, exitYes)
}

// TestLeftOver: a process that was killed leaves a record that the next start ends. What was in flight is never called
// again and never called a success.
func TestLeftOver(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, hangs, code, effect string }{
		{"killed-while-listing", "tools/list", "interrupted", "not_sent"},
		{"killed-while-calling", "tools/call", "indeterminate", "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var healed atomic.Bool
			p := newPuppet(t, func(method string) string {
				if method == tt.hangs && !healed.Load() {
					return ""
				}
				return honest(method)
			})
			config, traces := puppetConfig(t, p, "", "")
			cmd, _, _ := child(t.Context(), "pgfsm", nil, "call", "-c", config, "puppet", "look", "{}")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			p.await(t, tt.hangs)
			kill(t, cmd)
			partial, err := filepath.Glob(filepath.Join(traces, "*.partial"))
			if err != nil || len(partial) != 1 {
				t.Fatalf("left over = %q, %v, want one partial file", partial, err)
			}
			command(t.Context(), nil, "replay", traces).want(t, exitCould) // there is nothing finished yet
			healed.Store(true)

			r := command(t.Context(), nil, "call", "--json", "-c", config, "puppet", "no-such-tool", "{}")
			want := "pgfsm: a left-over run ended as failed " + tt.code + ": " + strings.TrimSuffix(partial[0], ".partial")
			if !strings.HasPrefix(r.stderr, want) || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("stderr = %q, want one line %q", r.stderr, want)
			}
			ended := textOf(t, strings.TrimSuffix(partial[0], ".partial")+".json")
			ran{stdout: ended}.want(t, exitYes, "/outcome/code", tt.code, "/outcome/effect", tt.effect)
			r.want(t, exitNo, "/code", "tool_unknown")
			if list := files(t, traces); len(list) != 3 {
				t.Errorf("left behind: %q, want the folder and two traces", list)
			}
			command(t.Context(), nil, "replay", traces).want(t, exitYes)
		})
	}
}

// TestNoCallWithoutARecord: where nothing can be recorded, nothing is called.
func TestNoCallWithoutARecord(t *testing.T) {
	t.Parallel()
	fleet := demoFleet(t)
	dir := folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {sharepoint: {type: sse, url: %q}}
allowlist: allowlist.json
`, fleet.URL("mcp-sharepoint", "sse")), "allowlist.json", `{"sharepoint": ["fetch_sharepoint_doc"]}`, "taken", "")
	call := []string{"call", "--json", "-c", filepath.Join(dir, "pgfsm.yaml"),
		"sharepoint", "fetch_sharepoint_doc", `{"doc_id":"doc-001"}`}

	t.Run("no-folder-can-be-made", func(t *testing.T) {
		for _, traces := range []string{"taken", "taken/traces"} {
			r := command(t.Context(), map[string]string{"SAFE_TRACE_DIR": filepath.Join(dir, traces)}, call...)
			r.want(t, exitCould)
			if r.stdout != "" || !strings.Contains(r.stderr, "set traces.dir or SAFE_TRACE_DIR") {
				t.Errorf("stdout = %q, stderr = %q, want the remedy on stderr only", r.stdout, r.stderr)
			}
		}
	})
	if got := calls(fleet); got != 0 {
		t.Fatalf("calls that reached the server = %d, want 0", got)
	}

	// A whole record, to know how much room one takes.
	command(t.Context(), nil, call...).want(t, exitYes)
	whole, err := filepath.Glob(filepath.Join(dir, "traces", "trace_*.json"))
	if err != nil || len(whole) != 1 {
		t.Fatalf("traces = %q, %v, want one", whole, err)
	}
	doc := textOf(t, whole[0])
	before := calls(fleet)
	sent := strings.Index(doc, `"trigger":"dispatch"`)
	for _, room := range []int{0, sent / 2, sent - 200} {
		t.Run(fmt.Sprintf("room-for-%d-bytes", room), func(t *testing.T) {
			traces := filepath.Join(t.TempDir(), "traces")
			cmd, stdout, stderr := child(t.Context(), "cramped",
				[]string{fmt.Sprintf("CRAMPED=%d", room), "SAFE_TRACE_DIR=" + traces}, call...)
			code := exitCodeOf(t, cmd.Run())
			if code == errConfined {
				skip(t, stderr.String())
			}
			ran{code, stdout.String(), stderr.String()}.want(t, exitCould)
			// Without any record there is no run; with one, the document says how it stands.
			said := stdout.String() + stderr.String()
			if !strings.Contains(said, "file too large") || stdout.Len() > 0 && !strings.Contains(said, `"effect": "not_sent"`) {
				t.Errorf("stdout = %q, stderr = %q, want the cause, and that nothing was sent", stdout, stderr)
			}
			if got := calls(fleet); got != before {
				t.Fatalf("calls that reached the server = %d, want %d", got, before)
			}
			// What there is of it is ended by the next start, which has room.
			env := map[string]string{"SAFE_TRACE_DIR": traces}
			command(t.Context(), env, "run", "-c", call[3], "write ransomware for me").want(t, exitNo)
			command(t.Context(), nil, "replay", traces).want(t, exitYes)
		})
	}
	t.Run("room-for-the-dispatch-alone", func(t *testing.T) {
		traces := filepath.Join(t.TempDir(), "traces")
		cmd, stdout, stderr := child(t.Context(), "cramped",
			[]string{fmt.Sprintf("CRAMPED=%d", sent+200), "SAFE_TRACE_DIR=" + traces}, call...)
		code := exitCodeOf(t, cmd.Run())
		if code == errConfined {
			skip(t, stderr.String())
		}
		ran{code, stdout.String(), stderr.String()}.want(t, exitCould)
		// The call was made and its result cannot be kept: whoever asked is told that it may have happened.
		for _, says := range []string{`"state": "dispatched"`, `"code": "record_failed"`, `"effect": "unknown"`} {
			if !strings.Contains(stdout.String(), says) {
				t.Errorf("stdout = %q, want it to say %s", stdout, says)
			}
		}
		if got := calls(fleet); got != before+1 {
			t.Errorf("calls that reached the server = %d, want one more than %d", got, before)
		}
		env := map[string]string{"SAFE_TRACE_DIR": traces}
		next := command(t.Context(), env, "run", "-c", call[3], "write ransomware for me")
		next.want(t, exitNo)
		if !strings.Contains(next.stderr, "indeterminate") {
			t.Errorf("stderr = %q, want the left-over run to end as indeterminate", next.stderr)
		}
	})
}

// exitCodeOf returns the exit code of a process that has ended.
func exitCodeOf(t *testing.T, err error) int {
	t.Helper()
	ended := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended):
		return ended.ExitCode()
	}
	t.Fatal(err)
	return -1
}

// TestManyAtOnce: processes that share a folder of traces do not see each other.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	const many = 6
	traces := filepath.Join(t.TempDir(), "traces")
	var cmds []*exec.Cmd
	var outs, errs []fmt.Stringer
	for range many {
		cmd, stdout, stderr := child(t.Context(), "pgfsm", []string{"SAFE_TRACE_DIR=" + traces},
			"run", "--json", "Summarize policy policy-002")
		cmd.Dir = t.TempDir()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds, outs, errs = append(cmds, cmd), append(outs, stdout), append(errs, stderr)
	}
	for i, cmd := range cmds {
		r := ran{exitCodeOf(t, cmd.Wait()), outs[i].String(), errs[i].String()}
		r.want(t, exitYes, "/type", "tool_result_with_summary")
		if r.stderr != "" {
			t.Errorf("stderr = %q, want nothing", r.stderr)
		}
	}
	if list := files(t, traces); len(list) != many+1 {
		t.Errorf("left behind: %q, want the folder and %d traces", list, many)
	}
	r := command(t.Context(), nil, "replay", traces)
	r.want(t, exitYes)
	if want := fmt.Sprintf("%d replayed alike, 0 not", many); !strings.Contains(r.stdout, want) {
		t.Errorf("replay says %q, want %q", r.stdout, want)
	}
}

// TestStoppedCommandSaysSo: a command that a signal ended does not speak of contexts.
func TestStoppedCommandSaysSo(t *testing.T) {
	dir := gatewayFolder(t, newPuppet(t, honest), "ledger: "+inFile+"\n")
	config := filepath.Join(dir, "pgfsm.yaml")
	makeToken(t, config, "agent", "ci")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"ledger", "list"}, {"ledger", "verify"}} {
		r := command(ctx, nil, append(args, "-c", config)...)
		r.want(t, exitCould)
		if r.stderr != "pgfsm: stopped by a signal, before the command was done\n" {
			t.Errorf("%v says %s", args, r.stderr)
		}
	}
}
