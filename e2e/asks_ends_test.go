package e2e

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"pgfsm/internal/test/cli"
	"pgfsm/traces/ledger"
)

// What becomes of questions when the gateway or the server ends, see serve_asks_lost_test.go.

// TestServeAsksAndIsKilled: the gateway is killed while a question is open. What was asked is over: the client has to begin anew.
func TestServeAsksAndIsKilled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, revision, says string }{
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
		status               ledger.Status
		code, effect         string
		says                 string
		exit                 int
		received             []string // by the server
	}{
		{"session", withSessions, "5s", ledger.Failed, "server_timeout", "unknown", "server_timeout unknown look", exitYes, []string{"call over"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newInquirer(t, false)
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

// TestServeAsksAndTheServerDies: a server dies while its question is open. The client is told so.
func TestServeAsksAndTheServerDies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, revision, says string
	}{
		{"session", withSessions, "server_unreachable unknown look"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newInquirer(t, false)
			dir := inquiry(t, u, "2m")
			s := serve(t, dir)
			h := s.holdout(t, s.over("/mcp"), tt.revision)
			said := h.calls(t.Context(), t, "questionnaire__ask")
			u.dies()
			endedOnce(t, dir, ledger.Failed, "server_unreachable", "unknown")
			if got := comes(t, said); got != tt.says {
				t.Errorf("it is told %s, want %s\n%s", got, tt.says, s.stderr)
			}
			same(t, "what passed, as the ledger says", []string{"to_client " + elicitation}, passages(t, dir))
			h.lets() // what a client with a session answers now is too late for everybody
			if err := h.Ping(cli.Patient(t), nil); err != nil {
				t.Errorf("its session: %v", err)
			}
			s.stop(t, exitYes)
		})
	}
}
