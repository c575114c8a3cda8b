package ledger_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
)

// bot asks by a token.
const bot = "release-bot"

// token makes a token and returns it without its text.
func (d *fixture) token(name, role, expires string) ledger.Token {
	d.TB.Helper()
	_, made, err := d.CreateToken(context.Background(), root, name, role, expires)
	if err != nil {
		d.TB.Fatalf("CreateToken() = %v", err)
	}
	return made
}

func (d *fixture) revoke(id string) {
	d.TB.Helper()
	d.revokeAs(root, id)
}

func asksAs(name string) func(*statestest.Scenario) {
	return func(s *statestest.Scenario) { s.Request.Actor = name }
}

// Requester and approvers are checked again before the call: after a revocation, the call is not made.
func TestIdentityIsLookedAtAgain(t *testing.T) {
	const soon = "2026-11-21T09:31:00.000Z" // behind the vote, before the run expires
	for _, c := range []struct {
		name   string
		actor  string
		before func(*fixture)                // the run is asked for
		after  func(*fixture, ledger.Caller) // dora has agreed
		reason string                        // why nothing is called; empty: the call is made
	}{
		{name: "nobody-was-sent-away", actor: bot, before: func(d *fixture) { d.token(bot, ledger.RoleAgent, "") }},
		{
			name: "voter-revoked", actor: statestest.Actor, after: func(d *fixture, dora ledger.Caller) { d.revoke(dora.TokenID) },
			reason: "The token with which dora approved the call was revoked at " + inTime + ".",
		},
		{
			name: "voter-revoked-with-another-token-left", actor: statestest.Actor,
			after: func(d *fixture, dora ledger.Caller) {
				d.token(dora.Name, ledger.RoleApprover, "")
				d.revoke(dora.TokenID)
			},
			reason: "The token with which dora approved the call was revoked",
		},
		{
			name: "another-token-of-the-voter-revoked", actor: statestest.Actor,
			after: func(d *fixture, dora ledger.Caller) { d.revoke(d.token(dora.Name, ledger.RoleApprover, "").ID) },
		},
		{
			name: "voter-expired", actor: statestest.Actor,
			after: func(d *fixture, _ ledger.Caller) { d.Clock.Set(d.TB, "2026-11-21T09:45:00.000Z") },
		},
		{
			name: "asker-revoked", actor: bot, before: func(d *fixture) { d.token(bot, ledger.RoleAgent, "") },
			after:  func(d *fixture, _ ledger.Caller) { d.revoke(d.tokenOf(bot)) },
			reason: bot + " asked, and has no token any more that may ask for calls.",
		},
		{
			name: "asker-revoked-with-another-token-left", actor: bot, before: func(d *fixture) { d.token(bot, ledger.RoleAgent, "") },
			after: func(d *fixture, _ ledger.Caller) {
				d.revoke(d.tokenOf(bot))
				d.token(bot, ledger.RoleAgent, "")
			},
		},
		{
			name: "asker-revoked-and-may-only-look", actor: bot, before: func(d *fixture) { d.token(bot, ledger.RoleAgent, "") },
			after: func(d *fixture, _ ledger.Caller) {
				d.revoke(d.tokenOf(bot))
				d.token(bot, ledger.RoleAuditor, "")
			},
			reason: bot + " asked, and has no token any more",
		},
		{
			name: "asker-expired", actor: bot, before: func(d *fixture) { d.token(bot, ledger.RoleAgent, soon) },
			after: func(d *fixture, _ ledger.Caller) { d.Clock.Set(d.TB, soon) },
		},
		{name: "asker-is-a-user-of-this-machine", actor: statestest.Actor},
		{name: "asker-is-an-agent-without-a-token", actor: ledger.Anonymous},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, when := range []string{"before-it-is-taken-up", "as-the-call-leaves"} {
				t.Run(when, func(t *testing.T) {
					d := newFixture(t)
					if c.before != nil {
						c.before(d)
					}
					id, s := d.hold(asksAs(c.actor))
					d.Clock.Set(t, inTime)
					dora := callerOf(d.token("dora", ledger.RoleApprover, soon))
					d.vote(id, dora, true)
					w := world(s)
					if c.after != nil && when == "before-it-is-taken-up" {
						c.after(d, dora)
					} else if c.after != nil {
						w.Watch = func(_ *states.Run, r states.Recorder) states.Recorder {
							return beforeDispatch{r, func() { c.after(d, dora) }}
						}
					}
					d.wantsCall(id, s, w, c.reason)
				})
			}
		})
	}
}

// tokenOf is the id of the first token of a name.
func (d *fixture) tokenOf(name string) (id string) {
	d.TB.Helper()
	d.Inspect(func(r ledger.Reader) error {
		for k, err := range r.Tokens() {
			if err != nil || k.Name == name {
				id = k.ID
				return err
			}
		}
		return errors.New("nobody of that name has a token")
	})
	return id
}

// wantsCall takes an approved run up, and wants one call, or none for a reason.
func (d *fixture) wantsCall(id string, s *statestest.Scenario, w ledger.ResumeOptions, reason string) {
	d.TB.Helper()
	got, err := d.resume(id, w)
	if err != nil {
		d.TB.Fatalf("resume() = %v", err)
	}
	o := got.Outcome
	if reason == "" {
		if o.Code != "" || len(s.World.Calls) != 1 {
			d.TB.Errorf("resume() = %+v, %d calls, want one", o, len(s.World.Calls))
		}
	} else if o.Type != states.TypeBlocked || o.Code != policy.CodeApprovalMismatch || !strings.Contains(o.Reason, reason) || len(s.World.Calls) != 0 {
		d.TB.Errorf("resume() = %+v, %d calls, want none: %s", o, len(s.World.Calls), reason)
	}
	if q := d.Run(id); q.Ended == "" || (q.Sent == "") != (reason != "") {
		d.TB.Errorf("the request ended %q, sent %q", q.Ended, q.Sent)
	}
	d.trace(id, o, nil)
	d.sound()
}
