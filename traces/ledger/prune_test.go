package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"pgfsm/internal/test/check"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/ledgertest"
)

// checked verifies a fixture's ledger, with every run executed again.
func (d *fixture) checked(o ledger.VerifyOptions) (report ledger.Report, err error) {
	d.TB.Helper()
	o.Replayer = traces.NewReplayer(d.Machine, nil)
	err = d.View(context.Background(), func(r ledger.Reader) (err error) {
		report, err = ledger.Verify(context.Background(), r, o)
		return err
	})
	return report, err
}

func (d *fixture) checkpoint() (c checkpoint.Checkpoint) {
	d.TB.Helper()
	d.Inspect(func(r ledger.Reader) (err error) {
		if c, err = ledger.TakeCheckpoint(r); errors.Is(err, ledger.ErrNotFound) { // nothing is recorded yet
			err = nil
		}
		return err
	})
	return c
}

// runs are the ids of all runs that the ledger tells of.
func (d *fixture) runs() (all []string) {
	d.TB.Helper()
	d.Inspect(func(r ledger.Reader) error {
		for q, err := range r.Runs(ledger.Filter{}) {
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
func (d *fixture) passes(n int) {
	d.TB.Helper()
	for range n {
		s := statestest.Find(d.TB, "policy-allows")
		if _, _, err := d.play(ledgertest.NewID(d.TB), &s); err != nil {
			d.TB.Fatal(err)
		}
	}
}

// prunes prunes and verifies what is left. In a log with a key, a signer orders it.
func (d *fixture) prunes(before string, signers ...note.Signer) ledger.Pruned {
	d.TB.Helper()
	q := ledger.PruneRequest{Before: before, Unstated: true}
	for _, signer := range signers {
		order := ledger.PruneOrder{Origin: signer.Name(), Kind: ledger.PruneRetention, Before: before}
		signed, err := order.Sign(signer)
		check.NoError(d.TB, err)
		q.Order = signed
	}
	done, err := d.Prune(context.Background(), q, root)
	if err != nil {
		d.TB.Fatalf("Prune(%s) = %v", before, err)
	}
	if report, err := d.checked(ledger.VerifyOptions{}); err != nil {
		d.TB.Fatalf("after Prune(%s): Verify() = %+v, %v", before, report, err)
	}
	return done
}

func TestPruneAgainAndAgain(t *testing.T) {
	d := newFixture(t)
	d.passes(3)
	d.Clock.Set(t, "2026-11-21T09:10:00.000Z")
	d.passes(2)
	first := d.checkpoint()
	for _, c := range []struct {
		name, before          string
		entries, runs, remain int
	}{
		{"before-the-first-run", "2026-11-21T09:00:00.000Z", 0, 0, 5},
		{"older-runs", "2026-11-21T09:10:00.000Z", 6, 3, 2},
		{"once-more", "2026-11-21T09:10:00.000Z", 0, 0, 2},
		{"everything", "2026-11-21T09:20:00.000Z", 4, 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.Clock.Set(t, "2026-11-21T09:20:00.000Z")
			if done := d.prunes(c.before); int(done.Entries) != c.entries || int(done.Runs) != c.runs || len(d.runs()) != c.remain {
				t.Errorf("%+v, %d runs are left", done, len(d.runs()))
			}
			if _, err := d.checked(ledger.VerifyOptions{Checkpoint: &first}); err != nil {
				t.Errorf("a checkpoint of before the prune: Verify() = %v", err)
			}
			other := first
			other.Root[0]++
			if _, err := d.checked(ledger.VerifyOptions{Checkpoint: &other}); !errors.Is(err, ledger.ErrTampered) {
				t.Errorf("a checkpoint with another root: Verify() = %v", err)
			}
		})
	}
	// What is left: the log's first entry, that of the process with its bundle, and two prunes.
	if report, err := d.checked(ledger.VerifyOptions{}); err != nil || report.Entries != 4 || report.Blobs != 1 {
		t.Errorf("what is left of all: %+v, %v", report, err)
	}
}

func TestPruneRefusesTimes(t *testing.T) {
	d := newFixture(t)
	d.passes(1)
	for _, c := range []struct {
		name, before string
		ok           bool
	}{
		{"now", statestest.At, true},
		{"in-a-second", "2026-11-21T09:00:01.000Z", false},
		{"a-date", "2026-11-21", false},
		{"another-zone", "2026-11-21T09:00:00+00:00", false},
		{"nothing", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := d.Prune(context.Background(), ledger.PruneRequest{Before: c.before, Unstated: true}, root); errors.Is(err, ledger.ErrPruneTime) == c.ok {
				t.Errorf("Prune(%q) = %v", c.before, err)
			}
		})
	}
}

// TestVerifyNamesAForgedPrune: what is missing needs the word of a prune, and only that.
func TestVerifyNamesAForgedPrune(t *testing.T) {
	for _, c := range []struct{ name, entries, what string }{
		{"of-what-is-there", `[{"first":1,"last":1}]`, "of the log itself"},
		{"of-what-cannot-have-been", `[{"first":1,"last":99}]`, "cannot have been there"},
		{"out-of-order", `[{"first":3,"last":3},{"first":1,"last":1}]`, "cannot have been there"},
		{"of-nothing", `[]`, "removes nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			d.passes(2)
			f := forgery{c.name, func(_ *testing.T, all []ledger.Event) []ledger.Event {
				return append(all, ledger.Event{
					Type: ledger.LedgerPruned, At: "2026-11-22T09:00:00.000Z", By: "local:root", Index: 99,
					Payload: fmt.Appendf(nil, `{"before":"2026-11-22T09:00:00.000Z","entries":%s,"kind":"retention","runs":0,"type":"ledger.pruned"}`, c.entries),
				})
			}, c.what}
			f.run(t, d)
		})
	}
	t.Run("no-word-of-it", func(t *testing.T) {
		b := openRaw(t, archive(t))
		index := b.texts(t, "SELECT CAST(idx AS TEXT) FROM entries WHERE type = 'mcp.passed' LIMIT 1")[0]
		n, err := strconv.ParseInt(index, 10, 64)
		check.NoError(t, err)
		var header string
		skeletonOf(t, b.path, func(r ledger.Reader) error {
			for e, err := range r.Entries(n) {
				header = string(e.Leaf())
				return err
			}
			return nil
		})
		b.do(t, "UPDATE entries SET body = NULL, header = ? WHERE idx = ?", header, n)
		_, err = verify(t, b.path, ledger.VerifyOptions{})
		var fault *ledger.Fault
		if !errors.As(err, &fault) || fault.Table != "entries" || fault.Key != index || !strings.Contains(fault.What, "no ledger.pruned says why") {
			t.Errorf("Verify() = %v, want entry %s", err, index)
		}
	})
}

func TestExportSince(t *testing.T) {
	d := newFixture(t)
	d.passes(1)
	size := d.checkpoint().Size
	d.Clock.Set(t, "2026-11-21T09:10:00.000Z")
	d.passes(1)
	for at, want := range map[string]int64{"2026-11-21T00:00:00.000Z": 0, "2026-11-21T09:00:01.000Z": size, "2026-11-21T09:10:00.000Z": size, "2026-11-22T00:00:00.000Z": d.checkpoint().Size} {
		d.Inspect(func(r ledger.Reader) error {
			if got, err := ledger.FirstEntryAt(r, at); got != want || err != nil {
				t.Errorf("FirstAt(%s) = %d, %v, want %d", at, got, err, want)
			}
			return nil
		})
	}
}

// Who may prune is who may manage tokens, which TestTokensAreManagedByAdmins shows. The record says who it was.
func TestWhoMayPrune(t *testing.T) {
	d := newFixture(t)
	d.passes(1)
	admin := callerOf(d.token("root@example.com", ledger.RoleAdmin, ""))
	const late = "2026-11-22T00:00:00.000Z"
	d.Clock.Set(t, late)
	for _, before := range []string{"2020-01-01T00:00:00.000Z", late} { // of nothing, too
		done, err := d.Prune(context.Background(), ledger.PruneRequest{Before: before, Unstated: true}, root)
		if !errors.Is(err, ledger.ErrRole) || done.Entries != 0 {
			t.Errorf("Prune() without a token = %+v, %v, want %v", done, err, ledger.ErrRole)
		}
	}
	if done, err := d.Prune(context.Background(), ledger.PruneRequest{Before: late, Unstated: true}, admin); err != nil || done.Entries == 0 {
		t.Errorf("Prune() by an admin = %+v, %v", done, err)
	}
	d.Inspect(func(r ledger.Reader) error {
		last, err := r.LastOfType(ledger.LedgerPruned)
		check.NoError(t, err)
		events, err := last.ReadEvents()
		if err != nil || events[0].By != admin.Name {
			t.Errorf("the last prune is %+v, %v", events, err)
		}
		return nil
	})
}

func callerOf(made ledger.Token) ledger.Caller {
	return ledger.Caller{TokenID: made.ID, Name: made.Name, Roles: []string{made.Role}}
}

func (d *fixture) revokeAs(by ledger.Caller, id string) {
	d.TB.Helper()
	if _, err := d.RevokeToken(context.Background(), by, id); err != nil {
		d.TB.Fatalf("RevokeToken() = %v", err)
	}
}
