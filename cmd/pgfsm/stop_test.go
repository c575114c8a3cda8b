package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"pgfsm/internal/test/cli"
	"pgfsm/internal/test/mcptest"
	"strings"
	"sync/atomic"
	"testing"
)

// puppetConfig writes a configuration whose only server is a puppet, and returns the path of it and of the traces.
func puppetConfig(t *testing.T, p *mcptest.Server, server, more string) (config, traces string) {
	t.Helper()
	dir := cli.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
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
			p := mcptest.New(t, mcptest.But(tt.hangs, ""))
			config, traces := puppetConfig(t, p, tt.server, tt.more)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.cancel {
				go func() { p.Await(t, tt.hangs); cancel() }()
			}
			r := command(ctx, nil, "call", "--json", "-c", config, "puppet", "look", "{}")
			r.Want(t, tt.code, "/type", tt.typ, "/code", tt.reason, "/effect", tt.effect)
			if list := files(t, traces); len(list) != 2 {
				t.Errorf("left behind: %q, want the folder and one trace", list)
			}
			command(t.Context(), nil, "replay", "--head", r.Member("/head"), traces).Want(t, exitYes)
		})
	}
}

// TestInterruptKey: what Ctrl-C sends ends the process in good order.
func TestInterruptKey(t *testing.T) {
	t.Parallel()
	p := mcptest.New(t, mcptest.But("tools/list", ""))
	config, traces := puppetConfig(t, p, "", "")
	cmd, stdout, stderr := child(t.Context(), "pgfsm", nil, "run", "--json", "-c", config, "anything")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.Await(t, "tools/list")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // its error is the exit code, below
	cli.Result{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}.Want(t, exitNo,
		"/type", "blocked", "/code", "cancelled")
	command(t.Context(), nil, "replay", traces).Want(t, exitYes)
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
			p := mcptest.New(t, func(method string) string {
				if method == tt.hangs && !healed.Load() {
					return ""
				}
				return mcptest.Honest(method)
			})
			config, traces := puppetConfig(t, p, "", "")
			cmd, _, _ := child(t.Context(), "pgfsm", nil, "call", "-c", config, "puppet", "look", "{}")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			p.Await(t, tt.hangs)
			kill(t, cmd)
			partial, err := filepath.Glob(filepath.Join(traces, "*.partial"))
			if err != nil || len(partial) != 1 {
				t.Fatalf("left over = %q, %v, want one partial file", partial, err)
			}
			command(t.Context(), nil, "replay", traces).Want(t, exitCould) // there is nothing finished yet
			healed.Store(true)

			r := command(t.Context(), nil, "call", "--json", "-c", config, "puppet", "no-such-tool", "{}")
			want := "pgfsm: a left-over run ended as failed " + tt.code + ": " + strings.TrimSuffix(partial[0], ".partial")
			if !strings.HasPrefix(r.Stderr, want) || strings.Count(r.Stderr, "\n") != 1 {
				t.Errorf("stderr = %q, want one line %q", r.Stderr, want)
			}
			ended := cli.Read(t, strings.TrimSuffix(partial[0], ".partial")+".json")
			cli.Result{Stdout: ended}.Want(t, exitYes, "/outcome/code", tt.code, "/outcome/effect", tt.effect)
			r.Want(t, exitNo, "/code", "tool_unknown")
			if list := files(t, traces); len(list) != 3 {
				t.Errorf("left behind: %q, want the folder and two traces", list)
			}
			command(t.Context(), nil, "replay", traces).Want(t, exitYes)
		})
	}
}

// TestNoCallWithoutARecord: where nothing can be recorded, nothing is called.
func TestNoCallWithoutARecord(t *testing.T) {
	t.Parallel()
	fleet := demoFleet(t)
	dir := cli.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {sharepoint: {type: sse, url: %q}}
allowlist: allowlist.json
`, fleet.URL("mcp-sharepoint", "sse")), "allowlist.json", `{"sharepoint": ["fetch_sharepoint_doc"]}`, "taken", "")
	call := []string{"call", "--json", "-c", filepath.Join(dir, "pgfsm.yaml"),
		"sharepoint", "fetch_sharepoint_doc", `{"doc_id":"doc-001"}`}

	t.Run("no-folder-can-be-made", func(t *testing.T) {
		for _, traces := range []string{"taken", "taken/traces"} {
			r := command(t.Context(), map[string]string{"SAFE_TRACE_DIR": filepath.Join(dir, traces)}, call...)
			r.Want(t, exitCould)
			if r.Stdout != "" || !strings.Contains(r.Stderr, "set traces.dir or SAFE_TRACE_DIR") {
				t.Errorf("stdout = %q, stderr = %q, want the remedy on stderr only", r.Stdout, r.Stderr)
			}
		}
	})
	if got := calls(fleet); got != 0 {
		t.Fatalf("calls that reached the server = %d, want 0", got)
	}

	// A whole record, to know how much room one takes.
	command(t.Context(), nil, call...).Want(t, exitYes)
	whole, err := filepath.Glob(filepath.Join(dir, "traces", "trace_*.json"))
	if err != nil || len(whole) != 1 {
		t.Fatalf("traces = %q, %v, want one", whole, err)
	}
	doc := cli.Read(t, whole[0])
	before := calls(fleet)
	sent := strings.Index(doc, `"trigger":"dispatch"`)
	for _, room := range []int{0, sent / 2, sent - 200} {
		t.Run(fmt.Sprintf("room-for-%d-bytes", room), func(t *testing.T) {
			traces := filepath.Join(t.TempDir(), "traces")
			cmd, stdout, stderr := child(t.Context(), "cramped",
				[]string{fmt.Sprintf("CRAMPED=%d", room), "SAFE_TRACE_DIR=" + traces}, call...)
			code := cli.ExitCode(t, cmd.Run())
			if code == errConfined {
				skip(t, stderr.String())
			}
			cli.Result{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}.Want(t, exitCould)
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
			command(t.Context(), env, "run", "-c", call[3], "write ransomware for me").Want(t, exitNo)
			command(t.Context(), nil, "replay", traces).Want(t, exitYes)
		})
	}
	t.Run("room-for-the-dispatch-alone", func(t *testing.T) {
		traces := filepath.Join(t.TempDir(), "traces")
		cmd, stdout, stderr := child(t.Context(), "cramped",
			[]string{fmt.Sprintf("CRAMPED=%d", sent+200), "SAFE_TRACE_DIR=" + traces}, call...)
		code := cli.ExitCode(t, cmd.Run())
		if code == errConfined {
			skip(t, stderr.String())
		}
		cli.Result{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}.Want(t, exitCould)
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
		next.Want(t, exitNo)
		if !strings.Contains(next.Stderr, "indeterminate") {
			t.Errorf("stderr = %q, want the left-over run to end as indeterminate", next.Stderr)
		}
	})
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
		r := cli.Result{Code: cli.ExitCode(t, cmd.Wait()), Stdout: outs[i].String(), Stderr: errs[i].String()}
		r.Want(t, exitYes, "/type", "tool_result_with_summary")
		if r.Stderr != "" {
			t.Errorf("stderr = %q, want nothing", r.Stderr)
		}
	}
	if list := files(t, traces); len(list) != many+1 {
		t.Errorf("left behind: %q, want the folder and %d traces", list, many)
	}
	r := command(t.Context(), nil, "replay", traces)
	r.Want(t, exitYes)
	if want := fmt.Sprintf("%d replayed alike, 0 not", many); !strings.Contains(r.Stdout, want) {
		t.Errorf("replay says %q, want %q", r.Stdout, want)
	}
}

// TestStoppedCommandSaysSo: a command that a signal ended does not speak of contexts.
func TestStoppedCommandSaysSo(t *testing.T) {
	dir := gatewayFolder(t, mcptest.New(t, mcptest.Honest), "ledger: "+inFile+"\n")
	config := filepath.Join(dir, "pgfsm.yaml")
	makeToken(t, config, "agent", "ci")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"ledger", "list"}, {"ledger", "verify"}} {
		r := command(ctx, nil, append(args, "-c", config)...)
		r.Want(t, exitCould)
		if r.Stderr != "pgfsm: stopped by a signal, before the command was done\n" {
			t.Errorf("%v says %s", args, r.Stderr)
		}
	}
}
