package prove_test

import (
	"strings"
	"testing"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/origin"
	"pgfsm/policy/prove"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// TestSessions: what conditions read of the client's session, and of the origins of arguments, is
// free. So a proof holds for every session, a counterexample is a call without a known session, and
// everything else is unknown.
func TestSessions(t *testing.T) {
	open := rules.Policy{ID: "open", Effect: rules.Allow}
	deny := func(when string) []rules.Policy {
		return []rules.Policy{{ID: "no", When: when, Effect: rules.Deny}, open}
	}
	allow := func(when string) []rules.Policy {
		return []rules.Policy{{ID: "yes", When: when, Effect: rules.Allow}}
	}
	never := func(when string) prove.Claim {
		return prove.Claim{ID: "c", Kind: prove.Never, Effect: rules.Allow, When: when}
	}
	reachable := prove.Claim{ID: "c", Kind: prove.Reachable, Effect: rules.Allow}
	rated := &risk.Content{Modes: risk.DefaultModes(), Initial: "safe", Rules: []risk.Rule{{ID: "long", SetMode: "danger", ScoreExpr: "double(session.calls)"}}}
	for _, tt := range []struct {
		name      string
		policies  []rules.Policy
		risk      *risk.Content
		claim     prove.Claim
		want      string
		condition string // the condition that a result names, and where it is
		where     string
	}{
		{"denied-in-every-session", deny("tool == 'tool0' && (session.known || !session.known)"), nil, never(""), prove.Proved, "", ""},
		{"the-same-condition", deny("session.rewritten"), nil, never("session.rewritten"), prove.Proved, "", ""},
		{"allowed-only-if-known", allow("session.known"), nil, never("!session.known"), prove.Proved, "", ""},
		{"not-rewritten", deny("session.rewritten"), nil, never(""), prove.Refuted, "", ""},
		{"unknown-session", deny("session.calls >= 50"), nil, never("!session.known"), prove.Refuted, "", ""},
		{"whatever-the-session-is", deny("session.known && args.a > 5"), nil, never("args.a <= 5"), prove.Refuted, "", ""},
		{"only-a-known-session", allow("session.known"), nil, never(""), prove.Unknown, "session.known", `policy "yes", when`},
		{"only-a-rewritten-call", allow("session.rewritten"), nil, never(""), prove.Unknown, "session.rewritten", `policy "yes", when`},
		{"only-a-client", allow("session.client == 'claude'"), nil, never(""), prove.Unknown, "session.client == 'claude'", `policy "yes", when`},
		{"only-an-id", allow("session.id.startsWith('s-')"), nil, never(""), prove.Unknown, "session.id.startsWith('s-')", `policy "yes", when`},
		{"an-argument-is-the-id", allow("session.known && session.id == args.b"), nil, never(""), prove.Unknown,
			"session.known && session.id == args.b", `policy "yes", when`},
		// Conditions about the session are not compared with each other.
		{"other-bound", deny("session.calls >= 50"), nil, never("session.calls >= 60"), prove.Unknown, "session.calls >= 60", `claim "c", when`},
		{"reachable-without-a-session", deny("session.rewritten"), nil, reachable, prove.Proved, "", ""},
		{"reachable-only-with-a-session", allow("session.known"), nil, reachable, prove.Unknown, "session.known", `policy "yes", when`},
		{"not-reachable", deny("session.known || !session.known"), nil, reachable, prove.Refuted, "", ""},
		{"held-unless-found", []rules.Policy{{ID: "ask", Effect: rules.Allow, RequireApprovalIf: "!found()"}}, nil, never("!found()"), prove.Proved, "", ""},
		{"denied-if-found-or-not", deny("found('a') || !found('a')"), nil, never(""), prove.Proved, "", ""},
		{"one-path-says-nothing-of-another", deny("!found('a')"), nil, never("!found('b')"), prove.Unknown, "!found('b')", `claim "c", when`},
		{"found-says-nothing-of-the-origin", deny("!found('a')"), nil, never("origin('a') == 'none'"), prove.Unknown, "origin('a') == 'none'", `claim "c", when`},
		{"nothing-is-found-without-a-session", deny("found()"), nil, never("!found()"), prove.Refuted, "", ""},
		{"allowed-only-if-found", allow("found()"), nil, never(""), prove.Unknown, "found()", `policy "yes", when`},
		{"only-of-the-request", allow("origin('a') == 'request'"), nil, never(""), prove.Unknown, "origin('a') == 'request'", `policy "yes", when`},
		{"beside-an-argument", deny("!found() && args.a > 5"), nil, never("args.a > 5"), prove.Unknown, "!found() && args.a > 5", `policy "no", when`},
		{"untrusted", deny("session.untrusted && session.private"), nil, never("session.untrusted && session.private"), prove.Proved, "", ""},
		{"only-if-nothing-is-private", allow("!session.private"), nil, reachable, prove.Unknown, "!session.private", `policy "yes", when`},
		{"score-of-origins", deny("risk.score < 90"), &risk.Content{Modes: risk.DefaultModes(), Initial: "safe",
			Rules: []risk.Rule{{ID: "nowhere", ScoreExpr: "origin('a') == 'none' ? 95.0 : 10.0"}}}, never(""), prove.Refuted, "", ""},
		{"score-of-the-session", deny("risk.score < 90"), rated, never(""), prove.Refuted, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, func(c *policy.Content) { c.Policy, c.Risk = &rules.Content{Policies: tt.policies}, tt.risk },
				`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a","b"]}`)
			r := f.prove(t, tt.claim)[0]
			if r.Status != tt.want || r.Condition != tt.condition || !strings.HasPrefix(r.Where, tt.where) {
				t.Fatalf("Prove() = %s: %s, %s: %s; want %s, %s: %s", r.Status, r.Reason, r.Where, r.Condition, tt.want, tt.where, tt.condition)
			}
			if r.Call == nil {
				return
			}
			checkCall(t, f, &tt.claim, &r)
			if in := r.Call.Input(f.bundle); in.Session != nil {
				t.Errorf("the counterexample assumes the session %+v", in.Session)
			}
		})
	}
}

// TestProofsHoldForSessions compares proofs with calls in sessions of which the prover knows nothing.
func TestProofsHoldForSessions(t *testing.T) {
	conditions := []string{
		"session.known", "!session.known", "session.rewritten", "session.calls >= 3", "session.calls < 3 && session.known",
		"session.client == 'claude'", "session.id != ''", "session.known && !session.rewritten", "session.id == 's-1' || session.calls > 9",
		"found()", "!found('a') || session.private", "origin('a') in ['request', 'own']", "session.untrusted && !session.private",
	}
	sessions := []*condition.Session{nil}
	leaf := func(at, from string) origin.Leaf { return origin.Leaf{At: at, Role: origin.Target, Origin: from} }
	origins := []*condition.Origins{nil, {}, {Untrusted: true}, {Private: true}, {Leaves: []origin.Leaf{leaf("/a", origin.Own)}},
		{Leaves: []origin.Leaf{leaf("/a", origin.Request), leaf("/b", origin.None)}, Untrusted: true, Private: true}}
	for _, id := range []string{"s-1", "s-2"} {
		for _, client := range []string{"claude", "codex"} {
			for _, calls := range []int{0, 2, 3, 10} {
				sessions = append(sessions, &condition.Session{ID: id, Client: client, Calls: calls},
					&condition.Session{ID: id, Client: client, Calls: calls, Rewritten: true})
			}
		}
	}
	count := map[string]int{}
	for _, first := range conditions {
		for _, second := range conditions {
			f := newFixture(t, func(c *policy.Content) {
				c.Policy.Policies = []rules.Policy{{ID: "no", When: first, Effect: rules.Deny}, {ID: "hold", When: second, Effect: rules.Pending},
					{ID: "open", Effect: rules.Allow}}
			}, `{"type":"object"}`)
			var claims []prove.Claim
			for _, when := range append(conditions, "") {
				for _, effect := range []string{rules.Allow, rules.Pending, rules.Deny} {
					claims = append(claims, prove.Claim{ID: "c", Kind: prove.Never, Effect: effect, When: when})
				}
			}
			for i, r := range f.prove(t, claims...) {
				count[r.Status]++
				if r.Status == prove.Unknown && (r.Where == "" || !strings.Contains(r.Condition, "session.") && !strings.ContainsAny(r.Condition, "(")) {
					t.Errorf("%s, then %s: %+v is unknown, and the result names %s: %q", first, second, claims[i], r.Where, r.Condition)
				}
				for n, session := range sessions {
					in := &condition.Input{Server: "pay", Tool: "tool0", Env: "prod", Args: []byte("{}"), Pinned: true,
						Now: "2026-05-05T10:00:00.000Z", Session: session, Origins: origins[(n+i)%len(origins)]}
					in.Actor = f.bundle.ConditionActor("agent", nil)
					if r.Status == prove.Proved && concerns(f.bundle, &claims[i], in) {
						t.Fatalf("%s, then %s: the proof of %+v is contradicted by %+v", first, second, claims[i], session)
					}
				}
				if r.Call != nil {
					checkCall(t, f, &claims[i], &r)
				}
			}
		}
	}
	t.Logf("results: %v", count)
	for _, status := range []string{prove.Proved, prove.Refuted, prove.Unknown} {
		if count[status] == 0 {
			t.Errorf("no claim is %s, so the test shows nothing about it", status)
		}
	}
}
