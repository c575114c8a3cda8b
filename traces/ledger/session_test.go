package ledger_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

func TestSessionEnds(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(t *testing.T, c *fixture, token, secret string)
		ends bool
	}{
		{"used-within-the-hour", func(t *testing.T, c *fixture, _, secret string) {
			c.Clock.Add(ledger.SessionIdle - time.Second)
			mustSession(t, c, secret, true)
			c.Clock.Add(ledger.SessionIdle - time.Second)
		}, false},
		{"idle", func(_ *testing.T, c *fixture, _, _ string) { c.Clock.Add(ledger.SessionIdle) }, true},
		{"looked-at-but-not-used", func(t *testing.T, c *fixture, _, secret string) {
			c.Clock.Add(ledger.SessionIdle - time.Second)
			mustSession(t, c, secret, false)
			c.Clock.Add(time.Second)
		}, true},
		{"after-twelve-hours", func(t *testing.T, c *fixture, _, secret string) {
			for range 13 {
				c.Clock.Add(ledger.SessionEnd / 13)
				mustSession(t, c, secret, true)
			}
			c.Clock.Add(ledger.SessionEnd / 13)
		}, true},
		{"signed-out", func(t *testing.T, c *fixture, _, secret string) {
			check.NoError(t, c.SignOut(context.Background(), secret))
		}, true},
		{"another-session-of-the-token-signed-out", func(t *testing.T, c *fixture, token, _ string) {
			other, err := c.SignIn(context.Background(), token)
			check.NoError(t, errors.Join(err, c.SignOut(context.Background(), other)))
		}, false},
		{"token-revoked", func(t *testing.T, c *fixture, token, _ string) {
			if _, err := c.RevokeToken(context.Background(), root, c.Caller(token).TokenID); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newFixture(t)
			q := c.Hold(1)
			token := c.Token(alice, ledger.RoleApprover)
			secret, err := c.SignIn(context.Background(), token)
			check.NoError(t, err)
			by := mustSession(t, c, secret, true)
			tc.do(t, c, token, secret)
			_, err = c.Session(context.Background(), secret, true)
			if ended := errors.Is(err, ledger.ErrSession); ended != tc.ends {
				t.Errorf("Session() = %v; want an end: %t", err, tc.ends)
			}
			if !tc.ends {
				return
			}
			if _, err := c.Vote(context.Background(), ledgertest.Ballot(q, by)); err == nil {
				t.Error("a caller of an ended session votes")
			}
		})
	}
}

// TestSecretsOfSessionsAreNotStored: the store has their digests. A link is no session, and a session no link.
func TestSecretsOfSessionsAreNotStored(t *testing.T) {
	ctx, c := context.Background(), newFixture(t)
	token := c.Token(alice, ledger.RoleAuditor)
	link, err := c.NewLink(ctx, c.Caller(token))
	check.NoError(t, err)
	secret, err := c.SignIn(ctx, token)
	check.NoError(t, err)
	for what, err := range map[string]error{"Session": second(c.Session(ctx, link, true)), "SignInByLink": second(c.SignInByLink(ctx, secret))} { // in any order
		if !errors.Is(err, ledger.ErrSession) {
			t.Errorf("%s() = %v, want ErrSession", what, err)
		}
	}
	c.Inspect(func(r ledger.Reader) error {
		for s, err := range r.Sessions() {
			if err != nil || s.Secret != ledger.SessionDigest(secret) && s.Secret != ledger.SessionDigest(link) {
				t.Errorf("the store has the session %+v, %v", s, err)
			}
		}
		return nil
	})
}

func TestOnlyReadersSignIn(t *testing.T) {
	ctx := context.Background()
	for _, role := range ledger.Roles() {
		c := newFixture(t)
		text, connects := c.Token(bob, role), role == ledger.RolePerson
		reads := role != ledger.RoleAgent && role != ledger.RoleHook && !connects
		_, err := c.SignIn(ctx, text)
		_, linkErr := c.NewLink(ctx, c.Caller(text))
		if _, err := c.SignIn(ctx, text, ledger.ActRead, ledger.ActConnect); (err == nil) != (reads || connects) {
			t.Errorf("%s: SignIn() = %v where people connect accounts", role, err)
		}
		if refused := !reads; errors.Is(err, ledger.ErrRole) != refused || errors.Is(linkErr, ledger.ErrRole) != refused {
			t.Errorf("%s: SignIn() = %v, NewLink() = %v", role, err, linkErr)
		}
	}
	if _, err := newFixture(t).NewLink(ctx, person(eve, ledger.RoleApprover)); !errors.Is(err, ledger.ErrRole) {
		t.Errorf("NewLink() of a person of an identity provider = %v", err)
	}
	if _, err := newFixture(t).SignIn(ctx, "pgfsm_"); !errors.Is(err, ledger.ErrToken) {
		t.Errorf("SignIn() = %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func mustSession(t *testing.T, c *fixture, secret string, used bool) ledger.Caller {
	t.Helper()
	who, err := c.Session(context.Background(), secret, used)
	if err != nil {
		t.Fatalf("Session() = %v", err)
	}
	return who
}

// TestFreshVotes: a policy with fresh takes votes only from sessions that began within that time.
func TestFreshVotes(t *testing.T) {
	fresh := ledgertest.Holding(1)
	fresh.Policy.Policies[0].Fresh = (5 * time.Minute).Milliseconds()
	for _, tc := range []struct {
		name    string
		content policy.Content
		session bool
		age     time.Duration
		want    error
	}{
		{"bearer", fresh, false, 0, ledger.ErrFresh},
		{"session", fresh, true, 5 * time.Minute, nil},
		{"older-session", fresh, true, 5*time.Minute + time.Second, ledger.ErrFresh},
		{"bearer-without-the-key", ledgertest.Holding(1), false, 0, nil},
		{"older-session-without-the-key", ledgertest.Holding(1), true, 30 * time.Minute, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newFixture(t)
			token := c.Token(alice, ledger.RoleApprover)
			q, by := c.HoldBy(carol, tc.content), c.Caller(token)
			if tc.session {
				secret, err := c.SignIn(context.Background(), token)
				check.NoError(t, err)
				by = mustSession(t, c, secret, true)
			}
			c.Clock.Add(tc.age)
			for _, approve := range []bool{true, false} {
				v := ledgertest.Ballot(q, by)
				v.Approve = approve
				if _, err := c.Vote(context.Background(), v); !errors.Is(err, tc.want) {
					t.Errorf("Vote() = %v, want %v", err, tc.want)
				}
				if tc.want == nil {
					return // it is decided
				}
			}
		})
	}
}
