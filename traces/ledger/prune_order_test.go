package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"pgfsm/internal/test/check"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
)

// ordered signs an order for this log.
func ordered(t *testing.T, signer note.Signer, o ledger.PruneOrder) []byte {
	t.Helper()
	o.Origin = signer.Name()
	signed, err := o.Sign(signer)
	check.NoError(t, err)
	return signed
}

// rangeOf is the range of a run whose entries follow each other.
func (d *fixture) rangeOf(run string) ledger.Range {
	q := d.Run(run)
	return ledger.Range{First: q.First, Last: q.Entry}
}

// A log with a key is pruned only by an order that the key has signed.
func TestPruneNeedsAnOrder(t *testing.T) {
	const before, now = "2026-11-21T09:30:00.000Z", "2026-11-22T09:00:00.000Z"
	d := newFixture(t)
	d.passes(2)
	signer, _ := d.newKey()
	d.Clock.Set(t, now)
	other := newFixture(t)
	stranger, _ := other.newKey()
	retention := ledger.PruneOrder{Kind: ledger.PruneRetention, Before: before}

	forged := strings.Replace(string(ordered(t, signer, retention)), before, now, 1)
	for name, q := range map[string]ledger.PruneRequest{ // each stands alone
		"no-order":            {Before: before, Unstated: true},
		"of-another-log":      {Order: ordered(t, stranger, retention), Unstated: true},
		"with-another-time":   {Order: []byte(forged), Unstated: true},
		"not-what-is-wanted":  {Before: now, Order: ordered(t, signer, retention), Unstated: true},
		"erases-what-is-open": {Reason: "mistake", Order: ordered(t, signer, ledger.PruneOrder{Kind: ledger.PruneErasure, Entries: []ledger.Range{{First: 0, Last: 0}}})},
		"erases-half-a-run": {Reason: "mistake", Order: ordered(t, signer, ledger.PruneOrder{Kind: ledger.PruneErasure,
			Entries: []ledger.Range{{First: d.rangeOf(d.runs()[0]).First, Last: d.rangeOf(d.runs()[0]).First}}})},
		"erases-beyond-the-end": {Reason: "mistake", Order: ordered(t, signer, ledger.PruneOrder{Kind: ledger.PruneErasure, Entries: []ledger.Range{{First: 1 << 50, Last: 1 << 60}}})},
	} {
		if done, err := d.Prune(t.Context(), q, root); !errors.Is(err, ledger.ErrPruneOrder) || done.Entries > 0 {
			t.Errorf("%s: Prune() = %+v, %v, want %v", name, done, err, ledger.ErrPruneOrder)
		}
	}

	first := d.checkpoint()
	done, err := d.Prune(t.Context(), ledger.PruneRequest{Order: ordered(t, signer, retention), Unstated: true}, root)
	if err != nil || done.Runs != 2 {
		t.Fatalf("Prune() = %+v, %v", done, err)
	}
	report, err := d.checked(ledger.VerifyOptions{Checkpoint: &first})
	if err != nil || len(report.Prunes) != 1 || !report.Prunes[0].Signed || !report.Prunes[0].Unstated {
		t.Errorf("Verify() = %+v, %v", report.Prunes, err)
	}
}

// An erasure removes what its order names, whatever its age, and nothing that happened then is counted afterwards.
func TestErasure(t *testing.T) {
	d := newFixture(t)
	d.passes(2)
	d.passing()
	signer, _ := d.newKey()
	erased, left := d.runs()[0], d.runs()[1]
	d.Clock.Add(time.Second)
	order := ordered(t, signer, ledger.PruneOrder{Kind: ledger.PruneErasure, Entries: []ledger.Range{d.rangeOf(erased)}})
	done, err := d.Prune(t.Context(), ledger.PruneRequest{Order: order, Reason: "mistake"}, root)
	if err != nil || done.Runs != 1 || len(d.runs()) != 1 || d.runs()[0] != left {
		t.Fatalf("Prune() = %+v, %v, %d runs are left", done, err, len(d.runs()))
	}
	if done, err := d.Prune(t.Context(), ledger.PruneRequest{Order: order, Reason: "mistake"}, root); err != nil || done.Entries > 0 {
		t.Errorf("the same order again: Prune() = %+v, %v", done, err)
	}
	report, err := d.checked(ledger.VerifyOptions{})
	if err != nil || len(report.Prunes) != 1 || report.Prunes[0].Kind != ledger.PruneErasure {
		t.Errorf("Verify() = %+v, %v", report.Prunes, err)
	}
	d.must(asking(t, "{}", statestest.At, denying(`history.count("actor", "1h") > 100`)), "policy_failed")
}

// The stated retention binds everyone, also who has the key.
func TestPruneAndTheRetention(t *testing.T) {
	d := newFixture(t)
	d.passes(1)
	active := statestest.MustBundle(statestest.Content(), nil)
	check.NoError(t, d.RecordActivation(t.Context(), active, ledger.ActivationReason{Cause: ledger.CauseStart, Settings: ledger.Settings{Retention: 30}}))
	signer, _ := d.newKey()
	d.Clock.Set(t, "2026-12-21T09:00:00.000Z")
	for before, ok := range map[string]bool{"2026-11-21T09:00:00.000Z": true, "2026-11-21T09:00:00.001Z": false} { // in any order
		order := ordered(t, signer, ledger.PruneOrder{Kind: ledger.PruneRetention, Before: before})
		if _, err := d.Prune(t.Context(), ledger.PruneRequest{Order: order, Unstated: true}, root); errors.Is(err, ledger.ErrRetention) == ok || ok && err != nil {
			t.Errorf("Prune(%s) = %v", before, err)
		}
	}

	unstated := newFixture(t)
	unstated.passes(1)
	unstated.Clock.Set(t, "2026-12-21T09:00:00.000Z")
	if _, err := unstated.Prune(t.Context(), ledger.PruneRequest{Before: "2026-11-22T09:00:00.000Z"}, root); !errors.Is(err, ledger.ErrRetention) {
		t.Errorf("Prune() = %v, want %v", err, ledger.ErrRetention)
	}
}

// TestAForgedPruneErasesNothing: who can write every table, and lacks the key, removes the body of an entry and appends a prune that
// says so. The checkpoint of before still holds, and verify says what is wrong, for each type of event.
func TestAForgedPruneErasesNothing(t *testing.T) {
	d := newFixture(t)
	d.token("first", ledger.RoleAuditor, "")
	held := d.called(ledger.Anonymous)
	d.delivers(held, ledger.ByRepeat)
	d.passing()
	d.newKey()
	first := d.checkpoint()
	last := make(map[ledger.Type]int64)
	for _, e := range d.Events(0) {
		last[e.Type] = e.Index
	}
	if len(last) < 12 {
		t.Fatalf("only %d types of event", len(last))
	}

	for kind, index := range last { // each stands alone
		t.Run(string(kind), func(t *testing.T) {
			forged := d.forged(t, func(_ *testing.T, all []ledger.Event) []ledger.Event {
				at := all[len(all)-1].At
				return append(all, ledger.Event{Type: ledger.LedgerPruned, At: at, By: "local:root", Index: 1 << 40, Payload: fmt.Appendf(nil,
					`{"before":%q,"entries":[{"first":%d,"last":%d}],"kind":"retention","runs":0,"type":"ledger.pruned"}`, at, index, index)})
			})
			err := forged.Update(t.Context(), func(tx ledger.Tx) error {
				for e, err := range tx.Entries(index) {
					if err != nil {
						return err
					}
					return tx.Prune([]ledger.PrunedEntry{{Index: index, Header: e.Leaf()}}, nil, nil)
				}
				return nil
			})
			check.NoError(t, err)
			f := fixtureAt(t, forged, d.Clock)
			f.Inspect(func(r ledger.Reader) error {
				_, err := ledger.Verify(t.Context(), r, ledger.VerifyOptions{})
				if !errors.Is(err, ledger.ErrTampered) {
					t.Errorf("Verify() = %v", err)
				}
				return nil
			})
		})
	}
	if _, err := d.checked(ledger.VerifyOptions{Checkpoint: &first}); err != nil {
		t.Errorf("unforged: Verify() = %v", err)
	}
}

// TestForgedKeysOrderNothing: who can write the tables adds a key of their own, or removes the log's, and prunes. With the trusted
// key, verify finds that.
func TestForgedKeysOrderNothing(t *testing.T) {
	const before, now = "2026-11-21T09:30:00.000Z", "2026-11-22T09:00:00.000Z"
	for name, forge := range map[string]func(d *fixture, vkey string) ledger.PruneRequest{ // each stands alone
		"key-removed": func(d *fixture, vkey string) ledger.PruneRequest {
			check.NoError(t, d.RemoveKey(t.Context(), root, vkey))
			return ledger.PruneRequest{Before: before, Unstated: true}
		},
		"key-added": func(d *fixture, _ string) ledger.PruneRequest {
			other, _ := d.newKey()
			return ledger.PruneRequest{Order: ordered(t, other, ledger.PruneOrder{Kind: ledger.PruneRetention, Before: before}), Unstated: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			d.passes(1)
			_, vkey := d.newKey()
			d.Clock.Set(t, now)
			if done, err := d.Prune(t.Context(), forge(d, vkey), root); err != nil || done.Runs != 1 {
				t.Fatalf("Prune() = %+v, %v", done, err)
			}
			if _, err := d.checked(ledger.VerifyOptions{}); err != nil {
				t.Errorf("without a trusted key: Verify() = %v", err)
			}
			if _, err := d.checked(ledger.VerifyOptions{Keys: trusted(t, vkey).Log}); !errors.Is(err, ledger.ErrTampered) {
				t.Errorf("with the trusted key: Verify() = %v", err)
			}
		})
	}
}
