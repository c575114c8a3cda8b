package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/traces/ledger"
)

// What becomes of questions when the gateway or the server ends, see serve_asks_lost_test.go.

// TestServeAsksAndIsKilled: the gateway is killed while a question is open. What was asked is over: the client has to begin anew.
func TestServeAsksAndIsKilled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, revision, says string }{
		{"stateless", withoutThem, "the requestState is not one that you were given for this, or the gateway has begun anew since; ask again without it"},
		{"session", withSessions, "session not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newInquirer(t, false)
			dir := inquiry(t, u, "2m")
			s := serve(t, dir)
			d := s.door(t)
			h := s.holdout(t, d.over("/mcp"), tt.revision)
			said := h.calls(t.Context(), t, "questionnaire__ask")
			d.wait.Lock()
			opens := sync.OnceFunc(d.wait.Unlock)
			defer opens()
			s.kill()
			for range 2 { // what the first start has ended, the second leaves as it is
				s = serve(t, dir)
				endedOnce(t, dir, ledger.Indeterminate, "indeterminate", "unknown")
				s.stop(t, exitYes)
			}
			s = serve(t, dir)
			d.leads(t, s)
			opens()
			h.lets()
			if got := comes(t, said); !strings.Contains(got, tt.says) {
				t.Errorf("it is told %s, want %s\n%s", got, tt.says, s.stderr)
			}
			endedOnce(t, dir, ledger.Indeterminate, "indeterminate", "unknown")
			u.askedOnly(t, dir)
		})
	}
}

// TestServeAsksAndIsStopped: the gateway is asked to end while a question is open. Who cannot answer any more is not waited for.
func TestServeAsksAndIsStopped(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, revision, runs string // runs: the time that a run has
		stateless            bool   // the server asks in its result
		status               ledger.Status
		code, effect         string
		says                 string
		exit                 int
		received             []string // by the server
	}{
		{"stateless", withoutThem, "2m", false, ledger.Failed, "cancelled", "unknown", "connection refused", exitCould, []string{"call over"}},
		{"session", withSessions, "5s", false, ledger.Failed, "server_timeout", "unknown", "server_timeout unknown look", exitYes, []string{"call over"}},
		{"session-stateless-server", withSessions, "2m", true, ledger.Executed, "", "done", "input_refused done no", exitYes, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newInquirer(t, tt.stateless)
			dir := inquiry(t, u, tt.runs)
			s := serve(t, dir)
			h := s.holdout(t, s.over("/mcp"), tt.revision)
			said := h.calls(t.Context(), t, "questionnaire__ask")
			s.stop(t, tt.exit)
			h.lets()
			if got := comes(t, said); !strings.Contains(got, tt.says) {
				t.Errorf("it is told %s, want %s\n%s", got, tt.says, s.stderr)
			}
			endedOnce(t, dir, tt.status, tt.code, tt.effect)
			u.left(t, tt.received...)
			u.askedOnly(t, dir)
		})
	}
	t.Run("session-that-answers", func(t *testing.T) {
		t.Parallel()
		u := newInquirer(t, false)
		dir := inquiry(t, u, "2m")
		s := serve(t, dir)
		h := s.holdout(t, s.over("/mcp"), withSessions)
		said := h.calls(t.Context(), t, "questionnaire__ask")
		s.interrupt(t)
		soon(t, "it takes no requests", func() bool {
			resp, err := http.Post(s.mcp, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`))
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			return err == nil && strings.Contains(string(body), "draining")
		})
		h.lets()
		if got := comes(t, said); got != "accept green" {
			t.Errorf("the answer is %s\n%s", got, s.stderr)
		}
		s.ends(t, exitYes)
		endedOnce(t, dir, ledger.Executed, "", "done")
	})
}

// TestServeAsksAndTheServerDies: a server dies while its question is open. The client is told so: with its answer, if it has no session.
func TestServeAsksAndTheServerDies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, revision string
		process        bool
		says           string
	}{
		{"stateless", withoutThem, false, "server_unreachable unknown look"},
		{"session", withSessions, false, "server_unreachable unknown look"},
		{"stateless-and-a-process", withoutThem, true, "server_died unknown look"},
		{"session-and-a-process", withSessions, true, "server_died unknown look"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newInquirer(t, false)
			dir, dies := inquiry(t, u, "2m"), u.dies
			if tt.process {
				dir, dies = inquiringProcess(t)
			}
			s := serve(t, dir)
			h := s.holdout(t, s.over("/mcp"), tt.revision)
			said := h.calls(t.Context(), t, "questionnaire__ask")
			dies()
			endedOnce(t, dir, ledger.Failed, strings.Fields(tt.says)[0], "unknown")
			if tt.revision == withoutThem {
				h.lets()
			}
			if got := comes(t, said); got != tt.says {
				t.Errorf("it is told %s, want %s\n%s", got, tt.says, s.stderr)
			}
			if d := cmp.Diff([]string{"to_client " + elicitation}, passages(t, dir)); d != "" {
				t.Errorf("what passed, as the ledger says (-want +got):\n%s", d)
			}
			h.lets() // what a client with a session answers now is too late for everybody
			if err := h.Ping(patient(t), nil); err != nil && tt.revision == withSessions {
				t.Errorf("its session: %v", err)
			}
			s.stop(t, exitYes)
		})
	}
	t.Run("stateless-server", func(t *testing.T) {
		t.Parallel()
		u := newInquirer(t, true)
		dir := inquiry(t, u, "2m")
		s := serve(t, dir)
		h := s.holdout(t, s.over("/mcp"), withSessions)
		said := h.calls(t.Context(), t, "questionnaire__ask")
		u.dies()
		h.lets()
		const want = "server_unreachable not_sent later"
		if got := comes(t, said); got != want {
			t.Errorf("it is told %s, want %s\n%s", got, want, s.stderr)
		}
		var all []string
		for _, q := range recorded(t, dir) {
			all = append(all, fmt.Sprint(q.Status, " ", q.Code))
		}
		if d := cmp.Diff([]string{"executed ", "failed server_unreachable"}, all); d != "" {
			t.Errorf("the runs (-want +got):\n%s", d)
		}
		verifies(t, dir)
	})
}

// inquiringScript asks in a call as a server with one tool does, in a shell, and says before which process it is.
const inquiringScript = `while read -r line; do id=${line#*\"id\":}; id=${id%%,*}; case "$line" in ` +
	`*initialize\"*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},` +
	`\"serverInfo\":{\"name\":\"sh\",\"version\":\"1\"}}}";; ` +
	`*server/discover*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"unknown\"}}";; ` +
	`*tools/list*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"ask\",\"inputSchema\":{\"type\":\"object\"}}]}}";; ` +
	`*tools/call*) echo $$ > "$0"; echo "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{\"message\":\"Which?\",` +
	`\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}";; esac; done`

// inquiringProcess is the configuration of a gateway in front of a process that asks something, and what kills that.
func inquiringProcess(t *testing.T) (dir string, dies func()) {
	t.Helper()
	at := filepath.Join(t.TempDir(), "process")
	dir = folder(t, "pgfsm.yaml", fmt.Sprintf("version: 1\nservers: {questionnaire: {type: stdio, command: /bin/sh, args: [-c, %q, %q], timeout: 2m, connect_timeout: 2m, "+
		"expose: [tools, elicitation]}}\nallowlist: allowlist.json\nledger: \"sqlite:pgfsm.db\"\n", inquiringScript, at), "allowlist.json", `{"questionnaire": ["ask"]}`)
	return dir, func() {
		id, err := strconv.Atoi(strings.TrimSpace(textOf(t, at)))
		if err != nil {
			t.Fatal(err)
		}
		p, err := os.FindProcess(id)
		if err == nil {
			err = p.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
