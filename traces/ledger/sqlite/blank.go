package sqlite

import (
	"context"
	"database/sql/driver"
	_ "embed"
	"errors"
	"fmt"
	"sync"
)

// blankScript makes of an empty file, in one transaction, what the migrations make of it one after the other. A test writes it, from
// them, and holds it to them.
//
//go:embed blank.sql
var blankScript string

// writeBlank runs blankScript. It is not kept prepared: it runs once.
func writeBlank(ctx context.Context, c *conn) error {
	_, err := c.raw.(driver.ExecerContext).ExecContext(ctx, blankScript, nil)
	return err
}

// blankSchema is that of a file that was just made.
var blankSchema = sync.OnceValues(func() (_ []object, err error) {
	c, err := dial(context.Background(), "/pgfsm-blank", BusyTimeout, map[string][]string{"vfs": {"memdb"}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := writeBlank(context.Background(), c); err != nil {
		return nil, err
	}
	return schemaOf(c)
})

// establish makes a ledger of a file in which nothing is, if it is one, and reports whether it was. Nobody else migrates.
func establish(ctx context.Context, c *conn) (bool, error) {
	if n, err := c.number("SELECT count(*) FROM sqlite_schema"); n > 0 || err != nil {
		return false, err
	}
	if err := writeBlank(ctx, c); err != nil {
		c.rollback()
		return false, fmt.Errorf("a new ledger: %w", err)
	}
	// The file itself is a ledger from then on: who may only read finds one also without the log.
	_, _, err := checkpoint(c, "TRUNCATE")
	return true, err
}
