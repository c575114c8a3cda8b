package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// checked verifies a desk's ledger, with every run executed again.
func (d *desk) checked(o ledger.VerifyOptions) (report ledger.Report, err error) {
	d.TB.Helper()
	o.Replayer = traces.NewReplayer(d.Machine, nil)
	err = d.View(context.Background(), func(r ledger.Reader) (err error) {
		report, err = ledger.Verify(context.Background(), r, o)
		return err
	})
	return report, err
}

func (d *desk) checkpoint() (c ledger.Checkpoint) {
	d.TB.Helper()
	d.Look(func(r ledger.Reader) (err error) {
		c, err = ledger.TakeCheckpoint(r)
		return err
	})
	return c
}

// runs are the ids of all runs that the ledger tells of.
func (d *desk) runs() (all []string) {
	d.TB.Helper()
	d.Look(func(r ledger.Reader) error {
		for q, err := range r.Requests(ledger.Filter{}) {
			if err != nil {
				return err
			}
			all = append(all, q.RunID)
		}
		return nil
	})
	return all
}

// passes plays runs that are called and answered.
func (d *desk) passes(n int) {
	d.TB.Helper()
	for range n {
		s := statestest.Find(d.TB, "policy-allows")
		if _, _, err := d.play(ledgertest.NewID(d.TB), &s); err != nil {
			d.TB.Fatal(err)
		}
	}
}

// prunes prunes and verifies what is left.
func (d *desk) prunes(before string) ledger.Pruned {
	d.TB.Helper()
	done, err := d.Prune(context.Background(), before, root)
	if err != nil {
		d.TB.Fatalf("Prune(%s) = %v", before, err)
	}
	if report, err := d.checked(ledger.VerifyOptions{}); err != nil {
		d.TB.Fatalf("after Prune(%s): Verify() = %+v, %v", before, report, err)
	}
	return done
}

func TestPruneAgainAndAgain(t *testing.T) {
	d := newDesk(t)
	dora := d.Approver("dora")
	d.passes(3)
	d.Clock.Set(t, "2026-11-21T09:10:00Z")
	d.passes(2)
	if done := d.prunes("2026-11-21T09:00:00Z"); done.Events != 0 || done.Kept != 0 || len(d.runs()) != 5 {
		t.Errorf("before the first event: %+v, %d runs", done, len(d.runs()))
	}
	first := d.checkpoint()

	done := d.prunes("2026-11-21T09:10:00Z")
	if done.Runs != 3 || done.Kept != 0 || len(d.runs()) != 2 || done.Events != done.Seq {
		t.Errorf("the older runs: %+v, %d runs are left", done, len(d.runs()))
	}
	if done := d.prunes("2026-11-21T09:10:00Z"); done.Events != 0 {
		t.Errorf("once more: %+v", done)
	}
	// What a checkpoint of before says, nobody can tell any more; one of the end of what was removed still holds.
	if _, err := d.checked(ledger.VerifyOptions{Checkpoint: &ledger.Checkpoint{Size: 2, Head: first.Head}}); !errors.Is(err, ledger.ErrCheckpointPruned) {
		t.Errorf("a checkpoint of what was pruned: Verify() = %v", err)
	}
	edge := ledger.Checkpoint{Size: done.Seq, Head: done.Head}
	if report, err := d.checked(ledger.VerifyOptions{Checkpoint: &edge}); err != nil || report.Pruned != done.Seq {
		t.Errorf("a checkpoint of the last that was pruned: Verify() = %+v, %v", report, err)
	}
	edge.Head = ledger.Origin
	if _, err := d.checked(ledger.VerifyOptions{Checkpoint: &edge}); !errors.Is(err, ledger.ErrTampered) {
		t.Errorf("another head of the last that was pruned: Verify() = %v", err)
	}

	// The token was carried over: it lets its owner in, and its vote is judged by it.
	held, s := d.hold(nil)
	d.Clock.Set(t, "2026-11-21T09:20:00Z")
	d.vote(held, dora, true)
	if got, err := d.resume(held, world(s)); err != nil {
		t.Fatalf("resume() = %+v, %v", got, err)
	}
	if _, err := d.RevokeToken(context.Background(), ledger.Local("local:root"), dora.TokenID); err != nil {
		t.Fatal(err)
	}
	d.Clock.Set(t, "2026-11-21T09:30:00Z")
	d.passes(1)
	if done := d.prunes("2026-11-21T09:20:00Z"); done.Runs != 2 || done.Behind != held || done.Ends == "" || done.Kept == 0 {
		t.Errorf("up to the held run: %+v", done)
	}
	if done := d.prunes("2026-11-21T09:30:00Z"); done.Runs != 1 || done.Kept != 0 {
		t.Errorf("with the held run: %+v", done)
	}
	d.Clock.Set(t, "2026-11-21T10:00:00Z")
	if done := d.prunes("2026-11-21T10:00:00Z"); done.Runs != 1 || len(d.runs()) != 0 {
		t.Errorf("everything: %+v, %d runs are left", done, len(d.runs()))
	}
	if report, err := d.checked(ledger.VerifyOptions{}); err != nil || report.Events != 1 || report.Blobs != 0 || report.Tokens != 1 {
		t.Errorf("what is left of all: %+v, %v", report, err)
	}
	d.passes(1)
	if report, err := d.checked(ledger.VerifyOptions{}); err != nil || report.Requests != 1 {
		t.Errorf("and it goes on: %+v, %v", report, err)
	}
}

func TestPruneLeavesWhatHasNotEnded(t *testing.T) {
	d := newDesk(t)
	d.passes(1)
	held, _ := d.hold(nil)
	d.Clock.Set(t, "2026-11-21T09:01:00Z")
	d.passes(2)
	d.Clock.Set(t, "2026-11-21T09:02:00Z")
	if done := d.prunes("2026-11-21T09:02:00Z"); done.Runs != 1 || done.Behind != held || done.Ends != "" || done.Kept == 0 || len(d.runs()) != 3 {
		t.Errorf("Prune() = %+v, %d runs are left", done, len(d.runs()))
	}
}

func TestPruneRefusesTimes(t *testing.T) {
	d := newDesk(t)
	d.passes(1)
	for _, c := range []struct {
		name, before string
		ok           bool
	}{
		{"now", statestest.At, true},
		{"in-a-second", "2026-11-21T09:00:01Z", false},
		{"a-date", "2026-11-21", false},
		{"another-zone", "2026-11-21T09:00:00+00:00", false},
		{"nothing", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := d.Prune(context.Background(), c.before, root); errors.Is(err, ledger.ErrPruneTime) == c.ok {
				t.Errorf("Prune(%q) = %v", c.before, err)
			}
		})
	}
}

// TestVerifyNamesAForgedPrune: what is missing at the beginning needs the word of a prune, and only that.
func TestVerifyNamesAForgedPrune(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*testing.T, []ledger.Event) []ledger.Event
		what string
	}{
		{"of-what-is-there", func(_ *testing.T, all []ledger.Event) []ledger.Event {
			return append(all, ledger.Event{
				Type: ledger.LedgerPruned, At: all[len(all)-1].At, By: "local:root",
				Payload: fmt.Appendf(nil, `{"before":"2026-11-21T09:00:00Z","events":1,"head":%q,"runs":0,"seq":1,"tokens":[]}`, ledger.Origin),
			})
		}, "it should not be there"},
		{"of-what-cannot-have-been", func(_ *testing.T, all []ledger.Event) []ledger.Event {
			return append(all, ledger.Event{
				Type: ledger.LedgerPruned, At: all[len(all)-1].At, By: "local:root",
				Payload: fmt.Appendf(nil, `{"before":"2026-11-21T09:00:00Z","events":9,"head":%q,"runs":0,"seq":8,"tokens":[]}`, ledger.Origin),
			})
		}, "cannot have been there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			d.passes(2)
			err := d.forge(func(all []ledger.Event) []ledger.Event { return c.edit(t, all) })
			if !errors.Is(err, ledger.ErrTampered) || !bytes.Contains([]byte(err.Error()), []byte(c.what)) {
				t.Errorf("Verify() = %v, want %q", err, c.what)
			}
		})
	}
	for _, c := range []struct{ name, from, to, what string }{
		{"of-another-past", `"head":"sha256:`, `"head":"sha256:0`, "it does not follow what"},
		{"of-more-than-there-was", `"events":`, `"events":1`, "cannot have been there"},
		{"not-behind-the-one-before", `"events":6`, `"events":5`, "where the prune before it ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			d.passes(1)
			d.Clock.Set(t, "2026-11-21T09:05:00Z")
			d.passes(1)
			d.Clock.Set(t, "2026-11-21T09:10:00Z")
			d.prunes("2026-11-21T09:05:00Z")
			d.prunes("2026-11-21T09:10:00Z")
			d.passes(1)
			if err := d.forge(func(all []ledger.Event) []ledger.Event { return all }); err != nil {
				t.Fatalf("nothing changed: Verify() = %v", err)
			}
			err := d.forge(func(all []ledger.Event) []ledger.Event { return edits(ledger.LedgerPruned, c.from, c.to)(t, all) })
			if !errors.Is(err, ledger.ErrTampered) || !bytes.Contains([]byte(err.Error()), []byte(c.what)) {
				t.Errorf("Verify() = %v, want %q", err, c.what)
			}
		})
	}
	t.Run("no-word-of-it", func(t *testing.T) {
		path := archive(t)
		b := newBench(t, path)
		b.do(t, "DELETE FROM events WHERE seq <= 2")
		_, err := verify(t, b.path, ledger.VerifyOptions{})
		var fault *ledger.Fault
		if !errors.As(err, &fault) || fault.Table != "events" || fault.Key != "2" {
			t.Errorf("Verify() = %v, want event 2", err)
		}
	})
}

func TestExport(t *testing.T) {
	d := newDesk(t)
	d.fill()
	var out bytes.Buffer
	d.Look(func(r ledger.Reader) error {
		n, err := ledger.Export(r, &out)
		if err == nil && n != d.checkpoint().Size {
			t.Errorf("%d events written", n)
		}
		return err
	})
	prev, large := ledger.Origin, 0
	for i, line := range bytes.Split(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte("\n")) {
		if c, err := canonical.JSON(line); err != nil || !bytes.Equal(c, line) {
			t.Fatalf("line %d is not canonical: %v", i+1, err)
		}
		// As docs/reference/ledger-format.md tells others to do it: without the hash, and with the digest of what is large.
		var members map[string]jsontext.Value
		if err := json.Unmarshal(line, &members); err != nil {
			t.Fatal(err)
		}
		hash, err := canonical.Unquote(members["hash"])
		if err != nil {
			t.Fatal(err)
		}
		delete(members, "hash")
		if p := members["payload"]; len(p) > ledger.MaxInline {
			members["payload"] = canonical.MustMarshal(ledger.Ref(canonical.Sum(ledger.BlobValue, p)))
			large++
		}
		rest, err := json.Marshal(members, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		if rest, err = canonical.JSON(rest); err != nil {
			t.Fatal(err)
		}
		if got := canonical.Sum("ledger event", rest); string(got) != hash {
			t.Errorf("line %d: its hash is %s, its content has %s", i+1, hash, got)
		}
		if before, err := canonical.Unquote(members["prev"]); err != nil || before != string(prev) {
			t.Errorf("line %d does not follow the line before", i+1)
		}
		prev = canonical.Digest(hash)
	}
	if large == 0 {
		t.Error("no event had a large payload: the test is blind")
	}
}

// From the first active admin on, only admins prune, and the record says who it was.
func TestWhoMayPrune(t *testing.T) {
	const late = "2026-11-22T00:00:00Z"
	for _, c := range []struct {
		name string
		by   func(*desk) ledger.Caller
		want error
	}{
		{"nobody-is-admin", func(*desk) ledger.Caller { return root }, nil},
		{"without-a-token", func(d *desk) ledger.Caller {
			d.token("root@example.com", ledger.RoleAdmin, "")
			return root
		}, ledger.ErrRole},
		{"admin-has-expired", func(d *desk) ledger.Caller {
			d.token("root@example.com", ledger.RoleAdmin, late)
			return root
		}, nil},
		{"approver", func(d *desk) ledger.Caller { return d.Approver("dora") }, ledger.ErrRole},
		{"admin", func(d *desk) ledger.Caller { return callerOf(d.token("root@example.com", ledger.RoleAdmin, "")) }, nil},
		{"admin-who-was-revoked", func(d *desk) ledger.Caller {
			made := d.token("root@example.com", ledger.RoleAdmin, "")
			d.revokeAs(callerOf(made), made.ID)
			return callerOf(made)
		}, ledger.ErrToken},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			d.token("old@example.com", ledger.RoleAuditor, "")
			by := c.by(d)
			d.Clock.Set(t, late)
			if done, err := d.Prune(context.Background(), "2020-01-01T00:00:00Z", by); !errors.Is(err, c.want) || done.Events != 0 {
				t.Errorf("Prune() of nothing = %+v, %v, want %v", done, err, c.want)
			}
			done, err := d.Prune(context.Background(), late, by)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || (done.Events > 0) != (c.want == nil) {
				t.Fatalf("Prune() = %+v, %v, want %v", done, err, c.want)
			}
			d.Look(func(r ledger.Reader) error {
				end, err := r.Last()
				if pruned := end.Type == ledger.LedgerPruned; pruned != (c.want == nil) || pruned && end.By != by.Name {
					t.Errorf("the last event is %s by %s", end.Type, end.By)
				}
				return err
			})
		})
	}
}

func callerOf(made ledger.Token) ledger.Caller {
	return ledger.Caller{TokenID: made.ID, Name: made.Name, Role: made.Role}
}

func (d *desk) revokeAs(by ledger.Caller, id string) {
	d.TB.Helper()
	if _, err := d.RevokeToken(context.Background(), by, id); err != nil {
		d.TB.Fatalf("RevokeToken() = %v", err)
	}
}
