package ledger_test

import (
	"context"
	"errors"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// TestSubjectsOfTwoIssuers: a subject is a person of its issuer only, however alike the other issuer's URL and subject look. In a
// list of a role the name of one does not fit the other.
func TestSubjectsOfTwoIssuers(t *testing.T) {
	for _, c := range []struct {
		name, requester, listed, voter string
		want                           error // nil: the vote counts
	}{
		{"same-subject-of-another-issuer", eve, "https://login.example.net/realms/corp#eve", "https://login.example.net/realms/corp#eve", nil},
		{"same-subject-of-an-issuer-that-begins-alike", eve, issuer + "orate#eve", issuer + "orate#eve", nil},
		{"same-subject-of-an-issuer-with-a-slash-more", eve, issuer + "/#eve", issuer + "/#eve", nil},
		{"same-subject-of-an-issuer-below", eve, issuer + "/sub#eve", issuer + "/sub#eve", nil},
		{"subject-that-begins-alike", eve, eve + "#eve", eve + "#eve", nil},
		{"same-name-as-a-token", eve, "eve", "eve", nil},
		{"same-subject-of-the-same-issuer", eve, eve, eve, ledger.ErrEligible},
		{"same-subject-in-other-letters", eve, issuer + "#EVE", issuer + "#EVE", ledger.ErrEligible}, // stricter than OpenID Connect
		{"role-lists-the-other-issuer", app, "https://login.example.net/realms/corp#eve", eve, ledger.ErrEligible},
		{"role-lists-an-issuer-that-begins-alike", app, issuer + "orate#eve", eve, ledger.ErrEligible},
		{"role-lists-an-issuer-with-a-slash-more", app, issuer + "/#eve", eve, ledger.ErrEligible},
		{"role-lists-a-subject-that-begins-alike", app, eve, eve + "#eve", ledger.ErrEligible},
		{"role-lists-a-subject-in-other-letters", app, issuer + "#EVE", eve, ledger.ErrEligible},
		{"role-lists-a-token", app, "eve", eve, ledger.ErrEligible},
		{"role-lists-a-subject-and-a-token-votes", app, eve, "eve", ledger.ErrEligible},
		{"role-lists-the-voter", app, eve, eve, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			content := ledgertest.Holding(2)
			content.Roles = []policy.Role{{Role: "owners", Actors: []string{c.listed}}}
			q := d.HoldRequest(states.Request{
				Actor: app, At: statestest.At, Kind: states.KindAsk, Text: canonical.Text(statestest.Question),
				Identity: &policy.Identity{Credential: &policy.Credential{Key: "k1"}, Kind: policy.ActorAgent, OnBehalfOf: c.requester},
			}, content)
			by := person(c.voter, ledger.RoleApprover)
			if !policy.HasSubject(c.voter) {
				by = d.Approver(c.voter)
			}
			_, err := d.Vote(context.Background(), ledgertest.Ballot(q, by))
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("Vote() = %v, want %v", err, c.want)
			}
			ledgertest.Verify(t, d.Store, nil)
		})
	}
}
