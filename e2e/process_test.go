package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
	"pgfsm/internal/test/tool"
)

// TestInterruptKey: what Ctrl-C sends ends the process in good order.
func TestInterruptKey(t *testing.T) {
	t.Parallel()
	p := mcptest.New(t, mcptest.Except("tools/list", ""))
	config, traces := mcptest.Config(t, p, "", "")
	cmd, stdout, stderr := child(t.Context(), "pgfsm", nil, "run", "--json", "-c", config, "anything")
	check.NoError(t, cmd.Start())
	p.Await(t, "tools/list")
	check.NoError(t, cmd.Process.Signal(os.Interrupt))
	cmd.Wait() // its error is the exit code, below
	clitest.Result{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}.Want(t, exitNo,
		"/type", "blocked", "/code", "cancelled")
	command(t.Context(), nil, "replay", traces).Want(t, exitYes)
}

// TestNoCallWithoutARecord: where nothing can be recorded, nothing is called.
func TestNoCallWithoutARecord(t *testing.T) {
	t.Parallel()
	p := mcptest.New(t, mcptest.Honest)
	config, _ := mcptest.Config(t, p, "", "")
	dir := clitest.Folder(t, "taken", "")
	call := []string{"call", "--json", "-c", config, "puppet", "look", "{}"}

	t.Run("no-folder-can-be-made", func(t *testing.T) {
		for _, traces := range []string{"taken", "taken/traces"} {
			r := command(t.Context(), map[string]string{"SAFE_TRACE_DIR": filepath.Join(dir, traces)}, call...)
			r.Want(t, exitCould)
			if r.Stdout != "" || !strings.Contains(r.Stderr, "set traces.dir or SAFE_TRACE_DIR") {
				t.Errorf("stdout = %q, stderr = %q, want the remedy on stderr only", r.Stdout, r.Stderr)
			}
		}
	})
	p.Reached(t, 0)

	// With more and more room, the record fails before the run, before the call and after it, and then it is complete.
	const step = 8 << 10
	var refused, unfinished bool
	for room := 0; ; room += step {
		if room > 1<<20 {
			t.Fatalf("no run was recorded with room for %d bytes", room)
		}
		traces := filepath.Join(t.TempDir(), "traces")
		before := p.Calls.Load()
		cmd, stdout, stderr := child(t.Context(), "cramped",
			[]string{fmt.Sprintf("CRAMPED=%d", room), "SAFE_TRACE_DIR=" + traces}, call...)
		code := clitest.ExitCode(t, cmd.Run())
		if code == errConfined {
			tool.Skip(t, stderr.String())
		}
		sent := p.Calls.Load() - before
		if code == exitYes {
			break
		}

		r := clitest.Result{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}
		r.Want(t, exitCould)
		begun, wantSent := r.Stdout != "", int32(0)
		if begun {
			r.Want(t, exitCould, "/type", "failed", "/code", "record_failed")
			if r.Member("/effect") != "not_sent" {
				wantSent = 1
			}
		}
		if sent != wantSent {
			t.Fatalf("room for %d bytes: %d calls reached the server, want %d\n%s%s", room, sent, wantSent, r.Stdout, r.Stderr)
		}
		refused, unfinished = refused || begun && sent == 0, unfinished || sent == 1

		// The next start has room, and ends what is left.
		next := command(t.Context(), map[string]string{"SAFE_TRACE_DIR": traces}, "run", "-c", call[3], "write ransomware for me")
		next.Want(t, exitNo)
		if sent == 1 && !strings.Contains(next.Stderr, "indeterminate") {
			t.Errorf("stderr = %q, want the left-over run to end as indeterminate", next.Stderr)
		}
	}

	if !refused || !unfinished {
		t.Errorf("a run was recorded without its call: %t, a call without its result: %t, want both", refused, unfinished)
	}
}

// TestRunsInOneFolder: processes that make the ledger at once all record their runs there.
func TestRunsInOneFolder(t *testing.T) {
	t.Parallel()
	const many = 12
	config, traces := mcptest.Config(t, mcptest.New(t, mcptest.Honest), "", "")
	var processes sync.WaitGroup
	for range many {
		cmd, stdout, stderr := child(t.Context(), "pgfsm", nil, "call", "--json", "-c", config, "puppet", "look", "{}")
		processes.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Errorf("%v\n%s%s", err, stdout, stderr)
			}
		})
	}
	processes.Wait()
	replays(t, traces, many)
	command(t.Context(), nil, "ledger", "verify", "--json", "-c", config).Want(t, exitYes, "/requests", strconv.Itoa(many))
}

// TestStrayWordsAreNotLogged: net/http logs what a server sends on a connection that waits for nothing. Where the next
// request is on that connection already, the same words are its malformed answer: then the run fails, and says so secret.Mask.
func TestStrayWordsAreNotLogged(t *testing.T) {
	t.Parallel()
	const token = "stray-secret-4711"
	p := &mcptest.Server{Answer: mcptest.Honest, Came: make(chan string, 100)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, r)
		if !strings.Contains(rec.Body.String(), `"tools"`) {
			maps.Copy(w.Header(), rec.Header())
			w.WriteHeader(rec.Code)
			w.Write(rec.Body.Bytes())
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s%s\r\n",
			rec.Body.Len(), rec.Body, token)
		<-t.Context().Done()
		conn.Close()
	}))
	t.Cleanup(s.Close)
	dir := clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {echo: {type: http, url: %q, headers: {Authorization: "Bearer ${file:token}"}}}
allowlist: allowlist.json
`, s.URL), "allowlist.json", `{"echo": ["look"]}`, "token", token)
	cmd, stdout, stderr := child(t.Context(), "pgfsm", nil, "call", "--json", "-c", filepath.Join(dir, "pgfsm.yaml"),
		"echo", "look", "{}")
	err := cmd.Run()
	failed := cmd.ProcessState.ExitCode() == 2 && strings.Contains(stdout.String(), "malformed HTTP response")
	if err != nil && !failed || stderr.Len() > 0 || strings.Contains(stdout.String(), token) {
		t.Errorf("call: %v\n%s%s", err, stdout, stderr)
	}
}

// TestReplayTouchesNothing: replay opens no socket and writes no file. It runs where the kernel kills a process that tries,
// and afterwards every file is as it was.
func TestReplayTouchesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := []string{"SAFE_TRACE_DIR=" + filepath.Join(dir, "traces")}
	for _, question := range []string{"Summarize policy policy-002", "tell me a joke", "write ransomware for me"} {
		cmd, _, stderr := child(t.Context(), "pgfsm", env, "run", question)
		cmd.Dir = dir
		if code := clitest.ExitCode(t, cmd.Run()); code > exitNo {
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
		{"replay-for-programs", []string{"replay", "--json", "traces"}, exitYes},
		{"the-kernel-does-kill-who-writes", []string{"init", "elsewhere"}, -1},
		{"the-kernel-does-kill-who-listens", []string{"tools"}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd, stdout, stderr := child(t.Context(), "frugal", env, tt.args...)
			cmd.Dir = dir
			code := clitest.ExitCode(t, cmd.Run())
			if code == errConfined {
				tool.Skip(t, stderr.String())
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
