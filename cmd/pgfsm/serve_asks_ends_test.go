package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"pgfsm/traces/ledger"
)

// What becomes of questions when the gateway or the server ends, see serve_asks_lost_test.go.

// TestServeAsksAndIsKilled: the gateway is killed while a question is open. What was asked is over: the client has to begin anew.
func TestServeAsksAndIsKilled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, revision, says string }{
		{"stateless", withoutThem, "the requestState is not one that this gateway has given you for this since it started"},
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
		name, revision, says string
	}{
		{"stateless", withoutThem, "server_unreachable unknown look"},
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
			if tt.revision == withoutThem {
				h.lets()
			}
			if got := comes(t, said); got != tt.says {
				t.Errorf("it is told %s, want %s\n%s", got, tt.says, s.stderr)
			}
			same(t, "what passed, as the ledger says", []string{"to_client " + elicitation}, passages(t, dir))
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
		same(t, "the runs", []string{"executed ", "failed server_unreachable"}, all)
		verifies(t, dir)
	})
}
