// Package sqlrows reads and writes the rows of a ledger in SQL, for every database that has a
// [ledger.Store].
package sqlrows

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"pgfsm/traces/ledger"
)

// errOver is returned if a transaction is used after its function has returned.
var errOver = errors.New("the transaction is over")

// A Dialect describes the differences between the databases. Parameters are question marks in all
// of them.
type Dialect struct {
	Ledger    string // name of the ledger in errors
	Position  string // function that finds a text in another one
	Unindexed string // prefix of a column that must not be looked up in an index
	Args      string // expression for the arguments of a run, also where only its entry has them
	HexRun    string // expression for the id of a run in lower-case hexadecimal
	Session   string // expression for the client's session in the body of a prompt, as its index has it
	// Condition that the actor, the server or the tool equals each parameter.
	Name func(column string) string
}

// A Source runs the statements of one transaction.
type Source interface {
	// Query runs a query and reads its rows in pages of the given size. A query with pages of one
	// row has at most one row.
	Query(page int, query string, args ...any) (Rows, error)
	// Write runs a statement, at the latest before the next query or the commit. If a table is
	// given, the statement must change exactly one row of it; otherwise the error names the table
	// and the key.
	Write(table string, key any, query string, args ...any) error
}

// Rows are the rows of a query.
type Rows interface {
	// Next returns the next row, or nil at the end. The row is valid until the next call.
	Next() (*Row, error)
	Close()
}

// A Tx is a transaction that reads, and, in Update, writes. It implements the parts of [ledger.Tx]
// that do not depend on the database.
type Tx struct {
	source  Source
	dialect *Dialect
	ctx     context.Context
	over    bool
	failed  error // the first error of a write: the transaction may have ended with it
	wrote   bool
	open    []Rows
}

// New returns a transaction, which is over after [Tx.Finish].
func New(ctx context.Context, source Source, d *Dialect) Tx {
	return Tx{source: source, dialect: d, ctx: ctx}
}

// Finish ends the transaction and closes the rows of sequences that the caller left before their
// end.
func (t *Tx) Finish() {
	t.over = true
	for _, rows := range t.open {
		rows.Close()
	}
	t.open = nil
}

// Change runs a statement that must change exactly one row of a table, or any number of rows if no
// table is given. An error ends the transaction: SQLite may have rolled it back, and later writes
// would be committed separately.
func (t *Tx) Change(table string, key any, query string, args ...any) error {
	if err := t.Usable(); err != nil {
		return err
	}
	t.wrote = true
	t.failed = t.source.Write(table, key, query, args...)
	return t.failed
}

// Fail ends the transaction with an error: it cannot be committed.
func (t *Tx) Fail(err error) error {
	t.failed = err
	return err
}

// Wrote reports whether a statement that writes was run.
func (t *Tx) Wrote() bool { return t.wrote }

// Usable returns the reason why the transaction cannot be used; nil if it can.
func (t *Tx) Usable() error {
	switch {
	case t.over:
		return errOver
	case t.failed != nil:
		return t.failed
	}
	return t.ctx.Err()
}

// Sizes of pages. A row of most tables has a few hundred bytes; a blob may have a megabyte.
const (
	onePage   = 1
	fullPage  = 256
	largePage = 16
)

// queryRows returns the rows of a query; read converts each row.
func queryRows[T any](t *Tx, page int, read func(*Row) T, query string, args ...any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if err := t.Usable(); err != nil {
			yield(none, err)
			return
		}
		rows, err := t.source.Query(page, query, args...)
		if err != nil {
			yield(none, err)
			return
		}

		t.open = append(t.open, rows)
		defer t.closeRows(rows)

		for {
			// A caller may keep the sequence after the transaction has ended.
			if err := t.Usable(); err != nil {
				yield(none, err)
				return
			}
			row, err := rows.Next()
			if err != nil {
				yield(none, err)
				return
			}
			if row == nil {
				return
			}

			row.at, row.err = 0, nil
			v := read(row)
			if row.err != nil {
				yield(none, fmt.Errorf("ledger %s: %w; pgfsm ledger verify says what else does not fit",
					t.dialect.Ledger, row.err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// closeRows closes rows that were read to the end or left.
func (t *Tx) closeRows(rows Rows) {
	rows.Close()
	t.open = slices.DeleteFunc(t.open, func(o Rows) bool { return o == rows })
}

// queryRow returns the row of a query, or ErrNotFound.
func queryRow[T any](t *Tx, noun string, key any, read func(*Row) T, query string, args ...any) (T, error) {
	for v, err := range queryRows(t, onePage, read, query, args...) {
		return v, err
	}
	var none T
	return none, fmt.Errorf("%s %v: %w", noun, key, ledger.ErrNotFound)
}
