// Package sqlitetest reads and damages files of SQLite for tests.
package sqlitetest

import (
	"database/sql"
	"os"
	"testing"

	_ "modernc.org/sqlite" // finds an index for EmptyIndex

	"pgfsm/internal/test/check"
)

// EmptyIndex removes all entries from an index of an SQLite file, and leaves the table unchanged. The index's root must be a leaf.
func EmptyIndex(t *testing.T, path, index string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	check.NoError(t, err)
	var root, size int64
	check.NoError(t, db.QueryRow("SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = ?", index).Scan(&root, &size))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	check.NoError(t, err)
	defer f.Close()
	// An empty leaf of an index: https://www.sqlite.org/fileformat2.html#b_tree_pages.
	page := make([]byte, size)
	page[0], page[5], page[6] = 0x0a, byte(size>>8), byte(size)
	if _, err := f.WriteAt(page, (root-1)*size); err != nil {
		t.Fatal(err)
	}
}

// Exec changes a ledger the way any program with write access to the file can.
func Exec(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	check.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// Query returns what any program reads from the file: the columns' names, and then the rows as text.
func Query(t testing.TB, path, query string) (table [][]string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	check.NoError(t, err)
	defer db.Close()
	rows, err := db.Query(query)
	check.NoError(t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	check.NoError(t, err)

	table = [][]string{columns}
	values, pointers := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		pointers[i] = &values[i]
	}
	for rows.Next() {
		check.NoError(t, rows.Scan(pointers...))
		row := make([]string, len(columns))
		for i, v := range values {
			row[i] = v.String
			if !v.Valid {
				row[i] = "NULL"
			}
		}
		table = append(table, row)
	}
	check.NoError(t, rows.Err())
	return table
}
