package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgfsm/internal/hook"
	"pgfsm/internal/runner"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
)

// A hookStage is a gateway that the hooks of Claude Code ask. Its tool Bash is allowed.
type hookStage struct {
	*stage
	mcp    string
	other  string // another gateway on the ledger
	ledger *ledger.Ledger
	token  string
}

func newHookStage(t *testing.T, policies *rules.Content) *hookStage {
	t.Helper()
	s := &hookStage{stage: newClientStage(t, policies)}
	s.ledger = s.open()
	o := s.options
	o.Ledger = s.ledger
	s.mcp, _ = serve(t, newRunner(t, o), runner.ServiceOptions{Store: s.memory.Open()})
	o.Ledger = s.open()
	s.other, _ = serve(t, newRunner(t, o), runner.ServiceOptions{Store: s.memory.Open()})
	s.token = newToken(t, s.ledger, "ann", ledger.RoleHook)
	return s
}

// tell posts an event and returns the answer, which must have the status 200.
func (s *hookStage) tell(e hook.Event) hook.Answer {
	s.t.Helper()
	body, err := json.Marshal(e)
	if err != nil {
		s.t.Fatal(err)
	}
	status, text := s.post(s.token, string(body))
	var answer hook.Answer
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK {
		s.t.Fatalf("the answer has the status %d: %s", status, text)
	}
	return answer
}

func (s *hookStage) post(token, body string) (status int, text string) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.mcp+hook.Path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	r.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
	response, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(b)
}

// bash asks about a command.
func bash(call, command string) hook.Event {
	return hook.Event{Kind: hook.KindCall, Client: "claude", Session: "s-1", Call: call, Tool: "Bash",
		Arguments: []byte(fmt.Sprintf(`{"command":%q}`, command))}
}

// as returns the event of another kind about the same call.
func as(e hook.Event, kind string) hook.Event {
	e.Kind = kind
	return e
}

// sound verifies the ledger, and executes each run again.
func (s *hookStage) sound() {
	s.t.Helper()
	err := s.ledger.View(s.t.Context(), func(r ledger.Reader) error {
		_, err := ledger.Verify(s.t.Context(), r, ledger.VerifyOptions{Replayer: newReplayer(s.t)})
		return err
	})
	if err != nil {
		s.t.Errorf("Verify() = %v", err)
	}
}

// want compares a run with its status and the types of its last events.
func (s *hookStage) want(run string, status ledger.Status, code policy.Code, last ...ledger.Type) {
	s.t.Helper()
	q := request(s.t, s.ledger, run)
	if q.Status != status || q.Code != string(code) {
		s.t.Errorf("the run is %s %s, want %s %s", q.Status, q.Code, status, code)
	}
	var types []ledger.Type
	err := s.ledger.View(s.t.Context(), func(r ledger.Reader) error {
		for e, err := range ledger.EventsOf(r, run) {
			if err != nil {
				return err
			}
			types = append(types, e.Type)
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if n := len(types) - len(last); n < 0 || !slices.Equal(types[n:], last) {
		s.t.Errorf("the run has the events %v, want them to end with %v", types, last)
	}
}

// TestHookReports: a call that is permitted is recorded before the answer, and ends with what the client says about it.
func TestHookReports(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, nil)
	for _, tc := range []struct {
		name   string
		report func(hook.Event) []hook.Event
		status ledger.Status
		code   policy.Code
		last   []ledger.Type
	}{
		{"not-reported-yet", func(hook.Event) []hook.Event { return nil }, ledger.Delegated, "", []ledger.Type{ledger.CallDelegated}},
		{"reported", func(e hook.Event) []hook.Event { return []hook.Event{as(e, hook.KindResult)} }, ledger.Reported, "",
			[]ledger.Type{ledger.CallDelegated, ledger.CallReported, ledger.RunEnded}},
		{"failed", func(e hook.Event) []hook.Event { return []hook.Event{as(e, hook.KindFailure)} }, ledger.Reported, policy.CodeReportedFailed,
			[]ledger.Type{ledger.CallDelegated, ledger.CallReported, ledger.RunEnded}},
		{"reported-twice", func(e hook.Event) []hook.Event { return []hook.Event{as(e, hook.KindResult), as(e, hook.KindFailure)} }, ledger.Reported, "",
			[]ledger.Type{ledger.CallDelegated, ledger.CallReported, ledger.RunEnded}},
		{"rewritten", func(e hook.Event) []hook.Event {
			ran := as(bash(e.Call, "rm -rf /"), hook.KindResult)
			return []hook.Event{ran}
		}, ledger.Reported, policy.CodeRewritten, []ledger.Type{ledger.CallReported, ledger.CallRewritten, ledger.RunEnded}},
		{"session-ended", func(e hook.Event) []hook.Event {
			return []hook.Event{{Kind: hook.KindEnd, Client: "claude", Session: "s-1"}}
		}, ledger.Unreported, policy.CodeUnreported, []ledger.Type{ledger.CallDelegated, ledger.CallUnreported, ledger.RunEnded}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := bash("call-"+tc.name, "ls")
			answer := s.tell(e)
			if !answer.Allowed || answer.Run == "" {
				t.Fatalf("the answer is %+v, want it allowed", answer)
			}
			for _, told := range tc.report(e) {
				if got := s.tell(told); !got.Allowed {
					t.Errorf("the answer to %s is %+v", told.Kind, got)
				}
			}
			s.want(answer.Run, tc.status, tc.code, tc.last...)
		})
	}
	s.sound()
}

// TestHookLateReport: a report after the end of the session is an entry of its own, and changes nothing.
func TestHookLateReport(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, nil)
	e := bash("call-1", "ls")
	run := s.tell(e).Run
	s.tell(hook.Event{Kind: hook.KindEnd, Client: "claude", Session: "s-1"})
	s.tell(as(e, hook.KindResult))
	s.want(run, ledger.Unreported, policy.CodeUnreported, ledger.RunEnded)
	err := s.ledger.View(t.Context(), func(r ledger.Reader) error {
		entry, err := r.LastOfType(ledger.ReportLate)
		if err == nil && !strings.Contains(string(entry.Body), run) {
			t.Errorf("the entry is %s, want the run %s", entry.Body, run)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	s.sound()
}

// TestHookAsksAgain: the same call gets the same answer, and another call with its id is denied.
func TestHookAsksAgain(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, nil)
	first := s.tell(bash("call-1", "ls"))
	if again := s.tell(bash("call-1", "ls")); again != first {
		t.Errorf("the same call again = %+v, want %+v", again, first)
	}
	if other := s.tell(bash("call-1", "rm -rf /")); other.Allowed || other.Code != string(policy.CodeCallReused) {
		t.Errorf("another call with its id = %+v, want call_id_reused", other)
	}
	if next := s.tell(bash("call-2", "ls")); !next.Allowed || next.Run == first.Run {
		t.Errorf("the next call = %+v, want another run", next)
	}
	// Each of many concurrent askings about one call gets the same permit.
	var all sync.WaitGroup
	runs := make(chan string, 20)
	body, _ := json.Marshal(bash("call-3", "ls"))
	for range cap(runs) {
		all.Go(func() {
			var answer hook.Answer
			_, text := s.post(s.token, string(body))
			if err := json.Unmarshal([]byte(text), &answer); err != nil || !answer.Allowed {
				t.Errorf("a concurrent asking got %s", text)
			}
			runs <- answer.Run
		})
	}
	all.Wait()
	one := <-runs
	for range cap(runs) - 1 {
		if run := <-runs; run != one {
			t.Errorf("the call has the runs %s and %s", one, run)
		}
	}
	s.sound()
}

// TestHookHeld: a held call is denied with the place of the decision. After the approval, the identical call of the same session uses
// the votes once.
func TestHookHeld(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, hold)
	first := s.tell(bash("call-1", "make"))
	if first.Allowed || first.Code != string(policy.CodeApprovalRequired) || !strings.Contains(first.Decide, first.Run) {
		t.Fatalf("the answer is %+v, want it held with the place of the decision", first)
	}
	if again := s.tell(bash("call-2", "make")); again.Allowed || again.Run != first.Run {
		t.Errorf("the same call again = %+v, want the run %s", again, first.Run)
	}
	other := bash("call-3", "make")
	other.Session = "s-2"
	if foreign := s.tell(other); foreign.Run == first.Run {
		t.Errorf("the same call of another session = %+v, want a run of its own", foreign)
	}

	q := request(t, s.ledger, first.Run)
	vote(t, s.ledger, first.Run, q.Binding, token(t, s.ledger, "bob", ledger.RoleApprover), true)
	if changed := s.tell(bash("call-4", "make install")); changed.Allowed {
		t.Errorf("another call after the approval = %+v, want it held", changed)
	}
	// Of many concurrent askings, one gets the permit.
	var permits atomic.Int32
	var all sync.WaitGroup
	for i := range 20 {
		body, _ := json.Marshal(bash(fmt.Sprint("again-", i), "make"))
		all.Go(func() {
			var answer hook.Answer
			if _, text := s.post(s.token, string(body)); json.Unmarshal([]byte(text), &answer) == nil && answer.Allowed {
				permits.Add(1)
				if answer.Run != first.Run {
					t.Errorf("the permit is that of the run %s", answer.Run)
				}
			}
		})
	}
	all.Wait()
	if n := permits.Load(); n != 1 {
		t.Errorf("%d permits were handed out, want 1", n)
	}
	s.want(first.Run, ledger.Delegated, "", ledger.DecisionMade, ledger.CallDelegated)
	s.sound()
}

// TestHookDeniedByAnApprover: the outcome of a held call is told once; after that the same call is held again.
func TestHookDeniedByAnApprover(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, hold)
	first := s.tell(bash("call-1", "make"))
	q := request(t, s.ledger, first.Run)
	vote(t, s.ledger, first.Run, q.Binding, token(t, s.ledger, "bob", ledger.RoleApprover), false)
	ends(t, s.ledger, first.Run)
	if told := s.tell(bash("call-2", "make")); told.Allowed || told.Run != first.Run || told.Code != string(policy.CodeApprovalDenied) {
		t.Errorf("the answer after the denial = %+v", told)
	}
	if next := s.tell(bash("call-3", "make")); next.Allowed || next.Run == first.Run || next.Code != string(policy.CodeApprovalRequired) {
		t.Errorf("the next asking = %+v, want a new run that is held", next)
	}
	s.sound()
}

// TestHookRefuses: a client without a token of the role hook gets no answer, and no event that is not whole has an effect.
func TestHookRefuses(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, nil)
	good := `{"kind":"call","client":"claude","session":"s","call":"c","tool":"Bash","arguments":{"command":"ls"}}`
	agent := newToken(t, s.ledger, "ann", ledger.RoleAgent)
	for _, tc := range []struct {
		name, token, body, want string
		status                  int
	}{
		{"no-such-token", "pgfsm_x", good, "token_refused", http.StatusUnauthorized},
		{"token-of-an-agent", agent, good, "token_refused", http.StatusUnauthorized},
		{"no-json", s.token, "{", "hook_event_invalid", http.StatusBadRequest},
		{"a-member-twice", s.token, strings.Replace(good, `"kind":"call"`, `"kind":"call","kind":"end"`, 1), "hook_event_invalid", http.StatusBadRequest},
		{"an-unknown-member", s.token, strings.Replace(good, `"kind"`, `"extra":1,"kind"`, 1), "hook_event_invalid", http.StatusBadRequest},
		{"an-unknown-kind", s.token, strings.Replace(good, `"kind":"call"`, `"kind":"calls"`, 1), "kind is none of", http.StatusBadRequest},
		{"an-unknown-client", s.token, strings.Replace(good, `"claude"`, `"mcp-policy-kb"`, 1), "client is none of", http.StatusBadRequest},
		{"no-session", s.token, strings.Replace(good, `"session":"s"`, `"session":""`, 1), "session is empty", http.StatusBadRequest},
		{"a-long-session", s.token, strings.Replace(good, `"session":"s"`, `"session":"`+strings.Repeat("s", 129)+`"`, 1), "128 bytes", http.StatusBadRequest},
		{"a-session-that-a-database-would-confuse-with-another", s.token, strings.Replace(good, `"session":"s"`, `"session":"\\u0000"`, 1), "printable ASCII characters without", http.StatusBadRequest},
		{"a-client-that-is-not-configured", s.token, strings.Replace(good, `"claude"`, `"codex"`, 1), `no server \"codex\"`, http.StatusOK},
		{"an-unknown-tool", s.token, strings.Replace(good, `"Bash"`, `"Rm"`, 1), "tool_unknown", http.StatusOK},
		{"a-tool-of-a-newer-client", s.token, strings.Replace(good, `"Bash"`, `"Rm"`, 1), "servers.claude.tools: FILE.json", http.StatusOK},
		{"arguments-of-another-type", s.token, strings.Replace(good, `{"command":"ls"}`, `{"command":1}`, 1), "arguments_invalid", http.StatusOK},
		{"arguments-that-are-no-object", s.token, strings.Replace(good, `{"command":"ls"}`, `["ls"]`, 1), "no JSON object", http.StatusOK},
		{"no-arguments", s.token, strings.Replace(good, `,"arguments":{"command":"ls"}`, ``, 1), "no JSON object", http.StatusOK},
		{"a-server-that-is-not-behind-the-gateway", s.token, strings.Replace(good, `"tool"`, `"server":"github","tool"`, 1), "not behind the gateway", http.StatusOK},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, text := s.post(tc.token, strings.Replace(tc.body, `"call":"c"`, `"call":"`+tc.name+`"`, 1))
			if status != tc.status || !strings.Contains(text, tc.want) {
				t.Errorf("the answer is %d %s, want %d with %q", status, text, tc.status, tc.want)
			}
		})
	}
	s.sound()
}

// TestHookPromptOfASubagent: what an agent writes to its subagent is not recorded as the user's.
func TestHookPromptOfASubagent(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, nil)
	s.tell(hook.Event{Kind: hook.KindPrompt, Client: "claude", Session: "s-1", Agent: "a-1", Source: "user", Text: "List the files."})
	err := s.ledger.View(t.Context(), func(r ledger.Reader) error {
		entry, err := r.LastOfType(ledger.PromptCaptured)
		if err == nil && !strings.Contains(string(entry.Body), `"source":"agent"`) {
			t.Errorf("the entry is %s", entry.Body)
		}
		return err
	})
	check.NoError(t, err)
}

// TestHookSessions: conditions read the session of a call. After a rewritten call, a policy can deny the rest of the session. A prompt is
// recorded, and an MCP call that a hook announced belongs to the session, also at another gateway of the ledger; the next equal call does not.
func TestHookSessions(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, statestest.Policies(
		rules.Policy{ID: "rewritten", Effect: rules.Deny, Reason: "A call was rewritten.", When: "session.rewritten"},
		rules.Policy{ID: "few", Effect: rules.Deny, Reason: "The session has made three calls.", When: "session.calls >= 3"},
		rules.Policy{ID: "all", Effect: rules.Allow, Reason: "Fine."},
	))
	prompt := hook.Event{Kind: hook.KindPrompt, Client: "claude", Session: "s-1", Prompt: "p-1", Source: "user", Text: "List the files."}
	s.tell(prompt)
	first := s.tell(bash("call-1", "ls"))
	if !first.Allowed {
		t.Fatalf("the first call = %+v", first)
	}
	agent := newToken(t, s.ledger, "ann", ledger.RoleAgent)
	s.tell(hook.Event{Kind: hook.KindCall, Client: "claude", Session: "s-1", Call: "call-2", Server: "pgfsm",
		Tool: kb + "__fetch_policy_entry", Arguments: []byte(`{"policy_id":"policy-002"}`)})
	for range 2 {
		if status, text := post(t, s.other, agent, "fetch_policy_entry", call); status != http.StatusOK {
			t.Fatalf("the MCP call = %d %s", status, text)
		}
	}
	sessions := make(map[string]int)
	err := s.ledger.View(t.Context(), func(r ledger.Reader) error {
		for q, err := range r.Runs(ledger.Filter{Session: "claude/s-1"}) {
			if err != nil {
				return err
			}
			sessions[q.Kind]++
		}
		entry, err := r.LastOfType(ledger.PromptCaptured)
		if err == nil && !strings.Contains(string(entry.Body), "List the files.") {
			t.Errorf("the entry is %s, want the prompt", entry.Body)
		}
		return err
	})
	if err != nil || sessions["hook"] != 1 || sessions["agent"] != 1 {
		t.Errorf("the session has the runs %v (%v), want one of a hook and one of the agent", sessions, err)
	}

	s.tell(bash("call-3", "ls"))
	if fourth := s.tell(bash("call-4", "ls")); fourth.Allowed || !strings.Contains(fourth.Reason, "three calls") {
		t.Errorf("the fourth call = %+v, want it denied by the count", fourth)
	}
	s.tell(as(bash("call-3", "rm -rf /"), hook.KindResult))
	if after := s.tell(bash("call-5", "ls")); after.Allowed || !strings.Contains(after.Reason, "rewritten") {
		t.Errorf("a call after a rewritten one = %+v, want it denied", after)
	}
	other := bash("call-6", "ls")
	other.Session = "s-2"
	if fresh := s.tell(other); !fresh.Allowed {
		t.Errorf("a call of another session = %+v, want it allowed", fresh)
	}
	s.sound()
}

// TestHookRewrites: a rewriting hook beside ours changes each call after the gateway permitted it. Each report ends as rewritten.
func TestHookRewrites(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, statestest.Policies(rules.Policy{ID: "all", Effect: rules.Allow, Reason: "Fine."}))
	client := func(event, command string, n int) {
		t.Helper()
		var out, problems strings.Builder
		in := strings.NewReader(fmt.Sprintf(`{"hook_event_name":%q,"session_id":"s-1","cwd":"/","tool_name":"Bash","tool_input":{"command":%q},`+
			`"tool_response":{"stdout":""},"tool_use_id":"call-%d"}`, event, command, n))
		token := func(string) (string, bool) { return s.token, true }
		if code := hook.Run(t.Context(), []string{"claude", "--gateway", s.mcp}, token, in, &out, &problems); code != 0 || out.String() != "{}\n" {
			t.Fatalf("%s of call %d: exit %d, %s%s; want no objection", event, n, code, &out, &problems)
		}
	}
	const rewrites = 100
	for n := range rewrites {
		command := fmt.Sprint("ls ", n)
		client("PreToolUse", command, n)
		client("PostToolUse", command+"; env", n)
	}
	client("PreToolUse", "ls", rewrites)
	client("PostToolUse", "ls", rewrites)
	ends := make(map[string]int)
	err := s.ledger.View(t.Context(), func(r ledger.Reader) error {
		clear(ends)
		for q, err := range r.Runs(ledger.Filter{}) {
			if err != nil {
				return err
			}
			ends[fmt.Sprint(q.Status, " ", q.Code)]++
		}
		return nil
	})
	if err != nil || len(ends) != 2 || ends["reported rewritten"] != rewrites || ends["reported "] != 1 {
		t.Errorf("the runs ended as %v (%v), want %d rewritten, and one that is not", ends, err, rewrites)
	}
	s.sound()
}

// TestSessionsThatNoPolicyReads: a run records its session, or that it has none, though its bundle reads no session. So another bundle
// that reads sessions judges a run without one, and says what it does not know about the other.
func TestSessionsThatNoPolicyReads(t *testing.T) {
	t.Parallel()
	s := newHookStage(t, statestest.Policies(rules.Policy{ID: "all", Effect: rules.Allow, Reason: "Fine."}))
	content := *s.options.Bundle.Content()
	content.Policy = statestest.Policies(rules.Policy{ID: "told", Effect: rules.Allow, Reason: "Fine.", When: "session.known"})
	reads := statestest.MustBundle(content, nil)
	check.NoError(t, s.ledger.RecordActivation(t.Context(), reads, ledger.ActivationReason{Cause: ledger.CauseStart}))
	agent := newToken(t, s.ledger, "ann", ledger.RoleAgent)
	s.tell(hook.Event{Kind: hook.KindCall, Client: "claude", Session: "s-1", Call: "call-1", Server: "pgfsm",
		Tool: kb + "__fetch_policy_entry", Arguments: []byte(`{"policy_id":"policy-002"}`)})
	for range 2 {
		if status, text := post(t, s.mcp, agent, "fetch_policy_entry", call); status != http.StatusOK {
			t.Fatalf("the MCP call = %d %s", status, text)
		}
	}
	var got []string
	err := s.ledger.View(t.Context(), func(r ledger.Reader) error {
		got = nil
		for q, err := range r.Runs(ledger.Filter{}) {
			if err != nil {
				return err
			}
			w, err := ledger.TryBundle(r, newReplayer(t), q.RunID, reads.Digest())
			if err != nil {
				return err
			}
			judged := "unknown"
			if w.Unanswered == nil {
				judged = string(w.By.State())
			}
			got = append(got, q.Session+" "+judged)
		}
		return nil
	})
	if want := []string{"claude/s-1 unknown", " blocked"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("the runs are %q (%v), want %q", got, err, want)
	}
}
