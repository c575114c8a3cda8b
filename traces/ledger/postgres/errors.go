package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"pgfsm/traces/ledger"
)

// Errors about the state of a database.
var (
	ErrNoLedger = fmt.Errorf("%w: this role finds no tables of a ledger in the database; run pgfsm ledger init",
		ledger.ErrSchema)
	ErrUnsafe     = errors.New("the database can lose what it acknowledges")
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

// passing lists the classes of errors that can pass without a change of the ledger: connection,
// state of the transaction, rejected login, rollback, resources, an operator's intervention,
// system.
var passing = []string{"08", "25", "28", "40", "53", "55", "57", "58"}

// explainError translates an error of pgx into an error of the ledger. ctx is the context of the
// statement.
func explainError(ctx context.Context, err error) error {
	var coded *pgconn.PgError
	switch {
	case errors.Is(context.Cause(ctx), errNoAnswer):
		return newUnavailable(errNoAnswer)
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ledger.ErrLost), errors.Is(err, ledger.ErrSchema), errors.Is(err, ledger.ErrUnavailable),
		errors.Is(err, ErrUnsafe), errors.Is(err, ErrUnreadable):
		return err // from opening a new connection
	case !errors.As(err, &coded), slices.Contains(passing, coded.Code[:2]):
		return newUnavailable(err)
	case coded.Code == codeNoRight:
		return newUnavailable(fmt.Errorf("this role lacks a right: %s: run pgfsm ledger init as the owner of the database, and the statements that it prints", coded.Message))
	case coded.Code == codeNoTable, coded.Code == codeNoColumn:
		return fmt.Errorf("%w: %s", ledger.ErrSchema, coded.Message)
	case coded.Code == codeExists:
		return fmt.Errorf("%w: %s, and is not one of pgfsm: use another schema or database", ledger.ErrSchema,
			coded.Message)
	}
	return fmt.Errorf("the ledger: %w", err)
}

// newUnavailable returns an error saying that nothing was recorded, and that a later attempt may
// succeed. It wraps only [errStandby]: callers must not take a context error of this package for
// one of their own.
func newUnavailable(err error) error {
	if err == errStandby {
		return fmt.Errorf("%w: %w: the database: %w", ledger.ErrUnavailable, ledger.ErrReadOnly, err)
	}
	return fmt.Errorf("%w: the database: %v", ledger.ErrUnavailable, err)
}
