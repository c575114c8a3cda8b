package ledger_test

import (
	"errors"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// provided begins a ledger whose gateway has an identity provider, and a call of its agent that waits for a person.
func provided(t *testing.T, approve ...string) (*fixture, ledger.RunRow) {
	t.Helper()
	d := newFixture(t)
	content := ledgertest.Holding(2)
	content.Roles = []policy.Role{{Role: "owners", Actors: []string{"group:owners", issuer + "#gil"}}}
	d.activates(content, ledger.Settings{Issuers: []string{issuer}, May: &ledger.May{Approve: approve}})
	return d, d.HoldRequest(states.Request{
		Actor: app, At: statestest.At, Kind: states.KindAsk, Text: canonical.Text(statestest.Question),
		Identity: &policy.Identity{Credential: &policy.Credential{ID: "t-1", Key: "k1"}, Kind: policy.ActorAgent},
	}, content)
}

func (d *fixture) activates(content policy.Content, s ledger.Settings) {
	d.TB.Helper()
	bundle := statestest.MustBundle(content, nil)
	check.NoError(d.TB, d.RecordActivation(d.TB.Context(), bundle, ledger.ActivationReason{Cause: ledger.CauseStart, Settings: s}))
}

// The log shows who may vote, and the ledger takes no other vote.
func TestWhoMayVoteIsRecorded(t *testing.T) {
	other := ledger.Settings{Issuers: []string{"https://login.example.net"}, May: &ledger.May{Approve: []string{"group:owners"}}}
	for _, c := range []struct {
		name    string
		approve []string
		later   *ledger.Settings // of a reload
		want    error
	}{
		{"by-group", []string{"group:owners"}, nil, nil},
		{"by-group-that-no-role-names", []string{"group:staff"}, nil, nil},
		{"by-name", []string{eve}, nil, nil},
		{"nobody", nil, nil, ledger.ErrRole},
		{"another-group", []string{"group:admins"}, nil, ledger.ErrRole},
		{"another-person", []string{issuer + "#gil"}, nil, ledger.ErrRole},
		{"since-a-reload", nil, &ledger.Settings{Issuers: []string{issuer}, May: &ledger.May{Approve: []string{eve}}}, nil},
		{"as-the-call-was-held", []string{eve}, &other, nil},
		{"of-another-issuer", nil, &other, ledger.ErrRole},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, q := provided(t, c.approve...)
			if c.later != nil {
				d.activates(statestest.Content(), *c.later)
			}
			_, err := d.Vote(t.Context(), ledgertest.Ballot(q, person(eve, ledger.RoleApprover)))
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("Vote() = %v, want %v", err, c.want)
			}
			d.sound()
		})
	}
}

// A vote or a request that was recorded by another credential than its person's is found.
func TestVerifyJudgesCredentials(t *testing.T) {
	d, q := provided(t, "group:owners")
	agent := d.token("worker", ledger.RoleAgent, "")
	d.Cast(ledgertest.Ballot(q, person(eve, ledger.RoleApprover)))
	d.forge(t, []forgery{
		{"nothing-changed", unedited, ""},
		{"vote-without-a-token", edits(ledger.ApprovalApproved, `"credential":{"kid":"k1"},`, ``), "a vote without a token"},
		{"vote-with-two-tokens", edits(ledger.ApprovalApproved, `"token":""`, `"token":"`+agent.ID+`"`), "a vote without a token, or with one of another kind"},
		{"vote-of-another-issuer", changes(ledger.ApprovalApproved, func(e *ledger.Event) { e.By = "https://login.example.net#eve" }), "no recorded configuration gives this person the right to vote"},
		{"vote-by-another-group", edits(ledger.ApprovalApproved, `"groups":["owners"]`, `"groups":["admins"]`), "none of the roles"},
		{"vote-of-a-person-without-the-right", func(t *testing.T, all []ledger.Event) []ledger.Event {
			all = edits(ledger.ApprovalApproved, `"groups":["owners"],`, ``)(t, all)
			return changes(ledger.ApprovalApproved, func(e *ledger.Event) { e.By = issuer + "#gil" })(t, all)
		}, "no recorded configuration gives this person the right to vote"},
		{"right-that-was-never-given", edits(ledger.BundleActivated, `"approve":["group:owners"]`, `"audit":["group:owners"]`), "no recorded configuration gives this person the right to vote"},
		{"request-without-a-token", edits(ledger.RequestCreated, `"credential":{"jti":"t-1","kid":"k1"},`, ``), "a request without the token"},
		{"request-of-another-issuer", edits(ledger.BundleActivated, `"issuers":["`+issuer, `"issuers":["https://login.example.net`), "an issuer that the configuration does not have"},
		{"request-by-a-name-without-a-token", edits(ledger.RequestCreated, `"actor":"`+app+`"`, `"actor":"worker"`), "a request without a token by worker"},
		{"request-with-the-token-of-another", edits(ledger.RequestCreated, `"type":"request.created"`, `"token":"`+agent.ID+`","type":"request.created"`), "is not one of " + app},
	}...)
}

// A token that was revoked after a vote, and a right that was taken away after it, do not keep a gateway from starting.
func TestVerifyOpenJudgesVotesByTheirTime(t *testing.T) {
	d, q := provided(t, "group:owners")
	d.Cast(ledgertest.Ballot(q, person(eve, ledger.RoleApprover)))
	held := d.HoldBy("local:carol", ledgertest.Holding(2))
	dora := d.Approver(ledgertest.Alice)
	d.Cast(ledgertest.Ballot(held, dora))
	if _, err := d.RevokeToken(t.Context(), root, dora.TokenID); err != nil {
		t.Fatal(err)
	}
	d.activates(statestest.Content(), ledger.Settings{})
	d.sound()
	d.Inspect(func(r ledger.Reader) error { return ledger.VerifyOpen(t.Context(), r) })
}

// The forms of inputs and generations that only another program would write.
func TestVerifyJudgesForms(t *testing.T) {
	d := newFixture(t)
	d.passes(1)
	const reference = `"inputs":[{"event":"@`
	d.forge(t, []forgery{
		{"age-of-a-listing-that-was-not-kept", edits(ledger.ProxySent, reference, `"inputs":[{"age_s":7,"event":"@`), "no listing that was kept"},
		{"older-list-of-events", edits(ledger.CommandStarted, `"events":1`, `"events":0`), "no version 0"},
	}...)

	newer := d.forged(t, edits(ledger.CommandStarted, `"events":1`, `"events":2`))
	err := newer.View(t.Context(), func(r ledger.Reader) error {
		_, err := ledger.Verify(t.Context(), r, ledger.VerifyOptions{})
		return err
	})
	if !errors.Is(err, ledger.ErrNewer) || errors.Is(err, ledger.ErrTampered) {
		t.Errorf("Verify() = %v, want %v", err, ledger.ErrNewer)
	}
}
