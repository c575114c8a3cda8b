package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/present"
	"pgfsm/internal/runner/explain"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/policy/prove"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
)

// judging is a configuration with policies and risk rules of which each decides, or none of the calls of these tests.
func judging() policy.Content {
	c := statestest.Content()
	c.Roles = []policy.Role{{Role: "owners", Actors: []string{alice, bob, carol}}}
	c.Policy = statestest.Policies(
		rules.Policy{ID: "no-drops", Match: rules.Match{Server: "*", Tool: "drop_*", Env: "*"}, Effect: rules.Deny, Reason: "<b>Nothing</b> is dropped."},
		rules.Policy{ID: "watched", Match: rules.Match{Server: "*", Tool: "*", Env: "*"}, Effect: rules.Deny, Mode: rules.Shadow},
		rules.Policy{ID: "carols", When: fmt.Sprintf("actor.id == %q", carol), Effect: rules.Allow},
		rules.Policy{ID: "rest", Effect: rules.Deny},
	)
	c.Risk = statestest.Ladder(risk.Rule{ID: "reads", ScoreExpr: "20"}, risk.Rule{ID: "drops", SetMode: "danger", Match: risk.Match{Server: "*", Tool: "drop_*", Env: "*"}})
	return c
}

// with gives the service a bundle.
func (d *fixture) with(c policy.Content, change ...func(*api.Options)) {
	d.TB.Helper()
	b := statestest.MustBundle(c, nil)
	d.change(append([]func(*api.Options){func(o *api.Options) {
		o.Bundle = func() *policy.Bundle { return b }
		o.Explain = func(ctx context.Context, q present.Question) (present.Explanation, error) {
			x, err := explain.Answer(ctx, explain.Sources{
				Bundle: b, Now: statestest.At,
				Catalog: func(context.Context, *policy.Bundle, bool) (*policy.Catalog, error) { return nil, nil },
				History: func(context.Context, *explain.Explainer, *explain.Call) error { return nil },
			}, q)
			return present.Explanation{SchemaVersion: present.SchemaVersion, Explanation: x}, err
		}
	}}, change...)...)
}

// try sends one of the forms of the page of policies.
func (b *browser) try(fields url.Values, change ...func(*http.Request)) reply {
	b.TB.Helper()
	return b.post(b.base+"policy", fields, change...)
}

// row returns the row of a table that begins with a name.
func row(t *testing.T, page, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, `<th scope="row">`+name)
	text, _, closed := strings.Cut(rest, "</tr>")
	if !found || !closed {
		t.Fatalf("no row %s: %s", name, page)
	}
	return text
}

// TestPolicyPageOfAnEmptyLedger says what to do next.
func TestPolicyPageOfAnEmptyLedger(t *testing.T) {
	d := newFixture(t)
	b := d.signedIn(here, alice, ledger.RoleApprover)
	b.page("policy").want(t, http.StatusOK, "No gateway has used this ledger yet", "There are no runs yet", "run <code>pgfsm policy explain</code>")
	b.try(url.Values{"try": {"compare"}, "draft": {draft}}).want(t, http.StatusUnprocessableEntity, "No gateway has used this ledger")
	b.try(url.Values{"try": {"explain"}, "server": {"s"}, "tool": {"t"}, "args": {"{}"}}).want(t, http.StatusBadRequest)
	d.with(judging())
	got := b.page("policy")
	got.want(t, http.StatusOK, "There are no runs yet", "no-drops")
	if strings.Contains(got.body, "Decided none") {
		t.Error("without runs every policy stands out")
	}
}

const draft = `version: 1
policies:
  - {id: less, when: "actor.id == 'carol@example.com'", effect: pending}
  - {id: more, effect: allow}
`

// TestCompareADraft: a draft is compared with the active policy on the recorded calls, and nothing is recorded.
func TestCompareADraft(t *testing.T) {
	d := newFixture(t)
	c := judging()
	d.with(c)
	old := d.Ask(carol, c)
	d.Clock.Add(48 * time.Hour)
	held, denied := d.Ask(carol, c), d.Ask(alice, c)
	b := d.signedIn(here, bob, ledger.RoleAuditor)
	end := len(d.Events(0))
	got := b.try(url.Values{"try": {"compare"}, "draft": {draft}, "since": {"24h"}})
	got.want(t, http.StatusOK, "The draft changes 2 of 2 calls", "1 call would run that does not run today.", held.RunID, denied.RunID, "pending, by less", "allow, by more", "newly-allowed: <b>1</b>", "newly-held: <b>1</b>",
		"pgfsm policy diff", "version: 1\npolicies:")
	if strings.Contains(got.body, old.RunID) {
		t.Error("a call of before the period is compared")
	}
	b.try(url.Values{"try": {"compare"}, "draft": {draft}, "since": {""}}).want(t, http.StatusOK, "The draft changes 3 of 3 calls", old.RunID)
	if n := len(d.Events(0)); n != end {
		t.Errorf("%d events were recorded", n-end)
	}
}

// TestClaims: the page shows the claims with what was found, and a trial shows those that the draft does not keep.
func TestClaims(t *testing.T) {
	d := newFixture(t)
	c := judging()
	d.with(c, func(o *api.Options) {
		o.Claims = func(_ context.Context, draft *rules.Content) ([]present.Claim, error) {
			if draft == nil {
				return []present.Claim{
					{ID: "alive", Text: "reachable: allow", Status: prove.Proved, Tools: 1, Cells: 3}, {ID: "idle", Status: prove.Proved},
					{ID: "odd", Text: hostile, Status: prove.Unknown, Why: hostile},
				}, nil
			}
			return []present.Claim{
				{ID: "alive", Status: prove.Refuted, Why: "no call has this decision"}, {ID: "idle", Status: prove.Unknown, Why: "it is free"},
				{ID: "odd", Status: prove.Unknown, Why: "as before"},
			}, nil
		}
	})
	d.Ask(carol, c)
	b := d.signedIn(here, alice, ledger.RoleApprover)
	got := b.page("policy")
	got.want(t, http.StatusOK, "Claims about every call", "1 tool, 3 cells", "no tool on the allowlist matches", "&lt;script&gt;hacked()")
	if visible.Lines(got.body) != got.body || strings.Contains(got.body, "<script>") {
		t.Errorf("a claim became markup: %s", got.body)
	}
	proves := d.handler.Claims
	d.handler.Claims = func(context.Context, *rules.Content) ([]present.Claim, error) { return nil, errDisk }
	b.page("policy").want(t, http.StatusOK, "The claims cannot be proved now", "no-drops")
	d.handler.Claims = proves
	got = b.try(url.Values{"try": {"compare"}, "draft": {draft}, "since": {""}})
	got.want(t, http.StatusOK, "Claims that the draft does not keep", "no call has this decision", "it is free")
	if strings.Contains(got.body, "as before") {
		t.Error("a claim that is unknown today counts as one that the draft breaks")
	}
}

// TestHostileDrafts: the errors of a draft name the line and what to do, and text in a draft is text.
func TestHostileDrafts(t *testing.T) {
	d := newFixture(t)
	c := judging()
	d.with(c)
	d.Ask(carol, c)
	b := d.signedIn(here, alice, ledger.RoleApprover)
	for _, tc := range []struct {
		name, draft, since string
		status             int
		says               []string
	}{
		{"unknown-key", "version: 1\npolicies:\n  - {id: a, effct: allow}\n", "", 422, []string{"draft:3:", "effct", "   3 |", "effect"}},
		{"markup", "version: 1\npolicies:\n  - {id: \"<script>hacked()</script>\u202e\", effect: allow}\n", "", 422, []string{"draft:3:", "&lt;script&gt;"}},
		{"not-utf-8", "version: 1\n# \xff\n", "", 422, []string{"draft:2:"}},
		{"breaks-out", "</textarea><script>hacked()</script>", "", 422, []string{"&lt;/textarea&gt;&lt;script&gt;"}},
		{"bad-period", draft, "<b>yesterday</b>", 422, []string{"since ", "&lt;b&gt;yesterday", "or a duration such as 24h"}},
		{"too-large", strings.Repeat("#", 1<<20), "", 413, nil},
		{"deep", "version: 1\npolicies: " + strings.Repeat("[", 20_000), "", 422, []string{"draft:"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := b.try(url.Values{"try": {"compare"}, "draft": {tc.draft}, "since": {tc.since}})
			got.want(t, tc.status, tc.says...)
			for _, bad := range []string{"<script>", "<b>yester"} {
				if strings.Contains(got.body, bad) {
					t.Errorf("the page has %s", bad)
				}
			}
			if at := strings.Index(got.body, `class="alert"`); at >= 0 {
				if alert, _, _ := strings.Cut(got.body[at:], "</pre>"); visible.Lines(alert) != alert {
					t.Errorf("the error has characters that do not show: %q", alert)
				}
			}
		})
	}
}

// TestExplainForm: the page answers with every gate, keeps what was asked, and makes no call.
func TestExplainForm(t *testing.T) {
	d := newFixture(t)
	d.with(judging())
	b := d.signedIn(here, alice, ledger.RoleAdmin)
	end := len(d.Events(0))
	ask := func(server, tool, args, actor string) reply {
		return b.try(url.Values{"try": {"explain"}, "server": {server}, "tool": {tool}, "args": {args}, "actor": {actor}, "agent": {"1"}})
	}
	ask(statestest.Server, statestest.Tool, `{"policy_id":"policy-002"}`, carol).want(t, http.StatusOK, "Decision: unknown", "carols: <b>matches</b>",
		"<b>reads</b>: ", "score 20", "made no call and recorded nothing",
		"pgfsm policy explain --server "+statestest.Server, "--agent", `value="`+carol+`"`)
	ask(statestest.Server, "drop_all", `{}`, carol).want(t, http.StatusOK, "Decision: deny", "no-drops: <b>matches</b>")
	ask(statestest.Server, statestest.Tool, "{", carol).want(t, http.StatusUnprocessableEntity, "args: ", "give one JSON object")
	ask(statestest.Server, statestest.Tool, `{} , "type": "x"`, carol).want(t, http.StatusUnprocessableEntity, "args: ")
	for _, fields := range []url.Values{{"try": {"write"}}, {}, {"try": {"compare"}, "file": {"policy.yaml"}}} {
		b.try(fields).want(t, http.StatusBadRequest, "The form cannot be read.")
	}
	got := ask(hostile, hostile, `{"a":"</textarea><script>hacked()</script>"}`, hostile)
	got.want(t, http.StatusOK, "Decision: deny", "&lt;script&gt;hacked()")
	if strings.Contains(got.body, "<script>") || strings.Contains(got.body, "<img") || visible.Lines(got.body) != got.body {
		t.Errorf("text of a question became markup, or does not show: %s", got.body)
	}
	if n := len(d.Events(0)); n != end {
		t.Errorf("%d events were recorded", n-end)
	}
}
