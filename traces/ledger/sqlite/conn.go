package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"modernc.org/sqlite"

	"pgfsm/traces/ledger/sqlrows"
)

// openPool returns a pool of connections to a file. The settings are parameters of SQLite's URIs
// and of the driver.
func openPool(file identity, busy time.Duration, settings url.Values) (*sql.DB, error) {
	c, err := sqlite.NewConnector(dataSourceName(file.path, busy, settings))
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector{c, file}), nil
}

// A connector does not open a file that was moved or replaced.
type connector struct {
	driver.Connector
	file identity
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := c.file.checkUnmoved(); err != nil {
		return nil, err
	}
	return c.Connector.Connect(ctx)
}

// dataSourceName writes a path and settings in the driver's form. Unknown names in double quotes
// are errors, and a schema cannot damage the file or call functions.
func dataSourceName(path string, busy time.Duration, settings url.Values) string {
	q := maps.Clone(settings)
	for key, value := range map[string]string{ // in any order
		"_busy_timeout": strconv.FormatInt(busy.Milliseconds(), 10), "_defensive": "1", "_dqs": "0", "_error_rc": "1",
		"_pragma": "trusted_schema(0)",
	} {
		q.Add(key, value)
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String()
}

// maxPrepared bounds the prepared statements that are cached: all fixed ones, and the filters in
// use.
const maxPrepared = 128

// An executor runs statements: on the writer's connection, in a view, or on the readers' pool. It
// prepares each statement once.
type executor struct {
	on       runner
	mu       sync.Mutex
	prepared map[string]*sql.Stmt
}

type runner interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func newExecutor(on runner) *executor { return &executor{on: on, prepared: make(map[string]*sql.Stmt)} }

// A view is a transaction that reads. It uses the prepared statements of its connection's pool
// until the pool is closed.
type view struct {
	*sql.Tx
	pool *executor
}

func (v view) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt, _ := v.pool.prepare(query); stmt != nil {
		return v.StmtContext(ctx, stmt), nil
	}
	return v.Tx.PrepareContext(ctx, query)
}

// prepare returns the statement of a query, or nil if too many are prepared.
func (s *executor) prepare(query string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stmt := s.prepared[query]
	if stmt != nil || len(s.prepared) == maxPrepared {
		return stmt, nil
	}
	stmt, err := s.on.PrepareContext(context.Background(), query)
	if stmt != nil {
		s.prepared[query] = stmt
	}
	return stmt, err
}

// closeStatements closes the statements. [sql.Conn] does not close its own, and SQLite keeps the
// file open for them.
func (s *executor) closeStatements() {
	for _, stmt := range s.prepared { // in any order
		stmt.Close()
	}
}

// exec runs a statement and returns how many rows it changed.
func (s *executor) exec(ctx context.Context, query string, args ...any) (int64, error) {
	stmt, err := s.prepare(query)
	if err != nil {
		return 0, err
	}
	var result sql.Result
	if stmt != nil {
		result, err = stmt.ExecContext(ctx, args...)
	} else {
		result, err = s.on.ExecContext(ctx, query, args...)
	}
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// query runs a query. The driver cannot run a statement while its rows are read, so query prepares
// a query again if it is among the open ones.
func (s *executor) query(ctx context.Context, open []*cursor, text string, args ...any) (_ *cursor, err error) {
	var stmt *sql.Stmt
	if !slices.ContainsFunc(open, func(c *cursor) bool { return c.query == text }) {
		if stmt, err = s.prepare(text); err != nil {
			return nil, err
		}
	}

	var rows *sql.Rows
	if stmt != nil {
		rows, err = stmt.QueryContext(ctx, args...)
	} else {
		rows, err = s.on.QueryContext(ctx, text, args...)
	}

	if err != nil {
		return nil, err
	}

	columns, err := rows.Columns()
	c := &cursor{
		rows:  rows,
		query: text,
		row:   sqlrows.Row{Values: make([]any, len(columns))},
		into:  make([]any, len(columns)),
	}

	// The pointers stay the same for all rows.
	for i := range c.into {
		c.into[i] = &c.row.Values[i]
	}

	return c, err
}

// A cursor is a query's rows.
type cursor struct {
	rows  *sql.Rows
	query string
	row   sqlrows.Row
	into  []any // pointers to the row's values, so that Scan converts none
	of    *source
}

// scanNext reports whether there is a further row.
func (c *cursor) scanNext() (bool, error) {
	if !c.rows.Next() {
		return false, c.rows.Err()
	}
	return true, c.rows.Scan(c.into...)
}

// Next implements [sqlrows.Rows.Next].
func (c *cursor) Next() (*sqlrows.Row, error) {
	ok, err := c.scanNext()
	if err != nil || !ok {
		return nil, explainError(c.of.path, err)
	}
	return &c.row, nil
}

// Close implements [sqlrows.Rows.Close].
func (c *cursor) Close() {
	c.rows.Close()
	c.of.open = slices.DeleteFunc(c.of.open, func(o *cursor) bool { return o == c })
}
