package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"modernc.org/sqlite"
)

// maxPrepared is how many statements a connection keeps prepared: all fixed ones, and the filters in use.
const maxPrepared = 128

// A conn is one connection and its prepared statements, for one goroutine at a time. It uses the driver directly: the pool,
// the conversions and the contexts of database/sql cost as much as the statements of a commit do.
type conn struct {
	raw  driver.Conn
	idle map[string][]driver.Stmt
	kept int
	args []driver.NamedValue
}

// dial opens a connection. The settings are those of SQLite's URIs and of the driver.
func dial(ctx context.Context, path string, busy time.Duration, settings url.Values) (*conn, error) {
	c, err := sqlite.NewConnector(address(path, busy, settings))
	if err != nil {
		return nil, err
	}
	raw, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{raw: raw, idle: make(map[string][]driver.Stmt)}, nil
}

// address writes a path and settings as the driver reads them. Names in double quotes that do not exist are errors, and
// what a schema says cannot damage the file or call functions.
func address(path string, busy time.Duration, settings url.Values) string {
	q := url.Values{
		"_busy_timeout": {strconv.FormatInt(busy.Milliseconds(), 10)},
		"_defensive":    {"1"}, "_dqs": {"0"}, "_error_rc": {"1"},
		"_pragma": append([]string{"trusted_schema(0)"}, settings["_pragma"]...),
	}
	for key, values := range settings { // the query is written in sorted order
		if key != "_pragma" {
			q[key] = values
		}
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String()
}

func (c *conn) close() error {
	for _, list := range c.idle { // in any order
		for _, s := range list {
			s.Close()
		}
	}
	c.idle = nil
	return c.raw.Close()
}

// take returns a prepared statement that nobody uses.
func (c *conn) take(query string) (driver.Stmt, error) {
	if list := c.idle[query]; len(list) > 0 {
		s := list[len(list)-1]
		c.idle[query] = list[:len(list)-1]
		return s, nil
	}
	return c.raw.Prepare(query)
}

// put gives a statement back.
func (c *conn) put(query string, s driver.Stmt) {
	list, known := c.idle[query]
	if !known && c.kept >= maxPrepared {
		s.Close()
		return
	}
	if !known {
		c.kept++
	}
	c.idle[query] = append(list, s)
}

// bind puts the arguments into the form that the driver wants. The driver copies them before it returns.
func (c *conn) bind(args []driver.Value) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// exec runs a statement and returns how many rows it changed.
func (c *conn) exec(ctx context.Context, query string, args ...driver.Value) (int64, error) {
	s, err := c.take(query)
	if err != nil {
		return 0, err
	}
	defer c.put(query, s)
	result, err := s.(driver.StmtExecContext).ExecContext(ctx, c.bind(args))
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// A cursor is a query's rows.
type cursor struct {
	c     *conn
	query string
	stmt  driver.Stmt
	rows  driver.Rows
	row
}

// A row is one row of a query. Its columns are taken one after the other; a value of another type than the column should
// have makes the row's error.
type row struct {
	values []driver.Value
	at     int
	err    error
}

func (c *conn) rows(query string, args ...driver.Value) (*cursor, error) {
	return c.rowsUntil(context.Background(), query, args...)
}

// rowsUntil is rows, but ends with the context.
func (c *conn) rowsUntil(ctx context.Context, query string, args ...driver.Value) (*cursor, error) {
	s, err := c.take(query)
	if err != nil {
		return nil, err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(ctx, c.bind(args))
	if err != nil {
		c.put(query, s)
		return nil, err
	}
	return &cursor{c: c, query: query, stmt: s, rows: rows, row: row{values: make([]driver.Value, len(rows.Columns()))}}, nil
}

// next reports whether there is a further row.
func (r *cursor) next() (bool, error) {
	r.at, r.err = 0, nil
	err := r.rows.Next(r.values)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}

func (r *cursor) close() {
	r.rows.Close()
	r.c.put(r.query, r.stmt)
}

func (r *row) text() string {
	v, ok := r.values[r.at].(string)
	if !ok {
		r.unreadable("text")
	}
	r.at++
	return v
}

func (r *row) int64() int64 {
	v, ok := r.values[r.at].(int64)
	if !ok {
		r.unreadable("a number")
	}
	r.at++
	return v
}

// bytes returns a value of a fixed size. It is valid until the next row.
func (r *row) bytes(size int) []byte {
	v, ok := r.values[r.at].([]byte)
	if !ok || len(v) != size {
		r.unreadable(fmt.Sprintf("%d bytes", size))
		v = make([]byte, size)
	}
	r.at++
	return v
}

func (r *row) int() int { return int(r.int64()) }

func (r *row) unreadable(want string) {
	if r.err == nil {
		r.err = fmt.Errorf("column %d is not %s but %T: %w", r.at+1, want, r.values[r.at], ErrNotLedger)
	}
}

// number asks for one number.
func (c *conn) number(query string, args ...driver.Value) (int64, error) {
	r, err := c.rows(query, args...)
	if err != nil {
		return 0, err
	}
	defer r.close()
	if ok, err := r.next(); !ok {
		return 0, errors.Join(err, errors.New("no row"))
	}
	n := r.int64()
	return n, r.err
}
