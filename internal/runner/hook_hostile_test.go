package runner_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"pgfsm/internal/hook"
	"pgfsm/internal/runner"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
)

// TestHookSpentCall: an id whose call was reported has its answer no more, so that one permit, or one approval, is for one call.
func TestHookSpentCall(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, nil)
	for _, tc := range []struct {
		name string
		end  hook.Event
	}{
		{"reported", as(bash("call-reported", "ls"), hook.KindResult)},
		{"session-ended", hook.Event{Kind: hook.KindEnd, Client: "claude", Session: "s-1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := bash("call-"+tc.name, "ls")
			if first, again := s.tell(e), s.tell(e); !first.Allowed || first != again {
				t.Fatalf("the call = %+v, and again %+v", first, again)
			}
			s.tell(tc.end)
			if spent := s.tell(e); spent.Allowed || spent.Code != string(policy.CodeCallReused) {
				t.Errorf("the call after its end = %+v, want call_id_reused", spent)
			}
		})
	}
	s.sound()
}

// TestHookHeldInARewrittenSession: an approval is no way around a policy that denies the calls of a session after a rewritten one.
func TestHookHeldInARewrittenSession(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, statestest.Policies(
		rules.Policy{ID: "rewritten", Effect: rules.Deny, Reason: "A call was rewritten.", When: "session.rewritten"},
		rules.Policy{ID: "ls", Effect: rules.Allow, Reason: "Fine.", When: `args.command == "ls"`},
		rules.Policy{ID: "all", Effect: rules.Pending, Reason: "A person decides.", Expires: time.Hour.Milliseconds()},
	))
	held := s.tell(bash("call-1", "make"))
	s.tell(bash("call-2", "ls"))
	s.tell(as(bash("call-2", "rm -rf /"), hook.KindResult))
	q := request(t, s.ledger, held.Run)
	vote(t, s.ledger, held.Run, q.Binding, token(t, s.ledger, "bob", ledger.RoleApprover), true)
	if after := s.tell(bash("call-3", "make")); after.Allowed || !strings.Contains(after.Reason, "rewritten") {
		t.Errorf("the approved call of a rewritten session = %+v, want it denied", after)
	}
	s.sound()
}

// TestHookOfAnother: what one actor tells in any number of sessions does not make the gateway forget those of another.
func TestHookOfAnother(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, nil)
	agent := newToken(t, s.ledger, "ann", ledger.RoleAgent)
	announce := hook.Event{Kind: hook.KindCall, Client: "claude", Session: "s-1", Call: "call-1", Server: "pgfsm",
		Tool: kb + "__fetch_policy_entry", Arguments: []byte(`{"policy_id":"policy-002"}`)}
	s.tell(announce)
	eve := newToken(t, s.ledger, "eve", ledger.RoleHook)
	for i := range 1100 {
		announce.Arguments = []byte(fmt.Sprintf(`{"policy_id":"policy-%d"}`, i))
		body, _ := json.Marshal(announce)
		if status, text := s.post(eve, string(body)); status != http.StatusOK {
			t.Fatalf("announcement %d = %d %s", i, status, text)
		}
	}
	if status, text := post(t, s.mcp, agent, "fetch_policy_entry", call); status != http.StatusOK {
		t.Fatalf("the MCP call = %d %s", status, text)
	}
	err := s.ledger.View(t.Context(), func(r ledger.Reader) error {
		for q, err := range r.Runs(ledger.Filter{Actor: "ann"}) {
			if err != nil || q.Session != "claude/s-1" {
				t.Errorf("the run has the session %q (%v)", q.Session, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestHookAnnouncesNoCallOfItsOwn: a client's own tools are no MCP server behind the gateway, whatever the event calls them.
func TestHookAnnouncesNoCallOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, nil)
	for _, names := range [][2]string{{"pgfsm-claude", "Bash"}, {"pgfsm", "claude__Bash"}, {"pgfsm", ""}, {"pgfsm", kb}, {"pgfsm-", "Bash"}} {
		e := bash("call-1", "rm -rf /")
		e.Server, e.Tool = names[0], names[1]
		body, _ := json.Marshal(e)
		if _, text := s.post(s.token, string(body)); strings.Contains(text, `"allowed":true`) {
			t.Errorf("the tool %q of the server %q = %s, want it denied", names[1], names[0], text)
		}
	}
}

// TestHookPromptIsBounded: every member of a prompt is bounded and has no secret of the operator.
func TestHookPromptIsBounded(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, nil)
	e := hook.Event{Kind: hook.KindPrompt, Client: "claude", Session: "s-1", Prompt: "p-1", Source: strings.Repeat("s", 500<<10), Text: "Hello."}
	body, _ := json.Marshal(e)
	s.post(s.token, string(body))
	err := s.ledger.View(t.Context(), func(r ledger.Reader) error {
		entry, err := r.LastOfType(ledger.PromptCaptured)
		if err == nil && len(entry.Body) > 1<<10 {
			t.Errorf("the entry of a prompt has %d bytes", len(entry.Body))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestHookTwoGateways: two gateways of one ledger hand the permit of an approved call out once, and give the askings about one id one run.
func TestHookTwoGateways(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, hold)
	o := s.options
	o.Ledger = s.open()
	second := *s
	second.mcp, _ = serve(t, newRunner(t, o), runner.ServiceOptions{Store: s.memory.Open()})
	for round := range 10 {
		e := bash(fmt.Sprint("first-", round), fmt.Sprint("make ", round))
		held := s.tell(e)
		q := request(t, s.ledger, held.Run)
		name := fmt.Sprint("bob", round)
		vote(t, s.ledger, held.Run, q.Binding, token(t, s.ledger, name, ledger.RoleApprover), true)
		var all sync.WaitGroup
		var mu sync.Mutex
		permits := make(map[string]int)
		for i := range 16 {
			again := e
			again.Call = fmt.Sprintf("again-%d-%d", round, i/2) // each id at both gateways
			body, _ := json.Marshal(again)
			at := s
			if i%2 == 1 {
				at = &second
			}
			all.Go(func() {
				var answer hook.Answer
				if _, text := at.post(s.token, string(body)); json.Unmarshal([]byte(text), &answer) == nil && answer.Allowed {
					mu.Lock()
					permits[again.Call+answer.Run]++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if len(permits) != 1 {
			t.Errorf("the permits %v were handed out, want one", permits)
		}
	}
	s.sound()
}
