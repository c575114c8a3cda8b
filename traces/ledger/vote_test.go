package ledger_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// A ballot that does not count is refused with its code, says why, and leaves nothing.
func TestVoteRefuses(t *testing.T) {
	other := canonical.Sum("binding", []byte("another call"))
	tests := []struct {
		name   string
		want   *ledger.Refusal
		says   string
		ballot func(c *fixture, v *ledger.Ballot)
	}{
		{"no-token", ledger.ErrRole, "token of the role approver", func(c *fixture, v *ledger.Ballot) { v.By = ledger.LocalUser("local:alice") }},
		{"agent", ledger.ErrRole, "approver", func(c *fixture, v *ledger.Ballot) { v.By = c.Caller(c.Token(bob, ledger.RoleAgent)) }},
		{"auditor", ledger.ErrRole, "approver", func(c *fixture, v *ledger.Ballot) { v.By = c.Caller(c.Token(bob, ledger.RoleAuditor)) }},
		{"admin", ledger.ErrRole, "approver", func(c *fixture, v *ledger.Ballot) { v.By = c.Caller(c.Token(bob, ledger.RoleAdmin)) }},
		{"token-revoked-since", ledger.ErrToken, "not valid", func(c *fixture, v *ledger.Ballot) {
			if _, err := c.RevokeToken(context.Background(), ledger.LocalUser("local:root"), v.By.TokenID); err != nil {
				c.TB.Fatal(err)
			}
		}},
		{"another-name-on-the-token", ledger.ErrToken, "not valid", func(c *fixture, v *ledger.Ballot) { v.By.Name = bob }},
		{"another-role-on-the-token", ledger.ErrToken, "not valid", func(c *fixture, v *ledger.Ballot) {
			v.By = c.Caller(c.Token(bob, ledger.RoleAgent))
			v.By.Roles = []string{ledger.RoleApprover}
		}},
		{"no-such-token", ledger.ErrToken, "not valid", func(c *fixture, v *ledger.Ballot) { v.By.TokenID = "aaaaaaaaaaaaaaaa" }},
		{"no-such-run", ledger.ErrUnknown, "no run", func(c *fixture, v *ledger.Ballot) { v.Run = statestest.RunID }},
		{"hostile-run-id", ledger.ErrUnknown, `\u001b`, func(c *fixture, v *ledger.Ballot) { v.Run = "\x1b[2J" }},
		{"no-digest", ledger.ErrBallot, "digest", func(c *fixture, v *ledger.Ballot) { v.Binding = "" }},
		{"prefix-of-the-digest", ledger.ErrBallot, "digest", func(c *fixture, v *ledger.Ballot) { v.Binding = v.Binding[:20] }},
		{"another-digest", ledger.ErrBinding, string(other), func(c *fixture, v *ledger.Ballot) { v.Binding = other }},
		{"denial-without-reason", ledger.ErrBallot, "reason", func(c *fixture, v *ledger.Ballot) { v.Approve, v.Reason = false, "" }},
		{"denial-with-blank-reason", ledger.ErrBallot, "reason", func(c *fixture, v *ledger.Ballot) { v.Approve, v.Reason = false, " \t\u200b" }},
		{"reason-one-byte-too-long", ledger.ErrBallot, "1001", func(c *fixture, v *ledger.Ballot) {
			v.Reason = strings.Repeat("r", ledger.MaxReason+1)
		}},
		{"reason-not-text", ledger.ErrBallot, "UTF-8", func(c *fixture, v *ledger.Ballot) { v.Reason = "\xff" }},
		{"key-one-byte-too-long", ledger.ErrBallot, "256", func(c *fixture, v *ledger.Ballot) { v.Key = strings.Repeat("k", ledger.MaxKey+1) }},
		{"key-with-controls", ledger.ErrBallot, "key", func(c *fixture, v *ledger.Ballot) { v.Key = "a\nb" }},
		{"own-request", ledger.ErrEligible, "own request", func(c *fixture, v *ledger.Ballot) { v.By = c.Approver(carol) }},
		{"own-request-as-local-user", ledger.ErrEligible, "own request", func(c *fixture, v *ledger.Ballot) {
			q := c.HoldBy("local:"+strings.ToUpper(bob), ledgertest.Holding(1))
			v.Run, v.Binding, v.By = q.RunID, q.Binding, c.Approver(bob)
		}},
		{"none-of-the-roles", ledger.ErrEligible, "owners", func(c *fixture, v *ledger.Ballot) { v.By = c.Approver(dave) }},
		{"role-in-another-case", ledger.ErrEligible, "owners", func(c *fixture, v *ledger.Ballot) { v.By = c.Approver("BOB@example.com") }},
		{"twice", ledger.ErrVoted, "one vote", func(c *fixture, v *ledger.Ballot) { c.Cast(*v) }},
		{"twice-with-two-tokens", ledger.ErrVoted, "one vote", func(c *fixture, v *ledger.Ballot) {
			c.Cast(*v)
			v.By = c.Approver(alice)
		}},
		{"another-mind", ledger.ErrVoted, "(approve)", func(c *fixture, v *ledger.Ballot) {
			c.Cast(*v)
			v.Approve = false
		}},
		{"key-again-with-another-word", ledger.ErrKeyReused, "key", func(c *fixture, v *ledger.Ballot) {
			v.Key = "k1"
			c.Cast(*v)
			v.Approve = false
		}},
		{"key-again-with-another-reason", ledger.ErrKeyReused, "key", func(c *fixture, v *ledger.Ballot) {
			v.Key = "k1"
			c.Cast(*v)
			v.Reason = "as agreed."
		}},
		{"key-again-about-something-else", ledger.ErrKeyReused, "key", func(c *fixture, v *ledger.Ballot) {
			v.Key = "k1"
			c.Cast(*v)
			v.Binding = other
		}},
		{"denied-before", ledger.ErrDecided, "denied at 2026-11-21T09:00:00.000Z by " + bob, func(c *fixture, v *ledger.Ballot) {
			c.Cast(ledger.Ballot{Run: v.Run, Binding: v.Binding, By: c.Approver(bob), Reason: "not now"})
		}},
		{"approved-before", ledger.ErrDecided, "approved at 2026-11-21T09:00:00.000Z by " + bob, func(c *fixture, v *ledger.Ballot) {
			q := c.Hold(1)
			v.Run, v.Binding = q.RunID, q.Binding
			first := *v
			first.By = c.Approver(bob)
			c.Cast(first)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newFixture(t)
			v := ledgertest.Ballot(c.Hold(2), c.Approver(alice))
			tt.ballot(c, &v)
			before := c.Events(0)
			q, err := c.Vote(context.Background(), v)
			var refusal *ledger.Refusal
			if !errors.As(err, &refusal) || !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Vote() = %v, want [%s] … %s", err, tt.want.Code, tt.says)
			}
			if !cmp.Equal(q, ledger.RunRow{}) {
				t.Errorf("Vote() returns %+v with its refusal", q)
			}
			if after := c.Events(0); len(after) != len(before) {
				t.Errorf("a ballot that was refused left %d events", len(after)-len(before))
			}
		})
	}
}

// The ballot is in time one second before the expiry, and not at it. The expiry is recorded once.
func TestVoteExpiry(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration
		want  ledger.Status
	}{
		{"one-second-before", time.Hour - time.Second, ledger.Approved},
		{"at-the-expiry", time.Hour, ledger.Expired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newFixture(t)
			q := c.Hold(1)
			v := ledgertest.Ballot(q, c.Approver(alice))
			c.Clock.Add(tt.after)
			_, err := c.Vote(context.Background(), v)
			if late := tt.want == ledger.Expired; late != errors.Is(err, ledger.ErrExpired) || !late && err != nil {
				t.Errorf("Vote() = %v", err)
			}
			stands := c.Run(q.RunID)
			if stands.Status != tt.want {
				t.Errorf("the request is %s, want %s", stands.Status, tt.want)
			}
			if tt.want != ledger.Expired {
				return
			}
			if _, err := c.Vote(context.Background(), v); !errors.Is(err, ledger.ErrExpired) {
				t.Errorf("once more: Vote() = %v, want %s", err, ledger.RefusedExpired)
			}
			if again := c.Run(q.RunID); again.Entry != stands.Entry || len(c.Events(q.Entry+1)) != 2 { // the token, the expiry
				t.Errorf("the expiry was recorded more than once: %+v", c.Events(q.Entry+1))
			}
		})
	}
}

// Who is at work on an expired request ends it: nobody records anything in between.
func TestVoteLeavesAClaimedRequestAlone(t *testing.T) {
	c := newFixture(t)
	q := c.Hold(1)
	v := ledgertest.Ballot(q, c.Approver(alice))
	c.Clock.Add(time.Hour)
	check.NoError(t, c.Claim(context.Background(), q.RunID))
	claimed := c.Run(q.RunID)
	if _, err := c.Vote(context.Background(), v); !errors.Is(err, ledger.ErrExpired) {
		t.Errorf("Vote() = %v, want %s", err, ledger.RefusedExpired)
	}
	if diff := cmp.Diff(claimed, c.Run(q.RunID)); diff != "" {
		t.Errorf("the claimed request moved (-before +after):\n%s", diff)
	}
}

func TestVoteDecides(t *testing.T) {
	type word struct {
		by      string
		approve bool
		want    ledger.Status
	}
	tests := []struct {
		name   string
		quorum int
		words  []word
	}{
		{"one-of-one", 1, []word{{alice, true, ledger.Approved}}},
		{"two-of-two", 2, []word{{alice, true, ledger.Pending}, {bob, true, ledger.Approved}}},
		{"denied-at-once", 2, []word{{alice, false, ledger.Denied}}},
		{"denied-by-the-second", 2, []word{{alice, true, ledger.Pending}, {bob, false, ledger.Denied}}},
		{"too-few", 3, []word{{alice, true, ledger.Pending}, {bob, true, ledger.Pending}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newFixture(t)
			q := c.Hold(tt.quorum)
			agreed := 0
			for _, w := range tt.words {
				v := ledgertest.Ballot(q, c.Approver(w.by))
				if v.Approve = w.approve; w.approve {
					agreed++
				}
				got := c.Cast(v)
				if got.Status != w.want || got.Agreed != agreed {
					t.Errorf("after %s: %s, %d agreed; want %s, %d", w.by, got.Status, got.Agreed, w.want, agreed)
				}
				if diff := cmp.Diff(got, c.Run(q.RunID)); diff != "" {
					t.Errorf("Vote() returns something else than stands (-returned +stands):\n%s", diff)
				}
				if e := c.Events(got.Entry)[0]; e.By != w.by {
					t.Errorf("the event is by %q, want %q", e.By, w.by)
				}
			}
			c.judged(q, tt.words[len(tt.words)-1].want)
		})
	}
}

// judged compares how the request stands with what the machine's gate makes of the votes.
func (c *fixture) judged(q ledger.RunRow, want ledger.Status) {
	c.TB.Helper()
	cast := c.Votes(q.RunID)
	held := policy.Held{Actor: q.Actor, Approvers: q.Approvers, Binding: q.Binding, Expires: q.Expires, Quorum: q.Quorum}
	verdict := statestest.MustBundle(ledgertest.Holding(q.Quorum), nil).Agreed(&held, cast[len(cast)-1].At, cast)
	if verdict.Allows() != (want == ledger.Approved) || want == ledger.Denied && verdict.Code != policy.CodeApprovalDenied {
		c.TB.Errorf("the ledger says %s, the gate %+v", want, verdict)
	}
}

// The same ballot with the same key is answered as at first, whatever happened since, and recorded once.
func TestVoteIdempotency(t *testing.T) {
	c := newFixture(t)
	q := c.Hold(2)
	v := ledgertest.Ballot(q, c.Approver(alice))
	v.Key = "9d0a3c6e-6ab0-4f2e-a7a4-8c7d2f1b5e10"
	first := c.Cast(v)
	other := ledgertest.Ballot(q, c.Approver(bob))
	other.Key = v.Key // another person's key is another key
	if decided := c.Cast(other); decided.Status != ledger.Approved || first.Status != ledger.Pending {
		t.Fatalf("the statuses are %s and %s", first.Status, decided.Status)
	}
	events := len(c.Events(0))
	c.Clock.Add(2 * time.Hour) // the answer is the same even when the request has expired
	again := v
	again.By = c.Caller(c.Token(alice, ledger.RoleApprover)) // the person counts, not the token
	if diff := cmp.Diff(first, c.Cast(again)); diff != "" {
		t.Errorf("the answer changed (-first +again):\n%s", diff)
	}
	if n := len(c.Events(0)); n != events+1 { // the token's
		t.Errorf("%d events were added by a repetition", n-events-1)
	}
	if c.Run(q.RunID).Status != ledger.Approved {
		t.Error("a repetition moved the request")
	}
}
