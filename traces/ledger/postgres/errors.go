package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"pgfsm/traces/ledger"
)

// What can be wrong with a database.
var (
	ErrNoLedger = fmt.Errorf("%w: this role finds no tables of a ledger in the database; run pgfsm ledger init", ledger.ErrSchema)
	ErrUnsafe   = errors.New("the database can lose what it acknowledges")
	ErrClosed   = errors.New("the ledger is closed")

	ErrUnreadable = errors.New("the database's answers cannot be read")

	errNoAnswer = errors.New("the database does not answer")
	errReadOnly = fmt.Errorf("%w: it was opened to read only", ledger.ErrReadOnly)
	errStandby  = errors.New("it is a standby, or read-only")
)

// Codes of PostgreSQL, https://www.postgresql.org/docs/15/errcodes-appendix.html.
const (
	codeNoRight  = "42501"
	codeNoTable  = "42P01"
	codeNoColumn = "42703"
	codeExists   = "42P07"
)

// passing are the classes of codes of errors that pass without a change of the ledger: the connection, the state of the transaction, a login that is refused,
// rollbacks, resources, an operator's intervention, the system.
var passing = []string{"08", "25", "28", "40", "53", "55", "57", "58"}

// explained returns what an error of pgx means for the ledger. ctx is the context of the statement.
func explained(ctx context.Context, err error) error {
	var coded *pgconn.PgError
	switch {
	case errors.Is(context.Cause(ctx), errNoAnswer):
		return unavailable(errNoAnswer)
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ledger.ErrLost), errors.Is(err, ledger.ErrSchema), errors.Is(err, ledger.ErrUnavailable),
		errors.Is(err, ErrUnsafe), errors.Is(err, ErrUnreadable):
		return err // of a new connection
	case !errors.As(err, &coded), slices.Contains(passing, coded.Code[:2]):
		return unavailable(err)
	case coded.Code == codeNoRight:
		return unavailable(fmt.Errorf("this role lacks a right: %s: run pgfsm ledger init as the owner of the database, and the statements that it prints", coded.Message))
	case coded.Code == codeNoTable, coded.Code == codeNoColumn:
		return fmt.Errorf("%w: %s", ledger.ErrSchema, coded.Message)
	case coded.Code == codeExists:
		return fmt.Errorf("%w: %s, and is not one of pgfsm: use another schema or database", ledger.ErrSchema, coded.Message)
	}
	return fmt.Errorf("the ledger: %w", err)
}

// unavailable says that nothing was recorded, and that it may be later. It wraps only [errStandby]: contexts of this package are no contexts of its callers.
func unavailable(err error) error {
	if err == errStandby {
		return fmt.Errorf("%w: %w: the database: %w", ledger.ErrUnavailable, ledger.ErrReadOnly, err)
	}
	return fmt.Errorf("%w: the database: %v", ledger.ErrUnavailable, err)
}
