package ledger_test

import (
	"errors"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/checkpoint/witnesstest"
	"pgfsm/traces/ledger/ledgertest"
)

// grown is another process that adds to a store.
func grown(t *testing.T, s *ledgertest.Store) {
	t.Helper()
	d := openAfterwards(t, s.Open())
	d.passes(1)
	check.NoError(t, d.Close())
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

// TestContinueAfterLoss puts an older copy of a ledger back, and begins a new log. A witness refuses the former one for ever.
func TestContinueAfterLoss(t *testing.T) {
	source, _ := inMemory(t)
	const origin = "pgfsm-log-2"
	signer, vkey := ledgertest.NewSigner(t, source)
	oldest := ledgertest.SignState(t, source, signer)
	grown(t, source)
	common := ledgertest.SignState(t, source, signer)
	restored := source.Copy(t)
	grown(t, source)
	middle := ledgertest.SignState(t, source, signer)
	grown(t, source)
	lost := ledgertest.SignState(t, source, signer)
	w := witnesstest.New(t)
	w.Trust(t, vkey)
	_, err := cosign(t, w, lost, source)
	check.NoError(t, err)
	grown(t, restored) // before anybody saw that it is the older copy
	fork := ledgertest.SignState(t, restored, signer)

	m, target := moving(t), ledgertest.NewStore(t)
	for _, signed := range [][][]byte{{oldest}, {common, fork}, nil} {
		if err := ledger.ContinueAfterLoss(t.Context(), restored, target, signed, origin, m); !errors.Is(err, ledger.ErrNothingLost) {
			t.Errorf("ContinueAfterLoss() = %v, want ErrNothingLost", err)
		}
	}
	all := [][]byte{oldest, lost, fork, common, middle}
	same := ledgertest.State(t, restored).Origin
	if err := ledger.ContinueAfterLoss(t.Context(), restored, target, all, same, m); err == nil || !strings.Contains(err.Error(), "needs another one") {
		t.Errorf("ContinueAfterLoss() with the former origin = %v", err)
	}
	broken := errors.New("broken")
	restored.Fail = ledgertest.FailAt(ledgertest.Commit, 0, broken)
	if err := ledger.ContinueAfterLoss(t.Context(), restored, target, all, origin, m); !errors.Is(err, broken) {
		t.Errorf("ContinueAfterLoss() = %v, want %v", err, broken)
	}
	restored.Fail = nil
	for range 2 { // the first call adds what is missing, the second nothing
		if err := ledger.ContinueAfterLoss(t.Context(), restored, target, all, origin, m); err != nil {
			t.Fatalf("ContinueAfterLoss() = %v", err)
		}
	}
	for _, s := range []*ledgertest.Store{restored, target} {
		ledgertest.Verify(t, s, nil)
	}
	if _, err := ledger.Open(t.Context(), restored, ledger.Options{}); !errors.Is(err, ledger.ErrLedgerClosed) {
		t.Errorf("Open() = %v, want ErrLedgerClosed", err)
	}
	d := openAfterwards(t, target.Open())
	first := string(d.Events(0)[0].Payload)
	for what, signed := range map[string][]byte{`"common":`: common, `"lost":`: lost} { // in any order
		if text := strings.ReplaceAll(string(signed), "\n", `\n`); !strings.Contains(first, what+`"`+text+`"`) {
			t.Errorf("entry 0 is %s, want %s%s", first, what, text)
		}
	}
	if now := ledgertest.State(t, target); now.Origin != origin || now.Size != 1 {
		t.Errorf("the new log is at %+v", now)
	}
	if len(d.runs()) > 0 {
		t.Errorf("runs moved: %v", d.runs())
	}

	former := ledgertest.SignState(t, restored, signer)
	if _, err := cosign(t, w, former, restored); !errors.Is(err, checkpoint.ErrInconsistent) {
		t.Errorf("the witness on the former log: %v", err)
	}
	d.passes(1)
	signer, vkey = ledgertest.NewSigner(t, target)
	next := ledgertest.SignState(t, target, signer)
	w.Trust(t, vkey)
	if _, err := cosign(t, w, next, target); err != nil {
		t.Errorf("the witness on the new log: %v", err)
	}
}

// TestVerifyNamesAForgedFormerLog changes what entry 0 says of the former log.
func TestVerifyNamesAForgedFormerLog(t *testing.T) {
	source, _ := inMemory(t)
	signer, _ := ledgertest.NewSigner(t, source)
	signed := ledgertest.SignState(t, source, signer)
	grown(t, source)
	lost := ledgertest.SignState(t, source, signer)
	target, m := ledgertest.NewStore(t), moving(t)
	check.NoError(t, ledger.ContinueAfterLoss(t.Context(), ledgertest.NewStore(t), target, [][]byte{lost}, "pgfsm-log-2", m))
	origin := ledgertest.State(t, source).Origin
	text := func(signed []byte) string { return strings.ReplaceAll(string(signed), "\n", `\n`) }
	d := &fixture{ledgertest.Open(t, target, ledgertest.NewClock(t))}
	d.forge(t,
		forgery{"nothing-changed", unedited, ""},
		forgery{"its-own-origin", edits(ledger.LogCreated, `"origin":"pgfsm-log-2"`, `"origin":"`+origin+`"`), "needs another one"},
		forgery{"no-checkpoint", edits(ledger.LogCreated, text(lost), "x"), "the lost checkpoint"},
		forgery{"no-common-checkpoint", edits(ledger.LogCreated, `{"lost"`, `{"common":"x","lost"`), "the common checkpoint"},
		forgery{"common-is-not-smaller", edits(ledger.LogCreated, `{"lost"`, `{"common":"`+text(lost)+`","lost"`), "not smaller"},
		forgery{"common-is-smaller", edits(ledger.LogCreated, `{"lost"`, `{"common":"`+text(signed)+`","lost"`), ""},
	)
}
