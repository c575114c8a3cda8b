package sqlite

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write blank.sql anew instead of comparing it")

// scriptOf writes what makes the file of a connection of an empty one. SQLite makes by itself what has no text, or a name that begins with its own.
func scriptOf(t *testing.T, x *tx) string {
	lines := []string{"-- Generated from the migrations by `make docs`.", "BEGIN IMMEDIATE;"}
	for _, query := range []string{
		"SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid",
		"SELECT 'INSERT INTO goose_db_version (version_id, is_applied) VALUES (' || version_id || ', ' || is_applied || ');' " +
			"FROM goose_db_version ORDER BY id",
		"SELECT 'PRAGMA application_id = ' || application_id || ';' FROM pragma_application_id",
	} {
		lines = append(lines, listed(t, all(x, (*row).text, query))...)
	}
	return strings.Join(append(lines, "COMMIT;", ""), "\n")
}

// TestGoldenBlank: a new file is what the migrations make of an empty one.
func TestGoldenBlank(t *testing.T) {
	const golden = "blank.sql"
	type contents struct {
		Schema, Versions []string
		ID               int64
	}
	of := func(path string) (is contents, script string) {
		c, err := dial(t.Context(), path, BusyTimeout, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		x := &tx{c: c, ctx: t.Context(), path: path}
		is.Schema = listed(t, all(x, (*row).text, "SELECT type || ' ' || name || ' ' || tbl_name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1"))
		is.Versions = listed(t, all(x, (*row).text, "SELECT id || ' ' || version_id || ' ' || is_applied FROM goose_db_version ORDER BY id"))
		if is.ID, err = c.number("SELECT application_id FROM pragma_application_id"); err != nil {
			t.Fatal(err)
		}
		return is, scriptOf(t, x)
	}
	path := filepath.Join(t.TempDir(), "migrated.db")
	if err := os.WriteFile(path, nil, fileMode); err != nil {
		t.Fatal(err)
	}
	if err := migrate(t.Context(), path, BusyTimeout, schemaVersion); err != nil {
		t.Fatal(err)
	}
	migrated, script := of(path)
	if *update {
		if err := os.WriteFile(golden, []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(script, blankScript); diff != "" {
		t.Errorf("%s (-what the migrations make +it); run make docs:\n%s", golden, diff)
	}
	made, _ := of(fresh(t).path)
	if diff := cmp.Diff(migrated, made); diff != "" {
		t.Errorf("a new file (-migrated +made):\n%s", diff)
	}
	if len(migrated.Versions) != schemaVersion+1 || migrated.ID != applicationID { // goose counts from 0
		t.Errorf("migrated, it has versions %q and the id %#x", migrated.Versions, migrated.ID)
	}
}
