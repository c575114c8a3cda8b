package ledger_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"pgfsm/internal/test/check"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/checkpoint/witnesstest"
	"pgfsm/traces/ledger/ledgertest"
)

// newKey adds a key to a fixture's log.
func (d *fixture) newKey() (note.Signer, string) {
	d.TB.Helper()
	_, err := d.Origin(context.Background()) // the log begins
	check.NoError(d.TB, err)
	signer, vkey := ledgertest.NewSigner(d.TB, d.Store)
	check.NoError(d.TB, d.AddKey(context.Background(), root, vkey))
	return signer, vkey
}

func (d *fixture) keys() (keys []ledger.Key) {
	d.TB.Helper()
	d.Inspect(func(r ledger.Reader) (err error) {
		keys, err = ledger.Keys(r)
		return err
	})
	return keys
}

// signed signs the current state of a fixture's log.
func (d *fixture) signed(s note.Signer) []byte { return ledgertest.SignState(d.TB, d.Store, s) }

// trusted are the keys of a reader who knows a log's verifier key.
func trusted(t testing.TB, vkey string) checkpoint.Keys {
	t.Helper()
	v, err := checkpoint.LogVerifier(vkey)
	check.NoError(t, err)
	return checkpoint.Keys{Log: []note.Verifier{v}}
}

// TestKeys shows that the log tells of its keys, and what is refused.
func TestKeys(t *testing.T) {
	d, ctx := newFixture(t), context.Background()
	_, first := d.newKey()
	_, second := d.newKey()
	check.NoError(t, d.RemoveKey(ctx, root, first))
	if keys := d.keys(); len(keys) != 2 || keys[0].Key != first || keys[0].Removed == "" || keys[1].Key != second || keys[1].Removed != "" {
		t.Errorf("Keys() = %+v", keys)
	}
	_, foreign, err := checkpoint.NewKey("another-log")
	check.NoError(t, err)
	for name, err := range map[string]error{ // each stands alone
		"added-twice":   d.AddKey(ctx, root, second),
		"added-again":   d.AddKey(ctx, root, first),
		"another-log":   d.AddKey(ctx, root, foreign),
		"no-key":        d.AddKey(ctx, root, "x"),
		"removed-twice": d.RemoveKey(ctx, root, first),
		"never-added":   d.RemoveKey(ctx, root, foreign),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	d.token("ada", ledger.RoleAdmin, "2026-12-01T00:00:00.000Z")
	if err := d.RemoveKey(ctx, root, second); !errors.Is(err, ledger.ErrRole) {
		t.Errorf("RemoveKey() by somebody who is no admin = %v", err)
	}
	d.sound()
	again := func(kind ledger.Type) edit {
		return func(t *testing.T, all []ledger.Event) []ledger.Event {
			e := all[lastOf(t, all, kind)]
			e.Index = 99 // an entry of its own
			return append(all, e)
		}
	}
	d.forge(t, []forgery{
		{"added-twice", again(ledger.KeyAdded), "was added before"},
		{"removed-twice", again(ledger.KeyRemoved), "was removed before"},
		{"of-another-log", edits(ledger.KeyAdded, second, foreign), "of the log another-log"},
		{"never-added", func(_ *testing.T, all []ledger.Event) []ledger.Event {
			return slices.DeleteFunc(all, func(e ledger.Event) bool { return e.Type == ledger.KeyAdded })
		}, "is no key of the log"},
	}...)
}

// TestProveNeedsTheRun shows which checkpoints and runs are refused.
func TestProveNeedsTheRun(t *testing.T) {
	d := newFixture(t)
	signer, vkey := d.newKey()
	early := d.signed(signer)
	id, s := d.approved(nil)
	waiting := d.signed(signer)
	if got, err := d.resume(id, world(s)); err != nil {
		t.Fatalf("resume() = %+v, %v", got, err)
	}
	ended := d.signed(signer)
	d.delivers(id, ledger.ByRepeat)
	other := newFixture(t)
	foreign, _ := other.newKey()
	prove := func(run string, signed []byte) (p *checkpoint.Proof, err error) {
		d.Inspect(func(r ledger.Reader) error {
			p, err = ledger.Prove(r, run, signed)
			return nil
		})
		return p, err
	}
	for _, tt := range []struct {
		name   string
		run    string
		signed []byte
		is     error
		what   string
	}{
		{"of-before-the-run", id, early, nil, "does not cover"},
		{"of-before-its-end", id, waiting, nil, "does not cover"},
		{"of-before-its-delivery", id, ended, nil, ""},
		{"of-now", id, d.signed(signer), nil, ""},
		{"no-such-run", ledgertest.NewID(t), ended, ledger.ErrNotFound, ""},
		{"of-another-log", id, other.signed(foreign), checkpoint.ErrInconsistent, "of the log"},
		{"no-checkpoint", id, []byte("hello"), nil, "not a signed note"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := prove(tt.run, tt.signed)
			if tt.is == nil && tt.what == "" {
				check.NoError(t, err)
				if _, err := checkpoint.Open(p.Signed, trusted(t, vkey)); err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.what) {
				t.Errorf("Prove() = %v, want %v, %q", err, tt.is, tt.what)
			}
		})
	}
}

// TestProofsSurviveAPrune shows that runs which are left are proven at checkpoints from before a prune, and that earlier proofs stay valid.
func TestProofsSurviveAPrune(t *testing.T) {
	d := newFixture(t)
	signer, vkey := d.newKey()
	d.passes(3)
	old := d.runs()
	d.Clock.Set(t, "2026-11-21T09:10:00.000Z")
	d.passes(2)
	signed := d.signed(signer)
	proofs := make(map[string]*checkpoint.Proof)
	prove := func(run string) (p *checkpoint.Proof, err error) {
		d.Inspect(func(r ledger.Reader) error {
			p, err = ledger.Prove(r, run, signed)
			return nil
		})
		return p, err
	}
	verify := func(p *checkpoint.Proof, trace *traces.Trace) {
		t.Helper()
		if _, err := p.Verify(trace, trusted(t, vkey)); err != nil {
			t.Errorf("Verify() = %v", err)
		}
	}
	documents := make(map[string]*traces.Trace)
	for _, run := range d.runs() {
		p, err := prove(run)
		check.NoError(t, err)
		proofs[run], documents[run] = p, d.derived(run)
	}
	if done := d.prunes("2026-11-21T09:10:00.000Z", signer); done.Runs != 3 {
		t.Fatalf("Prune() = %+v", done)
	}
	for run, p := range proofs { // each stands alone
		verify(p, documents[run])
		again, err := prove(run)
		if slices.Contains(old, run) {
			if !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("Prove() of a pruned run = %v", err)
			}
			continue
		}
		check.NoError(t, err)
		verify(again, documents[run])
	}
}

// derived is the trace of a run, read.
func (d *fixture) derived(run string) (trace *traces.Trace) {
	d.TB.Helper()
	d.Inspect(func(r ledger.Reader) error {
		doc, err := ledger.Trace(context.Background(), r, run, d.replayer(nil))
		if err == nil {
			trace, err = traces.Read(doc)
		}
		return err
	})
	return trace
}

// cosign has a witness cosign the state of a log.
func cosign(t *testing.T, w *witnesstest.Witness, signed []byte, s ledger.Store) (cosigned []byte, err error) {
	t.Helper()
	key, err := checkpoint.WitnessVerifier(w.Key)
	check.NoError(t, err)
	to, err := checkpoint.NewWitness(w.URL, key)
	check.NoError(t, err)
	err = s.View(t.Context(), func(r ledger.Reader) error {
		cosigned, err = to.Cosign(t.Context(), signed, r)
		return err
	})
	return cosigned, err
}
