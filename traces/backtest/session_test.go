package backtest_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy/rules"
	"pgfsm/policy/ruling"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/backtest"
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
			draft := ruling.NewJudge(statestest.Policies(rules.Policy{ID: "new", When: tt.draft, Effect: rules.Allow}), nil)
			r := backtest.NewReport([]backtest.Call{(&backtest.Comparer{Old: draft, New: draft, Replayer: traces.NewReplayer(machine, nil)}).Compare("one", trace, nil)})
			if tt.want == "" {
				if r.Judged != 0 || len(r.Unknown) != 1 || !slices.Equal(r.Unknown[0].Unknown, []string{"where the arguments come from"}) {
					t.Errorf("NewReport() = %+v, want unknown", r)
				}
				return
			}
			i := slices.IndexFunc(r.Decisions, func(d backtest.DecisionCount) bool { return d.Calls > 0 })
			if r.Judged != 1 || i < 0 || r.Decisions[i].New != tt.want {
				t.Errorf("NewReport() = %+v, want %s", r, tt.want)
			}
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
			run := states.NewRun("01890a5d-ac96-774b-bcce-000000000001", states.Request{
				Actor: "local:alice", At: statestest.At, Kind: states.KindAgent, Text: canonical.Text((&pastCall{version: 1}).plan()),
				Session: tt.session,
			}, statestest.MustBundle(c, nil))
			machine := statestest.MustMachine(t)
			trace := traceOf(t, machine, run)
			judge := func(name, policies string) string {
				path := filepath.Join(t.TempDir(), name)
				check.NoError(t, os.WriteFile(path, []byte("version: 1\npolicies: ["+policies+"]\n"), 0o600))
				return path
			}
			before, err := backtest.ReadJudge(judge("old.yaml", "{id: all, effect: allow}"), os.ReadFile)
			check.NoError(t, err)
			after, err := backtest.ReadJudge(judge("new.yaml", "{id: new, when: \""+tt.draft+"\", effect: allow}"), os.ReadFile)
			check.NoError(t, err)
			comparer := backtest.Comparer{Old: before, New: after, Replayer: traces.NewReplayer(machine, nil)}
			r := backtest.NewReport([]backtest.Call{comparer.Compare("one", trace, nil)})
			if tt.want == "" {
				lacks := []string{"the earlier calls of the session"}
				if r.Judged != 0 || r.Unusable != 0 || len(r.Unknown) != 1 || !slices.Equal(r.Unknown[0].Unknown, lacks) {
					t.Errorf("NewReport() = %+v, want unknown %q", r, lacks)
				}
				return
			}
			i := slices.IndexFunc(r.Decisions, func(d backtest.DecisionCount) bool { return d.Calls > 0 })
			if r.Judged != 1 || len(r.Unknown) != 0 || r.Decisions[i].New != tt.want {
				t.Errorf("NewReport() = %+v, want %s", r, tt.want)
			}
		})
	}
}
