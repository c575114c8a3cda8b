package sqlite

import (
	"context"
	"errors"
	"fmt"

	"pgfsm/internal/canonical"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlrows"
)

// A tx is a transaction that reads, and, in Update, writes.
type tx struct {
	sqlrows.Tx
	ctx       context.Context
	store     *Store
	source    *source
	committed bool
	pruned    bool
	version   int64 // the data version; 0 before it is read
}

func (s *Store) newTx(ctx context.Context, on *executor) *tx {
	source := &source{executor: on, path: s.path}
	return &tx{Tx: sqlrows.New(ctx, source, &s.dialect), ctx: ctx, store: s, source: source}
}

func newDialect(path string) sqlrows.Dialect {
	return sqlrows.Dialect{
		Ledger:    path,
		Position:  "instr",
		Unindexed: "+",
		Args:      "iif(args = '@', (SELECT e.body -> '$.events[0].call.args' FROM entries e WHERE e.idx = first), args)",
		HexRun:    "lower(hex(run))",
		Session:   "e.body ->> '$.events[0].session'",
		Name:      func(column string) string { return column + " = ?" },
	}
}

// A source runs the statements of a transaction.
type source struct {
	*executor
	path    string
	open    []*cursor
	changed int64 // rows changed by the last statement that writes
}

// Query implements [sqlrows.Source.Query]. SQLite reads rows on demand.
func (s *source) Query(_ int, query string, args ...any) (sqlrows.Rows, error) {
	c, err := s.query(context.Background(), s.open, query, args...)
	if err != nil {
		return nil, explainError(s.path, err)
	}
	c.of, s.open = s, append(s.open, c)
	return c, nil
}

// Write implements [sqlrows.Source.Write].
func (s *source) Write(table string, key any, query string, args ...any) error {
	n, err := s.exec(context.Background(), query, args...)
	s.changed = n
	switch {
	case err != nil:
		err = explainError(s.path, err)
	case table != "" && n != 1:
		err = fmt.Errorf("ledger %s: %w: %d rows were changed instead of one; pgfsm ledger verify looks for what prevents it",
			s.path, sqlrows.ErrUnrecorded, n)
	default:
		return nil
	}
	if table != "" {
		err = fmt.Errorf("%s %v: %w", table, key, err)
	}
	return err
}

// DataVersion implements [ledger.Tx.DataVersion]. SQLite changes the data version of a connection when
// it sees a commit of another connection, so the pinned writer asks after BEGIN IMMEDIATE, when it
// sees the last commit and nobody else can write. The data version does not count the writer's own
// commits.
func (t *tx) DataVersion() (ledger.DataVersion, error) {
	if err := t.Usable(); err != nil {
		return ledger.DataVersion{}, err
	}
	if t.version == 0 { // it does not change during the transaction
		if err := t.readVersion(); err != nil {
			return ledger.DataVersion{}, explainError(t.store.path, err)
		}
	}
	written := t.store.written
	if t.Wrote() {
		written++
	}
	return ledger.DataVersion{t.version, written}, nil
}

func (t *tx) readVersion() error {
	c, err := t.source.query(context.Background(), nil, "PRAGMA data_version")
	if err != nil {
		return err
	}
	defer c.rows.Close()
	if ok, err := c.scanNext(); err != nil || !ok {
		return errors.Join(err, errNoVersion)
	}
	t.version = c.row.Int64()
	return c.row.Err()
}

var errNoVersion = errors.New("PRAGMA data_version has no row")

// Prune implements [ledger.Tx.Prune].
func (t *tx) Prune(entries []ledger.PrunedEntry, runs []string, blobs []canonical.Digest) error {
	if err := t.Change("row of", "pruning", "INSERT INTO pruning (since) VALUES (1)"); err != nil {
		return err
	}
	if err := t.Tx.Prune(entries, runs, blobs); err != nil {
		return err
	}
	t.pruned = true
	return t.Change("row of", "pruning", "DELETE FROM pruning")
}
