package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
)

// Rows returns, as text, all rows of a store that follow from its log, and the entries and blobs.
func Rows(tb testing.TB, s ledger.Store) map[string][]string {
	tb.Helper()
	rows := make(map[string][]string)
	err := s.View(context.Background(), func(r ledger.Reader) error {
		return errors.Join(
			texts(rows, "entries", r.Entries(0)), texts(rows, "blobs", r.Blobs()), texts(rows, "requests", r.Runs(ledger.Filter{})),
			texts(rows, "tokens", r.Tokens()), texts(rows, "blocks", r.Blocks()))
	})
	check.NoError(tb, err)
	return rows
}

func texts[T any](all map[string][]string, of string, rows iter.Seq2[T, error]) error {
	for row, err := range rows {
		if err != nil {
			return err
		}
		all[of] = append(all[of], fmt.Sprintf("%+v", row))
	}
	return nil
}

// Verify verifies the ledger of a store, its projections, and that it contains a checkpoint, if there is one.
func Verify(tb testing.TB, s ledger.Store, c *checkpoint.Checkpoint) (report ledger.Report) {
	tb.Helper()
	ctx := context.Background()
	err := s.View(ctx, func(r ledger.Reader) (err error) {
		if report, err = ledger.Verify(ctx, r, ledger.VerifyOptions{Checkpoint: c}); err != nil {
			return err
		}
		different, err := ledger.Rebuild(ctx, r, nil)
		if len(different) > 0 {
			tb.Errorf("rows differ: %v", different)
		}
		return err
	})
	check.NoError(tb, err)
	return report
}

// State returns the state of a store's log.
func State(tb testing.TB, s ledger.Store) (c checkpoint.Checkpoint) {
	tb.Helper()
	err := s.View(context.Background(), func(r ledger.Reader) (err error) {
		c, err = ledger.TakeCheckpoint(r)
		return err
	})
	check.NoError(tb, err)
	return c
}

// NewSigner makes a key for checkpoints of a store's log, which the log does not have yet.
func NewSigner(tb testing.TB, s ledger.Store) (signer note.Signer, vkey string) {
	tb.Helper()
	private, vkey, err := checkpoint.NewKey(State(tb, s).Origin)
	check.NoError(tb, err)
	signer, err = note.NewSigner(private)
	check.NoError(tb, err)
	return signer, vkey
}

// SignState signs the state of a store's log.
func SignState(tb testing.TB, s ledger.Store, by note.Signer) []byte {
	tb.Helper()
	signed, err := checkpoint.Sign(State(tb, s), by)
	check.NoError(tb, err)
	return signed
}

// ReplaceRun puts a row in place of the row of the same run, as somebody does who can write the table.
func ReplaceRun(tx ledger.Tx, q ledger.RunRow) error {
	return errors.Join(tx.Prune(nil, []string{q.RunID}, nil), tx.AddRun(q))
}
