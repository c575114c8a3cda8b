package backtest_test

import (
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/tracestest"
)

// TestCompareOfOrigins: a policy may read where arguments come from. If the policies of a run did not read it, it is unknown.
func TestCompareOfOrigins(t *testing.T) {
	for _, tt := range []struct{ name, scenario, draft, want string }{ // want: empty: unknown, in a task
		{"found", "origins-found", "found()", rules.Allow},
		{"not-found", "origins-not-found", "found()", rules.Deny},
		{"found-in-a-result", "origins-found", "origin('policy_id') == 'trusted'", rules.Allow},
		{"without-a-session", "origins-without-a-session", "found()", rules.Deny},
		{"not-recorded", "policy-allows", "found()", ""},
		{"not-recorded-without-a-session", "policy-allows", "found()", rules.Deny},
		{"not-asked", "policy-allows", "tool != 'other'", rules.Allow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := statestest.Find(t, tt.scenario)
			if tt.want == "" {
				s.Request.Task = "t-1"
			}
			machine := statestest.MustMachine(t)
			run := states.NewRun("01890a5d-ac96-774b-bcce-000000000001", s.Request, statestest.MustBundle(s.Content, s.Decider))
			_, _, trace := tracestest.Record(t, machine, run, s.Entry(), func() string { return statestest.At })
			var lacks []string
			if tt.want == "" {
				lacks = []string{"where the arguments come from"}
			}
			checkDraft(t, trace, tt.draft, tt.want, lacks...)
		})
	}
}

// TestCompareOfASession: a policy may read the client's session. If the policies of a run did not
// read it, its earlier calls are unknown, and the call is not compared.
func TestCompareOfASession(t *testing.T) {
	rewritten := &states.Session{Client: "claude", ID: "s-1", Calls: 7, Rewritten: true}
	started := &states.Session{Client: "claude", ID: "s-1"}
	for _, tt := range []struct {
		name            string
		session         *states.Session
		recorded, draft string // conditions; recorded: empty reads nothing
		want            string // empty: unknown
	}{
		{"rewritten", rewritten, "session.known", "!session.rewritten", rules.Deny},
		{"rewritten-and-allowed", rewritten, "session.known", "session.rewritten", rules.Allow},
		{"calls", rewritten, "session.known", "session.calls == 7", rules.Allow},
		{"names", rewritten, "session.known", "session.id == 's-1' && session.client == 'claude'", rules.Allow},
		{"no-earlier-calls", started, "session.known", "session.calls == 0 && !session.rewritten", rules.Allow},
		{"no-known-session", nil, "", "session.known", rules.Deny},
		{"no-known-session-and-allowed", nil, "", "!session.known && session.calls == 0", rules.Allow},
		{"calls-not-recorded", started, "", "session.calls < 5", ""},
		{"rewritten-not-recorded", started, "", "!session.rewritten", ""},
		{"not-asked", started, "", "tool != 'other'", rules.Allow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := statestest.Content()
			c.Policy = statestest.Policies(rules.Policy{ID: "then", When: tt.recorded, Effect: rules.Allow}, rules.Policy{ID: "rest", Effect: rules.Allow})
			trace := traceOf(t, statestest.MustBundle(c, nil), states.Request{
				Actor: "local:alice", Kind: states.KindAgent, Text: canonical.Text((&pastCall{version: 1}).plan()), Session: tt.session,
			})
			var lacks []string
			if tt.want == "" {
				lacks = []string{"the earlier calls of the session"}
			}
			checkDraft(t, trace, tt.draft, tt.want, lacks...)
		})
	}
}
