package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pgfsm/traces/ledger"
)

// An object is part of a file's schema. A trigger, a view or a changed table can make a successful
// write record nothing, or something else.
type object struct{ kind, name, of, sql string }

func (o object) compareName(p object) int {
	return strings.Compare(o.kind+"\x00"+o.name, p.kind+"\x00"+p.name)
}

// statistics lists the tables that ANALYZE makes. They change how SQLite looks for rows, not which
// rows it finds.
var statistics = []object{
	{"table", "sqlite_stat1", "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"},
	{"table", "sqlite_stat4", "sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"},
}

// schemaOf returns the objects of a file, ordered by kind and name.
func schemaOf(db *sql.DB) (all []object, err error) {
	rows, err := db.Query("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var o object
		if err := rows.Scan(&o.kind, &o.name, &o.of, &o.sql); err != nil {
			return nil, fmt.Errorf("the schema: %w (%w)", ErrNotLedger, err)
		}
		if !slices.Contains(statistics, o) {
			all = append(all, o)
		}
	}
	slices.SortStableFunc(all, object.compareName)
	return all, rows.Err()
}

// checkUnaltered rejects a file of today's version whose schema differs from that of a new file, or
// allows anybody to remove recorded rows. The error wraps a [*ledger.Fault].
func checkUnaltered(db *sql.DB, path string) error {
	want, err := newSchema()
	if err != nil {
		return fmt.Errorf("ledger %s: its schema cannot be judged: %w", path, err)
	}
	have, err := schemaOf(db)
	if err != nil {
		return err
	}

	fault := findDifference(want, have)
	if fault == nil {
		n, err := selectNumber(db, "SELECT count(*) FROM pruning")
		if err != nil {
			return err
		}
		if n > 0 {
			fault = &ledger.Fault{Table: "pruning", Key: "a row",
				What: "it is not empty: what was recorded can be removed"}
		}
	}

	if fault == nil {
		return nil
	}

	return fmt.Errorf("ledger %s: %w; keep it to find out who did that, and restore a backup: %s", path, fault,
		afterRestoring)
}

// findDifference names the first object that is missing, changed or unexpected.
func findDifference(want, have []object) *ledger.Fault {
	fault := func(o object, what string) *ledger.Fault {
		return &ledger.Fault{Table: "sqlite_schema", Key: o.kind + " " + o.name, What: what}
	}
	// Both lists are sorted, so the first difference names a missing or an unexpected object.
	for i := range max(len(want), len(have)) {
		switch {
		case i == len(have):
			return fault(want[i], "it is missing")
		case i == len(want):
			return fault(have[i], "a ledger has no such thing")
		case want[i] == have[i]:
		case want[i].compareName(have[i]) < 0:
			return fault(want[i], "it is missing")
		case want[i].compareName(have[i]) > 0:
			return fault(have[i], "a ledger has no such thing")
		default:
			return fault(have[i], "it was changed")
		}
	}
	return nil
}

// Check reads the whole file and checks its pages, its rows, and that each index has the rows of
// its table. If one of them is damaged, the error is a [*ledger.Fault].
func (t *tx) Check(ctx context.Context) error {
	if err := t.Usable(); err != nil {
		return err
	}
	c, err := t.source.query(ctx, nil, "PRAGMA integrity_check(1)")
	if err != nil {
		return damageError(ctx, t.store.path, err)
	}
	defer c.rows.Close()
	ok, err := c.scanNext()
	if err != nil || !ok {
		return damageError(ctx, t.store.path, errors.Join(err, ctx.Err()))
	}
	if found := c.row.Text(); found != "ok" {
		return &ledger.Fault{Table: "file", Key: "integrity", What: found}
	}
	return nil
}

// damageError returns a fault if an error says that the file is damaged.
func damageError(ctx context.Context, path string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if code := resultCode(err); code == codeCorrupt || code == codeNotADB {
		return &ledger.Fault{Table: "file", Key: "integrity", What: err.Error()}
	}
	return explainError(path, err)
}
