package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

const (
	fay      = issuer + "#fay"
	pasted   = "pat-fay-1234567890"
	resource = "https://files.example.com/mcp"
)

// sealKeys are the keys of connections; the first seals.
func sealKeys(fill ...byte) (keys ledger.SealKeys) {
	for _, b := range fill {
		keys = append(keys, bytes.Repeat([]byte{b}, ledger.SealKeyBytes))
	}
	return keys
}

// connect connects a person to a server.
func (d *fixture) connect(by ledger.Caller, server, token string) ledger.Connection {
	d.TB.Helper()
	c, err := d.Connect(context.Background(), by, sealKeys(1),
		ledger.Connection{Server: server, Kind: ledger.ConnectionSecret, Resource: resource, Account: "fay-gh"}, token)
	check.NoError(d.TB, err)
	return c
}

// wants is what the configuration says of a person's connection.
func wants(person string) ledger.Connection {
	return ledger.Connection{Person: person, Server: "files", Kind: ledger.ConnectionSecret, Resource: resource}
}

// asksWith has an agent ask for fay, with a connection of hers.
func asksWith(c ledger.Connection) func(*statestest.Scenario) {
	return func(s *statestest.Scenario) {
		asksFor(fay)(s)
		s.Request.Kind, s.Request.Text, s.Request.Account = states.KindAgent, canonical.Text(statestest.GoodPlan), &states.Account{Connection: c.ID, Label: c.Account}
	}
}

// endings are what ends a connection of fay.
var endings = map[string]func(*fixture, string){
	"disconnect": func(d *fixture, server string) {
		check.NoError(d.TB, d.Disconnect(context.Background(), person(fay), server))
	},
	"reconnect": func(d *fixture, server string) { d.connect(person(fay), server, "pat-fay-0987654321") },
	"revoke": func(d *fixture, _ string) {
		_, err := d.RevokeConnections(context.Background(), root, fay, "")
		check.NoError(d.TB, err)
	},
	"lost": func(d *fixture, server string) {
		lost, err := d.LoseConnection(context.Background(), fay, server, d.connectionOf(fay, server).ID)
		check.NoError(d.TB, err)
		wantSame(d.TB, true, lost)
	},
}

func (d *fixture) connectionOf(person, server string) (c ledger.Connection) {
	d.TB.Helper()
	d.Inspect(func(r ledger.Reader) (err error) {
		c, err = r.Connection(person, server)
		return err
	})
	return c
}

// TestLostConnectionsEndInTheLog: what becomes lost ends once, so that every replica learns of it, and its credentials are gone. A row that is
// put back does not revive it.
func TestLostConnectionsEndInTheLog(t *testing.T) {
	for name, lose := range map[string]func(*fixture){ // in any order
		"expired": func(d *fixture) { endings["lost"](d, "files") },
		"invalid-grant": func(d *fixture) {
			_, _, err := d.RefreshConnection(t.Context(), sealKeys(1), d.connectionOf(fay, "files"), true, func([]byte) ([]byte, error) { return nil, ledger.ErrCredentialsLost })
			if !errors.Is(err, ledger.ErrCredentialsLost) {
				t.Errorf("RefreshConnection() = %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			c := d.authorize()
			lose(d)
			d.sound()
			var changes ledger.ConnectionChanges
			d.Inspect(func(r ledger.Reader) (err error) {
				changes, err = ledger.ReadConnectionChanges(r, c.Entry)
				return err
			})
			if now := d.connectionOf(fay, "files"); now.State != ledger.ConnectionLost || len(now.Sealed) != 0 || !changes.People[fay] || len(changes.Usable) != 0 {
				t.Errorf("the row is %+v, the changes %+v", now, changes)
			}
			check.NoError(t, d.Update(t.Context(), func(tx ledger.Tx) error { return tx.PutConnection(c) }))
			var fault *ledger.Fault
			if err := d.View(t.Context(), func(r ledger.Reader) error { return ledger.VerifyOpen(t.Context(), r) }); !errors.As(err, &fault) {
				t.Errorf("VerifyOpen() = %v", err)
			}
			c.State = ledger.ConnectionLost
			check.NoError(t, d.Update(t.Context(), func(tx ledger.Tx) error { return tx.PutConnection(c) }))
			endings["disconnect"](d, "files")
			wantSame(t, 1, d.count(ledger.ConnectionEnded))
			d.sound()
		})
	}
}

// TestRefusedConnectionsGoOn: a refusal of the server is shown until the next call is sent. It ends nothing.
func TestRefusedConnectionsGoOn(t *testing.T) {
	d := newFixture(t)
	c := d.connect(person(fay), serverOf(t), pasted)
	note := func(id string, asked ...string) ledger.Connection {
		t.Helper()
		check.NoError(t, d.NoteRefused(t.Context(), fay, c.Server, id, asked))
		return d.connectionOf(fay, c.Server)
	}
	wantSame(t, ledger.ConnectionReady, note("another").State)
	if got := note(c.ID, "gist"); got.State != ledger.ConnectionReady || !slices.Equal(got.Asked, []string{"gist"}) {
		t.Errorf("after a 403: %+v", got)
	}
	if got := note(c.ID); got.State != ledger.ConnectionRefused || !slices.Equal(got.Asked, []string{"gist"}) {
		t.Errorf("after a 401: %+v", got)
	}
	s := statestest.Find(t, "policy-allows")
	asksWith(c)(&s)
	if o, _, err := d.play(ledgertest.NewID(t), &s); err != nil || o.Effect != states.EffectDone {
		t.Errorf("play() = %+v, %v", o, err)
	}
	wantSame(t, ledger.ConnectionReady, d.connectionOf(fay, c.Server).State)
	wantSame(t, 0, d.count(ledger.ConnectionEnded))
	d.sound()
	endings["lost"](d, c.Server)
	wantSame(t, ledger.ConnectionLost, note(c.ID).State)
}

// A held call is not sent with a connection that ended before the commit that sends it.
func TestEndedConnectionsStopHeldCalls(t *testing.T) {
	for name, end := range endings { // in any order
		for _, when := range []string{"before-it-is-taken-up", "as-the-call-leaves"} {
			t.Run(name+"/"+when, func(t *testing.T) {
				d := newFixture(t)
				server := serverOf(t)
				id, s := d.hold(asksWith(d.connect(person(fay), server, pasted)))
				d.Clock.Set(t, inTime)
				d.vote(id, d.Approver("dora"), true)
				w := world(s)
				if when == "before-it-is-taken-up" {
					end(d, server)
				} else {
					w.Watch = func(_ *states.Run, r states.Recorder) states.Recorder {
						return beforeDispatch{r, func() { end(d.other(), server) }}
					}
				}
				if reason, err := d.whyNotCalled(id); err != nil || (reason == "") != (when == "as-the-call-leaves") {
					t.Errorf("WhyNotCalled() = %q, %v", reason, err)
				}
				got, err := d.resume(id, w)
				if err != nil || got.Outcome.Code != policy.CodeCredentialsChanged || len(s.World.Calls) != 0 || d.Run(id).Sent != "" {
					t.Errorf("resume() = %+v, %v, %d calls", got.Outcome, err, len(s.World.Calls))
				}
				d.sound()
			})
		}
	}
}

func (d *fixture) whyNotCalled(id string) (reason string, err error) {
	q := d.Run(id)
	err = d.View(context.Background(), func(r ledger.Reader) (err error) {
		reason, err = ledger.WhyNotCalled(r, &q)
		return err
	})
	return reason, err
}

// A call that no approver decides about is neither held nor sent with a connection that has ended.
func TestEndedConnectionsBeginNoCall(t *testing.T) {
	for name, end := range endings { // in any order
		for _, scenario := range []string{"policy-holds", "policy-allows"} {
			t.Run(name+"/"+scenario, func(t *testing.T) {
				d := newFixture(t)
				s, server := statestest.Find(t, scenario), serverOf(t)
				asksWith(d.connect(person(fay), server, pasted))(&s)
				end(d.other(), server)
				_, _, err := d.play(ledgertest.NewID(t), &s)
				if !errors.Is(err, ledger.ErrCredentials) || len(s.World.Calls) != 0 || len(d.runs()) != 0 {
					t.Errorf("play() = %v, %d calls, %d runs", err, len(s.World.Calls), len(d.runs()))
				}
			})
		}
	}
}

func serverOf(t *testing.T) string {
	t.Helper()
	plan, v := policy.ReadCall(canonical.Text(statestest.GoodPlan), policy.DefaultLimits())
	if !v.Allows() {
		t.Fatal(v.Reason)
	}
	return plan.Server
}

// A call is sent with the connection that it was requested with; the approval binds it.
func TestApprovalsBindTheConnection(t *testing.T) {
	d := newFixture(t)
	c := d.connect(person(fay), serverOf(t), pasted)
	id, s := d.hold(asksWith(c))
	other, _ := d.hold(asksFor(fay))
	if d.Run(id).Binding == d.Run(other).Binding {
		t.Error("calls with and without an account have one binding")
	}
	d.Clock.Set(t, inTime)
	d.vote(id, d.Approver("dora"), true)
	d.wantsCall(id, s, world(s), "")
	if used := d.connectionOf(fay, c.Server); used.Used <= c.Used || used.Made != c.Made || used.ID != c.ID {
		t.Errorf("the connection is %+v, was %+v", used, c)
	}
}

// A block, and the revocation of a person's last token, end all connections of the person in the same commit.
func TestConnectionsEndWithTheirPerson(t *testing.T) {
	d := newFixture(t)
	ctx := context.Background()
	d.connect(person(fay), "files", pasted)
	d.connect(person(fay), "wiki", pasted)
	d.connect(person(eve), "files", pasted)
	first, second := d.token("gus", ledger.RolePerson, ""), d.token("gus", ledger.RolePerson, "")
	d.token("gus", ledger.RolePerson, d.Clock.Now().Add(time.Minute).Format(policy.TimeForm))
	d.Clock.Add(time.Minute) // a token that has expired counts as none
	d.connect(ledger.Caller{TokenID: first.ID, Name: "gus", Roles: []string{ledger.RolePerson}}, "files", pasted)
	var ended []ledger.Connection
	d.OnEnded(func(all []ledger.Connection) { ended = append(ended, all...) })
	left := func() (all []string) {
		d.Inspect(func(r ledger.Reader) error {
			for c, err := range r.Connections() {
				if err != nil {
					return err
				}
				all = append(all, c.Person)
			}
			return nil
		})
		return all
	}
	d.block("fay")
	wantSame(t, []string{"gus", eve}, left())
	d.revoke(first.ID)
	wantSame(t, []string{"gus", eve}, left())
	d.revoke(second.ID)
	wantSame(t, []string{eve}, left())
	d.Clock.Add(48 * time.Hour)
	check.NoError(t, d.EndIdleConnections(ctx, 49*time.Hour))
	wantSame(t, []string{eve}, left())
	check.NoError(t, d.EndIdleConnections(ctx, 48*time.Hour))
	wantSame(t, 0, len(left()))
	wantSame(t, 4, d.count(ledger.ConnectionEnded))
	var names []string
	for _, c := range ended {
		if _, err := d.OpenCredentials(ctx, sealKeys(1), c); err != nil {
			t.Error(err)
		}
		names = append(names, c.Person+" "+c.Server)
	}
	wantSame(t, []string{fay + " files", fay + " wiki", "gus files", eve + " files"}, names)
	d.sound()
}

// Credentials open in the row that they were sealed for, and in no other.
func TestCredentialsOpenInTheirPlaceOnly(t *testing.T) {
	d := newFixture(t)
	ctx := context.Background()
	made := d.connect(person(fay), "files", pasted)
	c, token, err := d.FindConnection(ctx, sealKeys(1), wants(fay))
	if err != nil || token != pasted || c.ID != made.ID || bytes.Contains(made.Sealed, []byte(pasted)) {
		t.Fatalf("FindConnection() = %+v, %q, %v", c, token, err)
	}
	for name, change := range map[string]func(*ledger.Connection){ // in any order
		"kind":     func(c *ledger.Connection) { c.Kind = ledger.ConnectionOAuth },
		"issuer":   func(c *ledger.Connection) { c.Issuer = issuer },
		"client":   func(c *ledger.Connection) { c.Client = "app" },
		"resource": func(c *ledger.Connection) { c.Resource += "/v2" },
	} {
		want := wants(fay)
		if change(&want); want.Fits(&made) {
			t.Errorf("a connection with another %s fits", name)
		}
		if _, token, err := d.FindConnection(ctx, sealKeys(1), want); !errors.Is(err, ledger.ErrUnconnected) || token != "" {
			t.Errorf("FindConnection() = %q, %v with another %s", token, err, name)
		}
	}
	for name, change := range map[string]func(*ledger.Connection){ // in any order
		"person":     func(c *ledger.Connection) { c.Person = eve },
		"server":     func(c *ledger.Connection) { c.Server = "wiki" },
		"id":         func(c *ledger.Connection) { c.ID += "A" },
		"issuer":     func(c *ledger.Connection) { c.Issuer = issuer },
		"client":     func(c *ledger.Connection) { c.Client = "app" },
		"resource":   func(c *ledger.Connection) { c.Resource += "/v2" },
		"generation": func(c *ledger.Connection) { c.Generation++ },
		"key":        func(c *ledger.Connection) { c.Key = strings.Repeat("0", len(c.Key)) },
		"sealed":     func(c *ledger.Connection) { c.Sealed[len(c.Sealed)-1] ^= 1 },
	} {
		t.Run(name, func(t *testing.T) {
			moved := made
			moved.Sealed = slices.Clone(made.Sealed)
			change(&moved)
			check.NoError(t, d.Update(ctx, func(tx ledger.Tx) error { return tx.PutConnection(moved) }))
			if _, token, err := d.FindConnection(ctx, sealKeys(1), moved); !errors.Is(err, ledger.ErrSealed) || token != "" {
				t.Errorf("FindConnection() = %q, %v", token, err)
			}
		})
	}
	t.Run("another-log", func(t *testing.T) {
		other := newFixture(t)
		other.connect(person(eve), "files", pasted)
		check.NoError(t, other.Update(ctx, func(tx ledger.Tx) error { return tx.PutConnection(made) }))
		if _, token, err := other.FindConnection(ctx, sealKeys(1), wants(fay)); !errors.Is(err, ledger.ErrSealed) || token != "" {
			t.Errorf("FindConnection() = %q, %v", token, err)
		}
	})
}

// The first key seals and all open, so that a key can be replaced without a gap.
func TestSealKeysRotate(t *testing.T) {
	d := newFixture(t)
	ctx := context.Background()
	d.connect(person(fay), "files", pasted)
	opens := func(keys ledger.SealKeys, want error) {
		t.Helper()
		if _, token, err := d.FindConnection(ctx, keys, wants(fay)); !errors.Is(err, want) || (token == pasted) != (want == nil) {
			t.Errorf("FindConnection() = %q, %v, want %v", token, err, want)
		}
	}
	opens(sealKeys(2), ledger.ErrSealed)
	if _, err := d.ResealConnections(ctx, root, sealKeys(2)); !errors.Is(err, ledger.ErrSealed) {
		t.Errorf("ResealConnections() = %v without the old key", err)
	}
	opens(sealKeys(2, 1), nil)
	for _, want := range []int{1, 0} {
		n, err := d.ResealConnections(ctx, root, sealKeys(2, 1))
		check.NoError(t, err)
		wantSame(t, want, n)
	}
	opens(sealKeys(2), nil)
	opens(sealKeys(1), ledger.ErrSealed)
	d.sound()
}

func TestConnectionsAreRefused(t *testing.T) {
	d := newFixture(t)
	gus := d.token("gus", ledger.RoleAgent, "")
	d.block("eve")
	agent := person(app)
	agent.Identity.Kind = policy.ActorAgent
	good := ledger.Connection{Server: "files", Kind: ledger.ConnectionSecret, Resource: resource}
	for _, c := range []struct {
		name  string
		by    ledger.Caller
		with  func(*ledger.Connection)
		token string
		want  error
	}{
		{"agent-of-a-provider", agent, nil, pasted, ledger.ErrRole},
		{"token-of-an-agent", ledger.Caller{TokenID: gus.ID, Name: "gus", Roles: []string{ledger.RoleAgent}}, nil, pasted, nil},
		{"forged-role", ledger.Caller{TokenID: gus.ID, Name: "gus", Roles: []string{ledger.RolePerson}}, nil, pasted, ledger.ErrToken},
		{"user-of-the-machine", root, nil, pasted, nil},
		{"blocked", person(eve), nil, pasted, ledger.ErrBlocked},
		{"short-token", person(fay), nil, "1234567", ledger.ErrConnection},
		{"token-with-a-line-end", person(fay), nil, pasted + "\n", ledger.ErrConnection},
		{"long-token", person(fay), nil, strings.Repeat("x", ledger.MaxCredential+1), ledger.ErrConnection},
		{"label-that-deceives", person(fay), func(c *ledger.Connection) { c.Account = "fay\u202e" }, pasted, ledger.ErrConnection},
		{"no-server", person(fay), func(c *ledger.Connection) { c.Server = "" }, pasted, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			made := good
			if c.with != nil {
				c.with(&made)
			}
			_, err := d.Connect(context.Background(), c.by, sealKeys(1), made, c.token)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || strings.Contains(err.Error(), pasted) {
				t.Errorf("Connect() = %v, want %v", err, c.want)
			}
		})
	}
	if n := d.count(ledger.ConnectionMade); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

// Verify finds rows of connections that the log does not account for, and a rebuild drops them: a revoked connection does not come
// back, and none changes its person.
func TestVerifyHoldsConnectionsToTheLog(t *testing.T) {
	for name, change := range map[string]func(*fixture, ledger.Connection) ledger.Connection{ // in any order
		"revoked-row-put-back": func(d *fixture, c ledger.Connection) ledger.Connection {
			endings["revoke"](d, "files")
			return c
		},
		"row-of-a-blocked-person-put-back": func(d *fixture, c ledger.Connection) ledger.Connection {
			d.block("fay")
			return c
		},
		"replaced-row-put-back": func(d *fixture, c ledger.Connection) ledger.Connection {
			endings["reconnect"](d, "files")
			return c
		},
		"another-person": func(_ *fixture, c ledger.Connection) ledger.Connection { c.Person = eve; return c },
		"another-resource": func(_ *fixture, c ledger.Connection) ledger.Connection {
			c.Resource = "https://evil.example.com"
			return c
		},
		"another-label": func(_ *fixture, c ledger.Connection) ledger.Connection { c.Account = "root"; return c },
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			ctx := context.Background()
			forged := change(d, d.connect(person(fay), "files", pasted))
			d.sound()
			check.NoError(t, d.Update(ctx, func(tx ledger.Tx) error { return tx.PutConnection(forged) }))
			for what, verify := range map[string]func(r ledger.Reader) error{
				"Verify":     func(r ledger.Reader) error { _, err := ledger.Verify(ctx, r, ledger.VerifyOptions{}); return err },
				"VerifyOpen": func(r ledger.Reader) error { return ledger.VerifyOpen(ctx, r) },
			} {
				var fault *ledger.Fault
				if err := d.View(ctx, verify); !errors.As(err, &fault) || fault.Table != "connections" {
					t.Errorf("%s() = %v", what, err)
				}
			}
			check.NoError(t, d.Update(ctx, func(tx ledger.Tx) error {
				_, err := ledger.Rebuild(ctx, tx, tx)
				return err
			}))
			d.sound()
		})
	}
}

func wantSame(tb testing.TB, want, got any) {
	tb.Helper()
	if !reflect.DeepEqual(want, got) {
		tb.Errorf("got %v, want %v", got, want)
	}
}

// connects makes connections of both kinds, makes a call with one, and ends one.
func (d *fixture) connects(t *testing.T) {
	t.Helper()
	gus := d.token("gus", ledger.RolePerson, "")
	d.connect(ledger.Caller{TokenID: gus.ID, Name: "gus", Roles: []string{ledger.RolePerson}}, "wiki", pasted)
	s := statestest.Find(t, "policy-allows")
	asksWith(d.connect(person(fay), serverOf(t), pasted))(&s)
	if o, _, err := d.play(ledgertest.NewID(t), &s); err != nil || o.Effect != states.EffectDone {
		t.Fatalf("play() = %+v, %v", o, err)
	}
	endings["disconnect"](d, serverOf(t))
	d.authorize()
	check.NoError(t, d.RecordUnconnected(context.Background(), person(app, ledger.RoleAgent), "wiki"))
}

// An export has no credentials. In the ledger that it is moved to, nobody is connected, and people connect again.
func TestMovedLedgersHaveNoConnections(t *testing.T) {
	path := onDisk(t, func(d *fixture) {
		d.connect(person(fay), "files", pasted)
		d.connect(person(eve), "files", pasted)
		d.passes(1)
	})
	old := inFile(t, path)
	export := closedExport(t, old)
	check.NoError(t, old.Close())
	if bytes.Contains(export, []byte("sealed")) || bytes.Contains(export, []byte(pasted)) {
		t.Error("the export has credentials")
	}
	moved := ledgertest.NewStore(t)
	check.NoError(t, ledger.Import(t.Context(), moved, bytes.NewReader(export), importOptions(t)))
	d := openAfterwards(t, moved)
	d.sound()
	if _, _, err := d.FindConnection(t.Context(), sealKeys(1), wants(fay)); !errors.Is(err, ledger.ErrUnconnected) {
		t.Errorf("FindConnection() = %v", err)
	}
	d.connect(person(fay), "files", pasted)
	d.block("eve")
	d.sound()
}
