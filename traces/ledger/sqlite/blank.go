package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/pressly/goose/v3"
)

// A blankLedger is what a file is like that had all migrations and nothing else.
type blankLedger struct {
	schema []object // as schemaOf returns it
	script string   // makes such a file of an empty one, in one transaction
}

// blank has all migrations done, in memory, once a process: what a ledger is to be is known by that, and a new one is made in one
// transaction. One for each migration takes ten times as long.
var blank = sync.OnceValues(func() (f blankLedger, err error) {
	ctx := context.Background()
	// Databases in memory of one name are one database, as long as one of the connections to it is open.
	const name = "/pgfsm-blank-ledger"
	settings := map[string][]string{"vfs": {"memdb"}}
	c, err := dial(ctx, name, BusyTimeout, settings)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := migrateWith(ctx, address(name, BusyTimeout, settings), schemaVersion); err != nil {
		return f, err
	}
	if f.schema, err = schemaOf(c); err != nil {
		return f, err
	}
	f.script, err = scriptOf(ctx, c)
	return f, err
})

// scriptOf writes what makes the file that c is connected to of an empty one. SQLite makes by itself what has no text or begins with its name.
func scriptOf(ctx context.Context, c *conn) (string, error) {
	const versions = "INSERT INTO " + goose.DefaultTablename + " (version_id, is_applied) VALUES "
	var script strings.Builder
	script.WriteString("BEGIN IMMEDIATE;")
	for _, query := range []string{
		"SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid",
		"SELECT '" + versions + "(' || version_id || ', ' || is_applied || ');' FROM " + goose.DefaultTablename + " ORDER BY id",
		"SELECT 'PRAGMA application_id = ' || application_id || ';' FROM pragma_application_id",
	} {
		for text, err := range all(&tx{c: c, ctx: ctx}, (*row).text, query) {
			if err != nil {
				return "", err
			}
			script.WriteString(text)
		}
	}
	script.WriteString("COMMIT")
	return script.String(), nil
}

// establish makes a ledger of a file in which nothing is, if it is one, and reports whether it was. Nobody else migrates.
func establish(ctx context.Context, c *conn) (bool, error) {
	if n, err := c.number("SELECT count(*) FROM sqlite_schema"); n > 0 || err != nil {
		return false, err
	}
	f, err := blank()
	if err != nil {
		return false, fmt.Errorf("what a ledger is to be: %w", err)
	}
	// Not with exec: what is done once is not kept prepared.
	if _, err := c.raw.(driver.ExecerContext).ExecContext(ctx, f.script, nil); err != nil {
		c.rollback()
		return false, err
	}
	// The file itself is a ledger from then on: who may only read finds one also without the log.
	_, _, err = checkpoint(c, "TRUNCATE")
	return true, err
}
