package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
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
	config, traces := puppetConfig(t, p, "", "")
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
	config, kept := puppetConfig(t, p, "", "")
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

	// A whole record, to know how much room one takes.
	command(t.Context(), nil, call...).Want(t, exitYes)
	whole, err := filepath.Glob(filepath.Join(kept, "trace_*.json"))
	if err != nil || len(whole) != 1 {
		t.Fatalf("traces = %q, %v, want one", whole, err)
	}
	doc := clitest.Read(t, whole[0])
	before := p.Calls.Load()
	sent := strings.Index(doc, `"trigger":"dispatch"`)
	for _, room := range []int{0, sent / 2, sent - 200} {
		t.Run(fmt.Sprintf("room-for-%d-bytes", room), func(t *testing.T) {
			traces := filepath.Join(t.TempDir(), "traces")
			cmd, stdout, stderr := child(t.Context(), "cramped",
				[]string{fmt.Sprintf("CRAMPED=%d", room), "SAFE_TRACE_DIR=" + traces}, call...)
			code := clitest.ExitCode(t, cmd.Run())
			if code == errConfined {
				tool.Skip(t, stderr.String())
			}
			clitest.Result{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}.Want(t, exitCould)
			// Without any record there is no run; with one, the document says how it stands.
			said := stdout.String() + stderr.String()
			if !strings.Contains(said, "file too large") || stdout.Len() > 0 && !strings.Contains(said, `"effect": "not_sent"`) {
				t.Errorf("stdout = %q, stderr = %q, want the cause, and that nothing was sent", stdout, stderr)
			}
			if got := p.Calls.Load(); got != before {
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
		code := clitest.ExitCode(t, cmd.Run())
		if code == errConfined {
			tool.Skip(t, stderr.String())
		}
		clitest.Result{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}.Want(t, exitCould)
		// The call was made and its result cannot be kept: the requester learns that it may have happened.
		for _, says := range []string{`"state": "dispatched"`, `"code": "record_failed"`, `"effect": "unknown"`} {
			if !strings.Contains(stdout.String(), says) {
				t.Errorf("stdout = %q, want it to say %s", stdout, says)
			}
		}
		if got := p.Calls.Load(); got != before+1 {
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
		{"replay-one-by-one", []string{"replay", "--jobs", "1", "--json", "traces"}, exitYes},
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
