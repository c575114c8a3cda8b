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

// Most requests change after the first put, but their indexed columns then stay the same, except
// three. A statement that does not set a column does not touch the column's indexes.
const updateRequest = "UPDATE requests SET updated = ?3, status = ?5, state = ?6, env = ?9, definition = ?14, " +
	"mode = ?16, score = ?17, policy = ?18, code = ?19, reason = ?20, binding = ?21, approvers = ?22, quorum = ?23, agreed = ?24, " +
	"expires = ?25, owner = ?26, sent = ?27, ended = ?28, steps = ?29, head = ?30, entry = ?31, entries = ?32, delivered = ?33, " +
	"on_behalf_of = ?34, client = ?35, trace = ?36, call_trace = ?37, display = ?38, on_behalf_of_display = ?39 " +
	"WHERE run_id = ?1 AND at = ?2 AND kind = ?4 AND actor = ?7 AND task = ?8 AND server = ?10 AND tool = ?11 AND args = ?12 " +
	"AND arguments = ?13 AND bundle = ?15"

// Generation implements [ledger.Tx.Generation]. SQLite changes the data version of a connection when
// it sees a commit of another connection, so the pinned writer asks after BEGIN IMMEDIATE, when it
// sees the last commit and nobody else can write. The data version does not count the writer's own
// commits.
func (t *tx) Generation() (ledger.Generation, error) {
	if err := t.Usable(); err != nil {
		return ledger.Generation{}, err
	}
	if t.version == 0 { // it does not change during the transaction
		if err := t.readVersion(); err != nil {
			return ledger.Generation{}, explainError(t.store.path, err)
		}
	}
	written := t.store.written
	if t.Wrote() {
		written++
	}
	return ledger.Generation{t.version, written}, nil
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

// PutRun implements [ledger.Tx.PutRun].
func (t *tx) PutRun(r ledger.RunRow) error {
	row, err := sqlrows.RequestRow(&r)
	if err != nil {
		return err
	}
	if err := t.Change("", nil, updateRequest, row...); err != nil || t.source.changed != 0 {
		return err
	}
	return t.Tx.PutRun(r)
}

// Prune implements [ledger.Tx.Prune].
func (t *tx) Prune(entries []ledger.Range, runs []string, blobs []canonical.Digest) error {
	if err := t.Change("row of", "pruning", "INSERT INTO pruning (since) VALUES (1)"); err != nil {
		return err
	}
	if err := t.Tx.Prune(entries, runs, blobs); err != nil {
		return err
	}
	t.pruned = true
	return t.Change("row of", "pruning", "DELETE FROM pruning")
}
