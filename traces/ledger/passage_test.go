package ledger_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
)

func TestPassIsRecorded(t *testing.T) {
	d := newFixture(t)
	d.passing()
	token := d.tokenOf("worker-1")
	digest := canonical.Sum("mcp params", []byte("{}"))
	want := []string{
		`worker-1 {"direction":"to_server","method":"resources/read","params":"` + string(digest) + `","server":"files","token":"` + token + `","type":"mcp.passed"}`,
		`anonymous {"direction":"to_server","method":"ping","params":"","server":"files","token":"","type":"mcp.passed"}`,
		`local:alice {"direction":"to_client","method":"notifications/message","params":"","server":"mail","token":"","type":"mcp.passed"}`,
		`worker-1 {"direction":"to_client","method":"roots/list","params":"","server":"files","token":"` + token + `","type":"mcp.passed"}`,
	}
	var got []string
	d.Inspect(func(r ledger.Reader) error {
		for e, err := range ledger.Events(r, 0) {
			if err != nil {
				return err
			}
			if e.Type == ledger.MCPPassed {
				got = append(got, e.By+" "+string(e.Payload))
			}
		}
		return nil
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what passed (-want +got):\n%s", diff)
	}
	if report, err := d.checked(ledger.VerifyOptions{}); err != nil || report.Entries != 6 || report.Requests != 0 {
		t.Errorf("Verify() = %+v, %v", report, err)
	}
}

// TestPassRefuses: what is refused leaves nothing, and must not pass.
func TestPassRefuses(t *testing.T) {
	long := func(n int) string { return strings.Repeat("m", n) }
	for _, c := range []struct {
		name   string
		change func(*fixture, *ledger.Passage)
		want   error // nil: it passes
	}{
		{"as-it-is", func(*fixture, *ledger.Passage) {}, nil},
		{"no-direction", func(_ *fixture, p *ledger.Passage) { p.Direction = "" }, ledger.ErrPassage},
		{"another-direction", func(_ *fixture, p *ledger.Passage) { p.Direction = "to_nobody" }, ledger.ErrPassage},
		{"no-method", func(_ *fixture, p *ledger.Passage) { p.Method = "" }, ledger.ErrPassage},
		{"longest-method", func(_ *fixture, p *ledger.Passage) { p.Method = long(ledger.MaxMethod) }, nil},
		{"method-one-byte-too-long", func(_ *fixture, p *ledger.Passage) { p.Method = long(ledger.MaxMethod + 1) }, ledger.ErrPassage},
		{"method-not-utf-8", func(_ *fixture, p *ledger.Passage) { p.Method = "a\xff" }, ledger.ErrPassage},
		{"no-server", func(_ *fixture, p *ledger.Passage) { p.Server = "" }, ledger.ErrPassage},
		{"longest-server", func(_ *fixture, p *ledger.Passage) { p.Server = long(ledger.MaxServerName) }, nil},
		{"server-one-byte-too-long", func(_ *fixture, p *ledger.Passage) { p.Server = long(ledger.MaxServerName + 1) }, ledger.ErrPassage},
		{"server-not-utf-8", func(_ *fixture, p *ledger.Passage) { p.Server = "\xff" }, ledger.ErrPassage},
		{"digest-that-is-none", func(_ *fixture, p *ledger.Passage) { p.Digest = "sha256:0" }, ledger.ErrPassage},
		{"nobody", func(_ *fixture, p *ledger.Passage) { *p = ledger.Passage{} }, ledger.ErrPassage},
		{"name-without-its-token", func(_ *fixture, p *ledger.Passage) { p.By.TokenID = "" }, ledger.ErrPassage},
		{"nearly-local", func(_ *fixture, p *ledger.Passage) { p.By.Name, p.By.TokenID = "Local:alice", "" }, ledger.ErrPassage},
		{"nearly-anonymous", func(_ *fixture, p *ledger.Passage) { p.By.Name, p.By.TokenID = "Anonymous", "" }, ledger.ErrPassage},
		{"anonymous-with-a-token", func(_ *fixture, p *ledger.Passage) { p.By.Name = ledger.Anonymous }, ledger.ErrPassage},
		{"local-with-a-token", func(_ *fixture, p *ledger.Passage) { p.By.Name = "local:alice" }, ledger.ErrPassage},
		{"token-of-nobody", func(_ *fixture, p *ledger.Passage) { p.By.TokenID = "aaaa" }, ledger.ErrToken},
		{"token-of-another", func(d *fixture, p *ledger.Passage) { p.By.TokenID = d.token("worker-2", ledger.RoleAgent, "").ID }, ledger.ErrToken},
		{"token-for-something-else", func(d *fixture, p *ledger.Passage) {
			made := d.token("dora", ledger.RoleApprover, "")
			p.By.Name, p.By.TokenID = made.Name, made.ID
		}, ledger.ErrToken},
		{"revoked", func(d *fixture, p *ledger.Passage) { d.revoke(p.By.TokenID) }, ledger.ErrToken},
		{"revoked-by-another-process", func(d *fixture, p *ledger.Passage) { d.other().revoke(p.By.TokenID) }, ledger.ErrToken},
		{"a-second-before-its-expiry", func(d *fixture, _ *ledger.Passage) { d.Clock.Set(d.TB, "2026-11-30T23:59:59.000Z") }, nil},
		{"at-its-expiry", func(d *fixture, _ *ledger.Passage) { d.Clock.Set(d.TB, "2026-12-01T00:00:00.000Z") }, ledger.ErrToken},
		{"clock-set-back", func(d *fixture, _ *ledger.Passage) { d.Clock.Set(d.TB, "2026-11-21T08:58:59.000Z") }, ledger.ErrClockBack},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			made := d.token("worker-1", ledger.RoleAgent, "2026-12-01T00:00:00.000Z")
			p := ledger.Passage{
				By: agent(made.Name, made.ID), Server: "files", Direction: ledger.ToServer, Method: "ping", Digest: ledger.ParamsDigest([]byte("{}")),
			}
			c.change(d, &p)
			before := d.checkpoint()
			err := d.RecordPassage(context.Background(), p)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("Pass() = %v, want %v", err, c.want)
			}
			if recorded := d.checkpoint() != before; recorded != (c.want == nil) {
				t.Errorf("recorded: %t", recorded)
			}
			d.sound()
		})
	}
}

// TestVerifyJudgesPassages: a ledger that was written anew as a whole cannot tell of a message that nobody could have sent.
func TestVerifyJudgesPassages(t *testing.T) {
	passedBy := func(e *ledger.Event) bool { return e.Type == ledger.MCPPassed && e.By == "worker-1" }
	for _, f := range []forgery{
		{"nothing-changed", unedited, ""},
		{"another-direction", edits(ledger.MCPPassed, `"to_client"`, `"to_nobody"`), "neither to_server"},
		{"no-method", edits(ledger.MCPPassed, `"roots/list"`, `""`), "its method"},
		{"no-server", edits(ledger.MCPPassed, `"files"`, `""`), "its server"},
		{"digest-that-is-none", edits(ledger.MCPPassed, `"params":""`, `"params":"x"`), "its params"},
		{"of-a-run", changes(ledger.MCPPassed, func(e *ledger.Event) { e.RunID = statestest.RunID }), "is about no run"},
		{"another-name-of-the-token", changes(ledger.MCPPassed, func(e *ledger.Event) { e.By = "worker-2" }), "is not one of worker-2"},
		{"name-of-nobody", func(_ *testing.T, all []ledger.Event) []ledger.Event {
			for i := range all {
				if passedBy(&all[i]) {
					all[i].By = "worker-2"
				}
			}
			return all
		}, "is not one of worker"},
		{"anonymous-with-a-token", changes(ledger.MCPPassed, func(e *ledger.Event) { e.By = ledger.Anonymous }), "has its name"},
		{"name-without-a-token", func(t *testing.T, all []ledger.Event) []ledger.Event {
			e := &all[lastOf(t, all, ledger.MCPPassed)]
			e.Payload = []byte(strings.Replace(string(e.Payload), member(t, e.Payload, "token"), `""`, 1))
			return all
		}, "no name of their own"},
		{"unknown-token", func(t *testing.T, all []ledger.Event) []ledger.Event {
			e := &all[lastOf(t, all, ledger.MCPPassed)]
			e.Payload = []byte(strings.Replace(string(e.Payload), member(t, e.Payload, "token"), `"aaaa"`, 1))
			return all
		}, "is not one of worker"},
		{"token-of-another-role", edits(ledger.TokenCreated, `"agent"`, `"auditor"`), "is not one of worker"},
		{"token-made-afterwards", func(t *testing.T, all []ledger.Event) []ledger.Event {
			i := lastOf(t, all, ledger.TokenCreated)
			late := all[i]
			return append(slices.Delete(all, i, i+1), late)
		}, "is not one of worker-1"},
		{"token-made-later", func(t *testing.T, all []ledger.Event) []ledger.Event {
			i := lastOf(t, all, ledger.TokenCreated)
			late := all[i]
			late.At = "2026-11-21T09:00:01.000Z"
			return append(slices.Delete(all, i, i+1), late)
		}, "is not one of worker-1"},
		{"revoked-token-made-later", func(t *testing.T, all []ledger.Event) []ledger.Event {
			i := lastOf(t, all, ledger.TokenCreated)
			late := all[i]
			late.At = "2026-11-21T09:00:01.000Z"
			all = append(slices.Delete(all, i, i+1), late)
			return revokes(t, all, len(all), late)
		}, "is not one of worker-1"},
		{"token-that-had-expired", func(_ *testing.T, all []ledger.Event) []ledger.Event {
			all[len(all)-1].At = "2026-12-01T00:00:00.000Z"
			return all
		}, "was not valid then"},
		{"token-in-its-last-second", func(_ *testing.T, all []ledger.Event) []ledger.Event {
			all[len(all)-1].At = "2026-11-30T23:59:59.000Z"
			return all
		}, ""},
		{"token-revoked-before-the-last", func(t *testing.T, all []ledger.Event) []ledger.Event {
			return revokes(t, all, len(all)-1, all[lastOf(t, all, ledger.TokenCreated)])
		}, "was not valid then"},
		{"token-revoked-behind-the-last", func(t *testing.T, all []ledger.Event) []ledger.Event {
			return revokes(t, all, len(all), all[lastOf(t, all, ledger.TokenCreated)])
		}, ""},
	} {
		t.Run(f.name, func(t *testing.T) {
			d := newFixture(t)
			d.token("first", ledger.RoleAuditor, "")
			d.passing()
			f.run(t, d)
		})
	}
}
