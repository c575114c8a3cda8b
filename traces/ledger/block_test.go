package ledger_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// An identity provider and its subjects.
const (
	issuer = "https://login.example.com/realms/corp"
	eve    = issuer + "#eve" // a person
	app    = issuer + "#app" // an agent
)

// person is a person of the provider, whose token is valid for an hour.
func person(name string, roles ...string) ledger.Caller {
	return ledger.Caller{
		Name: name, Roles: roles, Expires: "2026-11-21T10:00:00.000Z",
		Identity: &policy.Identity{Credential: &policy.Credential{Key: "k1"}, Kind: policy.ActorPerson, Client: "pgfsm-cli", Groups: &[]string{"owners", "staff"}},
	}
}

// asksFor has an agent of the provider ask, for a person if there is one. The group owners may decide.
func asksFor(onBehalfOf string) func(*statestest.Scenario) {
	return func(s *statestest.Scenario) {
		s.Content.Roles = slices.Clone(s.Content.Roles)
		for i := range s.Content.Roles {
			s.Content.Roles[i].Actors = append(slices.Clone(s.Content.Roles[i].Actors), "group:owners")
		}
		s.Request.Actor = app
		s.Request.Identity = &policy.Identity{Credential: &policy.Credential{Key: "k1"}, Kind: policy.ActorAgent, Client: "desk", OnBehalfOf: onBehalfOf}
	}
}

func (d *fixture) block(subject string) {
	d.TB.Helper()
	if err := d.BlockIdentity(context.Background(), root, issuer, subject); err != nil {
		d.TB.Fatalf("BlockIdentity(%q) = %v", subject, err)
	}
}

// Blocked reports whether a caller of this name is blocked.
func (d *fixture) Blocked(ctx context.Context, name string) (bool, error) {
	err := d.View(ctx, ledger.Caller{Name: name}.CheckNotBlocked)
	if errors.Is(err, ledger.ErrBlocked) {
		return true, nil
	}
	return false, err
}

func (d *fixture) unblock(subject string) {
	d.TB.Helper()
	if err := d.UnblockIdentity(context.Background(), root, issuer, subject); err != nil {
		d.TB.Fatalf("UnblockIdentity(%q) = %v", subject, err)
	}
}

// A call that waits is not made if somebody is blocked without whom it would not be made.
func TestBlockedIdentitiesStopCalls(t *testing.T) {
	for _, c := range []struct {
		name   string
		after  func(*fixture) // eve has approved
		reason string         // empty: the call is made
	}{
		{"nobody", func(*fixture) {}, ""},
		{"voter", func(d *fixture) { d.block("eve") }, eve + ", who approved the call, was blocked at "},
		{"requester", func(d *fixture) { d.block("app") }, app + ", who requested the call, was blocked at "},
		{"person-for-whom-it-was-asked", func(d *fixture) { d.block("fay") }, issuer + "#fay, for whom the call was requested, was blocked at "},
		{"somebody-else", func(d *fixture) { d.block("Eve") }, ""},
		{"unblocked-again", func(d *fixture) { d.block("eve"); d.unblock("eve") }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, when := range []string{"before-it-is-taken-up", "as-the-call-leaves"} {
				t.Run(when, func(t *testing.T) {
					d := newFixture(t)
					id, s := d.hold(asksFor(issuer + "#fay"))
					d.Clock.Set(t, inTime)
					d.vote(id, person(eve, ledger.RoleApprover), true)
					w := world(s)
					if when == "before-it-is-taken-up" {
						c.after(d)
					} else {
						w.Watch = func(_ *states.Run, r states.Recorder) states.Recorder {
							return beforeDispatch{r, func() { c.after(d) }}
						}
					}
					d.wantsCall(id, s, w, c.reason)
				})
			}
		})
	}
}

// A call that no person decides about is not recorded as held or sent if its requester is blocked.
func TestBlockedIdentitiesBeginNoCall(t *testing.T) {
	for _, c := range []struct{ name, scenario, blocked string }{
		{"held", "policy-holds", "app"}, {"sent", "policy-allows", "app"}, {"sent-for-a-blocked-person", "policy-allows", "fay"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			d.block(c.blocked)
			s := statestest.Find(t, c.scenario)
			asksFor(issuer + "#fay")(&s)
			_, _, err := d.play(ledgertest.NewID(t), &s)
			if !errors.Is(err, ledger.ErrBlocked) || len(s.World.Calls) != 0 || len(d.runs()) != 0 {
				t.Errorf("play() = %v, %d calls, %d runs", err, len(s.World.Calls), len(d.runs()))
			}
		})
	}
}

func TestPeopleOfProvidersVote(t *testing.T) {
	content := func() policy.Content {
		c := ledgertest.Holding(2)
		c.Roles = []policy.Role{{Role: "owners", Actors: []string{"group:owners", alice}}}
		c.Identity = &policy.IdentityRules{Same: [][]string{{alice, eve}, {"dora", issuer + "#dora"}}}
		return c
	}
	for _, c := range []struct {
		name   string
		change func(*fixture, *ledger.Ballot, *states.Request)
		want   error // nil: the vote counts
	}{
		{"as-it-is", func(*fixture, *ledger.Ballot, *states.Request) {}, nil},
		{"no-role", func(_ *fixture, v *ledger.Ballot, _ *states.Request) { v.By.Roles = nil }, ledger.ErrRole},
		{"auditor", func(_ *fixture, v *ledger.Ballot, _ *states.Request) { v.By.Roles = []string{ledger.RoleAuditor} }, ledger.ErrRole},
		{"auditor-too", func(_ *fixture, v *ledger.Ballot, _ *states.Request) {
			v.By.Roles = []string{ledger.RoleAuditor, ledger.RoleApprover}
		}, nil},
		{"admin-too", func(_ *fixture, v *ledger.Ballot, _ *states.Request) {
			v.By.Roles = []string{ledger.RoleApprover, ledger.RoleAdmin}
		}, ledger.ErrRole},
		{"agent", func(_ *fixture, v *ledger.Ballot, _ *states.Request) { v.By.Identity.Kind = policy.ActorAgent }, ledger.ErrRole},
		{"nothing-known", func(_ *fixture, v *ledger.Ballot, _ *states.Request) { v.By.Identity = nil }, ledger.ErrRole},
		{"blocked", func(d *fixture, _ *ledger.Ballot, _ *states.Request) { d.block("eve") }, ledger.ErrBlocked},
		{"last-second-of-the-token", func(d *fixture, _ *ledger.Ballot, _ *states.Request) { d.Clock.Set(d.TB, "2026-11-21T09:59:59.000Z") }, nil},
		{"token-expired", func(_ *fixture, v *ledger.Ballot, _ *states.Request) { v.By.Expires = statestest.At }, ledger.ErrToken},
		{"token-that-ends-never", func(_ *fixture, v *ledger.Ballot, _ *states.Request) { v.By.Expires = "" }, ledger.ErrToken},
		{"other-groups", func(_ *fixture, v *ledger.Ballot, _ *states.Request) { v.By.Identity.Groups = &[]string{"staff"} }, ledger.ErrRole},
		{"unknown-groups", func(_ *fixture, v *ledger.Ballot, _ *states.Request) { v.By.Identity.Groups = nil }, ledger.ErrRole},
		{"own-request", func(_ *fixture, _ *ledger.Ballot, r *states.Request) { r.Actor = eve }, ledger.ErrEligible},
		{"own-request-through-an-agent", func(_ *fixture, _ *ledger.Ballot, r *states.Request) { r.Identity.OnBehalfOf = eve }, ledger.ErrEligible},
		{"own-request-under-another-name", func(d *fixture, v *ledger.Ballot, r *states.Request) {
			v.By.Name, r.Identity.OnBehalfOf = issuer+"#dora", eve
			r.Actor = d.token("dora", ledger.RoleAgent, "").Name
		}, ledger.ErrEligible},
		{"voted-under-another-name", func(d *fixture, v *ledger.Ballot, _ *states.Request) {
			q := d.Run(v.Run)
			d.Cast(ledgertest.Ballot(q, d.Approver(alice)))
		}, ledger.ErrVoted},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			v := ledger.Ballot{By: person(eve, ledger.RoleApprover), Approve: true}
			asked := states.Request{
				Actor: app, At: statestest.At, Kind: states.KindAsk, Text: canonical.Text(statestest.Question), Identity: &policy.Identity{Credential: &policy.Credential{Key: "k1"}, Kind: policy.ActorAgent},
			}
			if strings.HasPrefix(c.name, "own-request") { // the others change what happens after the call was held
				c.change(d, &v, &asked)
			}
			q := d.HoldRequest(asked, content())
			v.Run, v.Binding = q.RunID, q.Binding
			if !strings.HasPrefix(c.name, "own-request") {
				c.change(d, &v, &asked)
			}
			_, err := d.Vote(context.Background(), v)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Fatalf("Vote() = %v, want %v", err, c.want)
			}
			if cast := d.Votes(q.RunID); c.want == nil && (len(cast) != 1 || !slices.Equal(cast[0].Groups, []string{"owners"})) {
				t.Errorf("the votes are %+v; want one, by the group owners", cast)
			}
			d.sound()
		})
	}
}

func TestBlocksAreRefused(t *testing.T) {
	d := newFixture(t)
	ctx := context.Background()
	d.block("eve")
	d.block("fay")
	d.unblock("fay")
	for _, c := range []struct {
		name string
		do   func() error
		want error
		says string
	}{
		{"twice", func() error { return d.BlockIdentity(ctx, root, issuer, "eve") }, ledger.ErrBlock, "blocked already"},
		{"not-blocked", func() error { return d.UnblockIdentity(ctx, root, issuer, "bob") }, ledger.ErrBlock, "is not blocked"},
		{"unblocked-twice", func() error { return d.UnblockIdentity(ctx, root, issuer, "fay") }, ledger.ErrBlock, "is not blocked"},
		{"no-url", func() error { return d.BlockIdentity(ctx, root, "corp", "x") }, ledger.ErrBlock, "not the URL"},
		{"fragment", func() error { return d.BlockIdentity(ctx, root, issuer+"#a", "x") }, ledger.ErrBlock, "not the URL"},
		{"no-subject", func() error { return d.BlockIdentity(ctx, root, issuer, "") }, ledger.ErrBlock, "1 to 255"},
		{"subject-with-a-space", func() error { return d.BlockIdentity(ctx, root, issuer, "a b") }, ledger.ErrBlock, "1 to 255"},
		{"subject-too-long", func() error { return d.BlockIdentity(ctx, root, issuer, strings.Repeat("s", 256)) }, ledger.ErrBlock, "1 to 255"},
		{"by-an-approver", func() error { return d.BlockIdentity(ctx, d.Approver(alice), issuer, "x") }, ledger.ErrRole, "admin"},
		{"by-a-person-who-approves", func() error {
			return d.BlockIdentity(ctx, person(issuer+"#gil", ledger.RoleApprover), issuer, "x")
		}, ledger.ErrRole, "identity.may"},
		{"by-a-blocked-admin", func() error { return d.BlockIdentity(ctx, person(eve, ledger.RoleAdmin), issuer, "x") }, ledger.ErrBlocked, "blocked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.do(); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v, want %v: %s", err, c.want, c.says)
			}
		})
	}
	if err := d.BlockIdentity(ctx, person(issuer+"#gil", ledger.RoleAdmin), issuer, "hal"); err != nil {
		t.Errorf("a person who administers: %v", err)
	}
	for name, want := range map[string]bool{eve: true, issuer + "#fay": false, issuer + "#hal": true, issuer + "#EVE": false, "eve": false, "": false,
		"https://login.example.net/realms/corp#eve": false, issuer + "orate#eve": false, issuer + "/#eve": false, eve + "#eve": false} { // in any order
		if is, err := d.Blocked(ctx, name); is != want || err != nil {
			t.Errorf("Blocked(%q) = %t, %v", name, is, err)
		}
	}
}

// Another user or client of the same agent neither gets nor withdraws what the first one asked for.
func TestRequestsOfOneAgentAreApart(t *testing.T) {
	d := newFixture(t)
	id, _ := d.hold(asksFor(eve))
	q := d.Run(id)
	if q.OnBehalfOf != eve {
		t.Fatalf("OnBehalfOf = %q", q.OnBehalfOf)
	}
	by := ledger.Caller{Name: app, Roles: []string{ledger.RoleAgent}, Identity: &policy.Identity{Credential: &policy.Credential{Key: "k1"}, Client: "desk", OnBehalfOf: issuer + "#fay"}}
	if err := d.Withdraw(context.Background(), id, by); !errors.Is(err, ledger.ErrUnknown) || by.IsRequester(&q) {
		t.Errorf("Withdraw() for another person = %v", err)
	}
	by.Identity = nil
	if err := d.Withdraw(context.Background(), id, by); !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("Withdraw() for nobody = %v", err)
	}
	by.Identity = &policy.Identity{Credential: &policy.Credential{Key: "k1"}, Client: "app", OnBehalfOf: eve}
	if err := d.Withdraw(context.Background(), id, by); !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("Withdraw() by another client = %v", err)
	}
	by.Identity = &policy.Identity{Credential: &policy.Credential{Key: "k1"}, Client: "desk", OnBehalfOf: eve}
	d.block("eve")
	if err := d.Withdraw(context.Background(), id, by); !errors.Is(err, ledger.ErrBlocked) {
		t.Errorf("Withdraw() for a blocked person = %v", err)
	}
	d.unblock("eve")
	if err := d.Withdraw(context.Background(), id, by); err != nil {
		t.Errorf("Withdraw() = %v", err)
	}
	d.sound()
}

func TestSessionsOfPeopleOfProviders(t *testing.T) {
	ctx := context.Background()
	signedIn := time.Date(2026, 11, 21, 8, 50, 0, 0, time.UTC) // the clock says 9:00
	for _, c := range []struct {
		name  string
		auth  time.Time
		after time.Duration
		fresh bool
	}{
		{"within-the-time", signedIn, 5 * time.Minute, true},
		{"a-second-too-late", signedIn, 5*time.Minute + time.Second, false},
		{"unknown-time", time.Time{}, 0, false},
		{"provider-is-ahead", signedIn.Add(time.Hour), 15*time.Minute + time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			secret, err := d.SignInAs(ctx, person(eve, ledger.RoleApprover), c.auth)
			check.NoError(t, err)
			d.Clock.Add(c.after)
			who := mustSession(t, d, secret, true)
			want := person(eve)
			want.Session, want.Expires = ledger.SessionDigest(secret), ""
			if diff := cmp.Diff(want, who); diff != "" {
				t.Errorf("Session() (-want +got):\n%s", diff)
			}
			d.Inspect(func(r ledger.Reader) error {
				err := who.CheckFresh(r, int64(15*time.Minute/time.Millisecond), d.Clock.Now().Format(policy.TimeForm))
				if fresh := err == nil; fresh != c.fresh || err != nil && !errors.Is(err, ledger.ErrFresh) {
					t.Errorf("Fresh() = %v", err)
				}
				return nil
			})
			d.block("eve")
			if _, err := d.Session(ctx, secret, true); !errors.Is(err, ledger.ErrSession) {
				t.Errorf("a blocked person's Session() = %v", err)
			}
			if _, err := d.SignInAs(ctx, person(eve, ledger.RoleApprover), c.auth); !errors.Is(err, ledger.ErrBlocked) {
				t.Errorf("a blocked person's SignInAs() = %v", err)
			}
		})
	}
}

func TestRefusedAccessIsBounded(t *testing.T) {
	d := newFixture(t)
	refuse := func(actor, scope string) {
		t.Helper()
		check.NoError(t, d.RecordRefusedAccess(context.Background(), actor, "/mcp", scope))
	}
	for range 3 {
		refuse(app, "mcp:call")
	}
	refuse(app, "mcp:read")
	refuse(issuer+"#other", "mcp:call")
	d.Clock.Add(time.Minute)
	refuse(app, "mcp:call")
	if n := d.count(ledger.AccessRefused); n != 4 {
		t.Errorf("%d entries, want 4", n)
	}
	for range 300 {
		refuse(app, ledgertest.NewID(t))
	}
	if n := d.count(ledger.AccessRefused); n != 4+255 {
		t.Errorf("%d entries, want %d", n, 4+255)
	}
	if err := d.RecordRefusedAccess(context.Background(), "local:alice", "/mcp", "mcp:call"); err == nil {
		t.Error("a user of the operating system lacks a scope")
	}
	d.sound()
}

func (d *fixture) count(kind ledger.Type) (n int) {
	for _, e := range d.Events(0) {
		if e.Type == kind {
			n++
		}
	}
	return n
}

// TestVerifyJudgesBlocks: a ledger that was written anew as a whole tells of nothing that a blocked subject could not do.
func TestVerifyJudgesBlocks(t *testing.T) {
	blocked := func(t *testing.T, all []ledger.Event, before ledger.Type, subject string) []ledger.Event {
		i := lastOf(t, all, before)
		return slices.Insert(all, i, ledger.Event{
			Type: ledger.IdentityBlocked, At: all[i].At, By: root.Name,
			Payload: []byte(`{"issuer":"` + issuer + `","subject":"` + subject + `","type":"identity.blocked"}`),
		})
	}
	// For one entry only: the later ones of the run would be wrong, too.
	meanwhile := func(kind ledger.Type, subject string) edit {
		return func(t *testing.T, all []ledger.Event) []ledger.Event {
			all = blocked(t, all, kind, subject)
			i := lastOf(t, all, kind)
			ends := all[i-1]
			ends.Type, ends.Index = ledger.IdentityUnblocked, 1001
			ends.Payload = []byte(strings.Replace(string(ends.Payload), "identity.blocked", "identity.unblocked", 1))
			return slices.Insert(all, i+1, ends)
		}
	}
	inserts := func(before ledger.Type, subject string) edit {
		return func(t *testing.T, all []ledger.Event) []ledger.Event { return blocked(t, all, before, subject) }
	}
	again := func(kind ledger.Type) edit { // in an entry of its own
		return func(t *testing.T, all []ledger.Event) []ledger.Event {
			i := lastOf(t, all, kind)
			one := all[i]
			one.Index = 1000
			return slices.Insert(all, i+1, one)
		}
	}
	d := newFixture(t)
	d.block("zoe")
	d.unblock("zoe")
	err := d.RecordPassage(context.Background(), ledger.Passage{
		By: ledger.Caller{Name: app, Roles: []string{ledger.RoleAgent}}, Server: "files", Direction: ledger.ToServer, Method: "ping",
	})
	check.NoError(t, err)
	id, s := d.hold(asksFor(issuer + "#fay"))
	d.Clock.Set(t, inTime)
	d.vote(id, person(eve, ledger.RoleApprover), true)
	if _, err := d.resume(id, world(s)); err != nil {
		t.Fatal(err)
	}
	d.forge(t, []forgery{
		{"nothing-changed", unedited, ""},
		{"vote-of-a-blocked-person", meanwhile(ledger.ApprovalApproved, "eve"), eve + " was blocked then"},
		{"passage-of-a-blocked-agent", meanwhile(ledger.MCPPassed, "app"), app + " was blocked then"},
		{"call-of-a-blocked-agent", inserts(ledger.ProxySent, "app"), app + " was blocked then"},
		{"call-for-a-blocked-person", inserts(ledger.ProxySent, "fay"), "#fay was blocked then"},
		{"call-by-a-blocked-vote", inserts(ledger.ProxySent, "eve"), eve + " was blocked then"},
		{"blocked-twice", again(ledger.IdentityBlocked), "blocked twice"},
		{"unblocked-twice", again(ledger.IdentityUnblocked), "unblocked without a block"},
		{"no-subject", edits(ledger.IdentityUnblocked, `"zoe"`, `""`), "1 to 255"},
		{"vote-without-a-name", changes(ledger.ApprovalApproved, func(e *ledger.Event) { e.By = "eve" }), "without a token"},
		{"vote-of-the-person-for-whom-it-was-asked", changes(ledger.ApprovalApproved, func(e *ledger.Event) { e.By = issuer + "#FAY" }), "one's own request"},
	}...)
}

// TestVerifyReadsTheBundle: who is one person, and which groups have a role, is in the bundle of the run.
func TestVerifyReadsTheBundle(t *testing.T) {
	d := newFixture(t)
	fay, eva := issuer+"#fay", issuer+"#eva"
	id, _ := d.hold(func(s *statestest.Scenario) {
		asksFor(fay)(s)
		s.Content.Identity = &policy.IdentityRules{Same: [][]string{{app, "robot"}, {fay, "local:fay"}, {eve, eva}}}
		policies := slices.Clone(s.Content.Policy.Policies)
		policies[0].Quorum = 2
		s.Content.Policy = statestest.Policies(policies...)
	})
	d.vote(id, person(eve, ledger.RoleApprover), true)
	by := func(name string) edit {
		return changes(ledger.ApprovalApproved, func(e *ledger.Event) { e.By = name })
	}
	d.forge(t, []forgery{
		{"nothing-changed", unedited, ""},
		{"other-name-of-the-agent", by("robot"), "one's own request"},
		{"other-name-of-the-person-for-whom-it-was-asked", by("local:fay"), "one's own request"},
		{"second-vote-by-the-other-name", func(t *testing.T, all []ledger.Event) []ledger.Event {
			again := all[lastOf(t, all, ledger.ApprovalApproved)]
			again.By = eva
			return append(all, again)
		}, "a second vote of one person"},
		{"no-group", edits(ledger.ApprovalApproved, `"groups":["owners"],`, ""), "none of the roles"},
		{"another-group", edits(ledger.ApprovalApproved, `"owners"`, `"staff"`), "none of the roles"},
		{"group-of-no-role", edits(ledger.ApprovalApproved, `"owners"`, `"owners","staff"`), "groups on which it does not depend"},
	}...)
}

// Rows of blocks are compared with their events.
func TestRowsOfBlocksFollowTheirEvents(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(ledger.Tx) error
	}{
		{"missing", func(tx ledger.Tx) error { return tx.DropBlock(eve) }},
		{"of-no-event", func(tx ledger.Tx) error { return tx.PutBlock(ledger.Block{Name: app}) }},
		{"of-another-time", func(tx ledger.Tx) error {
			b, err := tx.Block(eve)
			b.Since = "2026-11-20T00:00:00.000Z"
			return errors.Join(err, tx.PutBlock(b))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			d.block("eve")
			ctx, store := context.Background(), d.Store
			check.NoError(t, store.Update(ctx, c.change))
			d.Inspect(func(r ledger.Reader) error {
				var fault *ledger.Fault
				for what, err := range map[string]error{"Verify": second(ledger.Verify(ctx, r, ledger.VerifyOptions{})), "VerifyOpen": ledger.VerifyOpen(ctx, r)} { // in any order
					if !errors.As(err, &fault) || fault.Table != "blocks" {
						t.Errorf("%s() = %v, want a fault of blocks", what, err)
					}
				}
				return nil
			})
			err := store.Update(ctx, func(tx ledger.Tx) error { return second(ledger.Rebuild(ctx, tx, tx)) })
			check.NoError(t, err)
			ledgertest.Verify(t, store, nil)
		})
	}
}
