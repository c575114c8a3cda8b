package sqlite

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"pgfsm/traces/ledger"
)

// definition finds what schemaScript makes: its kind and its name.
var definition = regexp.MustCompile(`(?m)^CREATE (\w+) (\w+)`)

// statistics lists the tables that ANALYZE makes. They change how SQLite looks for rows, not which
// rows it finds.
var statistics = map[string]bool{
	"CREATE TABLE sqlite_stat1(tbl,idx,stat)":                true,
	"CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)": true,
}

// Check reads the whole file and checks its schema, its pages, its rows, and that each index has
// the rows of its table. If one of them is damaged, the error is a [*ledger.Fault].
func (t *tx) Check(ctx context.Context) error {
	if err := t.Usable(); err != nil {
		return err
	}
	if err := t.checkSchema(ctx); err != nil {
		return damageError(ctx, t.store.path, err)
	}

	found, err := t.selectTexts(ctx, "PRAGMA integrity_check(1)")
	if err != nil || len(found) == 0 {
		return damageError(ctx, t.store.path, errors.Join(err, ctx.Err()))
	}
	if found[0] != "ok" {
		return &ledger.Fault{Table: "file", Key: "integrity", What: found[0]}
	}
	return nil
}

// checkSchema compares the file's schema with that of a new file, and checks that nothing allows
// anybody to remove what was recorded. A trigger, a view or a changed table can make a successful
// write record nothing, or something else.
func (t *tx) checkSchema(ctx context.Context) error {
	// SQLite stores the text of each statement that made a part of the schema, and executes the
	// texts when it opens the file. The indexes of keys have no text.
	objects, err := t.selectTexts(ctx, "SELECT type || ' ' || name || char(10) || sql FROM sqlite_schema WHERE sql <> ''")
	if err != nil {
		return err
	}
	found := make(map[string]string)
	for _, object := range objects {
		key, text, _ := strings.Cut(object, "\n")
		if !statistics[text] {
			found[key] = text
		}
	}

	fault := func(key, what string) error {
		return &ledger.Fault{Table: "sqlite_schema", Key: key, What: what}
	}
	for _, made := range definition.FindAllStringSubmatch(schemaScript, -1) {
		key := strings.ToLower(made[1]) + " " + made[2]
		text, ok := found[key]
		switch {
		case !ok:
			return fault(key, "it is missing")
		case !strings.HasPrefix(text, made[0]+" "), !strings.Contains(schemaScript, "\n"+text+";"):
			return fault(key, "it was changed")
		}
		delete(found, key)
	}
	if len(found) > 0 {
		return fault(slices.Min(slices.Collect(maps.Keys(found))), "a ledger has no such thing")
	}

	open, err := t.selectTexts(ctx, "SELECT 'since ' || since FROM pruning")
	if err == nil && len(open) > 0 {
		return &ledger.Fault{Table: "pruning", Key: "a row", What: "it is not empty: what was recorded can be removed"}
	}
	return err
}

// selectTexts returns the only column of a query.
func (t *tx) selectTexts(ctx context.Context, query string) (texts []string, err error) {
	rows, err := t.source.on.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, rows.Err()
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
