package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"pgfsm/traces/ledger/sqlrows"
)

// rollbackTime bounds the end of a transaction that changes nothing. A connection whose transaction
// does not end is closed.
const rollbackTime = 5 * time.Second

// maxQueued bounds the statements of a batch: an import or a prune writes millions of rows.
const maxQueued = 256

// A statement is part of a batch, which is sent as a whole: a batch costs one round trip.
type statement struct {
	query string
	args  []any
	table string // the statement must change one row of this table; empty: any number
	key   any    // key of the row
}

// A result is the complete result of one statement.
type result struct {
	tag  pgconn.CommandTag
	rows []sqlrows.Row
}

// An executor runs the statements of one transaction on one connection. Writes wait until the next
// query, or the commit, so that they cost no round trip.
type executor struct {
	ctx     context.Context
	pool    *pgxpool.Pool
	wait    time.Duration // longest wait for an answer
	begin   string        // statement that begins the transaction
	always  bool          // every query is in the transaction; otherwise only queries with several pages are
	conn    *pgxpool.Conn // nil before the first statement
	begun   bool
	failed  error // first error, which ends the transaction
	queue   []statement
	answers map[string]result // of reads that were sent ahead; nil once the transaction has written
	cursors int
}

// sendBatch sends the queued statements and the given ones, and returns the results of the given
// ones. done is the number of statements that succeeded, the queued ones included.
func (s *executor) sendBatch(ctx context.Context, statements ...statement) (_ []result, done int, err error) {
	if s.failed != nil {
		return nil, 0, s.failed
	}

	ctx, stop := context.WithTimeoutCause(ctx, s.wait, errNoAnswer)
	defer stop()
	defer func() { s.failed = err }()
	if s.conn == nil {
		if s.conn, err = s.pool.Acquire(ctx); err != nil {
			return nil, 0, explainError(ctx, err)
		}
	}

	sent := append(s.queue, statements...)
	queued := len(s.queue)
	s.queue = nil
	var batch pgx.Batch

	for i := range sent {
		batch.Queue(numberParameters(sent[i].query), sent[i].args...)
	}

	answers := s.conn.SendBatch(ctx, &batch)
	defer func() {
		if closeErr := answers.Close(); err == nil && closeErr != nil {
			err = explainError(ctx, closeErr)
		}
	}()

	// The answers come in the order of the statements.
	results := make([]result, len(sent))
	for i := range sent {
		if results[i], err = readResult(answers); err != nil {
			return nil, i, explainError(ctx, err)
		}
		if n := results[i].tag.RowsAffected(); sent[i].table != "" && n != 1 {
			return nil, i, fmt.Errorf("%s %v: %w: %d rows were changed instead of one", sent[i].table, sent[i].key,
				sqlrows.ErrUnrecorded, n)
		}
	}

	return results[queued:], len(sent), nil
}

// connData returns the data of the connection that holds its last notice.
func (s *executor) connData() map[string]any { return s.conn.Conn().PgConn().CustomData() }

// malformed is a text that no ledger contains.
type malformed string

// readResult reads the result of the next statement of a batch.
func readResult(answers pgx.BatchResults) (r result, err error) {
	rows, err := answers.Query()
	if err != nil {
		return r, err
	}
	defer rows.Close()

	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return r, err
		}
		for i, v := range values {
			switch v := v.(type) {
			case string:
				if text, ok := fromText(v); ok {
					values[i] = text
				} else {
					values[i] = malformed(v)
				}
			case int32:
				values[i] = int64(v)
			}
		}
		r.rows = append(r.rows, sqlrows.Row{Values: values})
	}

	rows.Close()
	r.tag = rows.CommandTag()

	return r, rows.Err()
}

// numberParameters writes the parameters of a query as PostgreSQL names them.
func numberParameters(query string) string {
	parts := strings.Split(query, "?")
	if len(parts) == 1 {
		return query
	}
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			fmt.Fprintf(&b, "$%d", i)
		}
		b.WriteString(part)
	}
	return b.String()
}

// storableArgs replaces texts that PostgreSQL cannot store.
func storableArgs(args []any) []any {
	for i, v := range args {
		if text, ok := v.(string); ok {
			args[i] = toText(text)
		}
	}
	return args
}

// Write queues a statement.
func (s *executor) Write(table string, key any, query string, args ...any) error {
	s.answers = nil
	s.queue = append(s.queue, statement{query, storableArgs(args), table, key})
	if len(s.queue) < maxQueued {
		return nil
	}
	_, _, err := s.sendBatch(s.ctx)
	return err
}

// Query runs a query.
func (s *executor) Query(page int, query string, args ...any) (sqlrows.Rows, error) {
	if s.answers != nil && page == 1 {
		sent := statement{query: query, args: storableArgs(args)}
		if answer, ok := s.answers[sent.text()]; ok {
			return &pages{rows: slices.Clone(answer.rows)}, nil
		}
	}

	var batch []statement
	if !s.begun && (s.always || page > 1) {
		batch = append(batch, statement{query: s.begin})
	}

	if page == 1 {
		results, _, err := s.sendBatch(s.ctx, append(batch, statement{query: query, args: storableArgs(args)})...)
		if err != nil {
			return nil, err
		}
		s.begun = s.begun || len(batch) > 0
		return &pages{rows: results[len(batch)].rows}, nil
	}

	// Several pages need a cursor, and a cursor needs a transaction.
	s.cursors++
	p := &pages{exec: s, name: fmt.Sprintf("c%d", s.cursors), size: page}
	results, _, err := s.sendBatch(s.ctx, append(batch,
		statement{query: "DECLARE " + p.name + " NO SCROLL CURSOR FOR " + query, args: storableArgs(args)},
		p.fetchStatement())...)
	if err != nil {
		return nil, err
	}

	s.begun = true
	p.setPage(results[len(batch)+1])

	return p, nil
}

// release rolls back an open transaction and releases the connection.
func (s *executor) release() {
	if s.conn == nil {
		return
	}
	if s.begun && !s.conn.Conn().IsClosed() {
		ctx, stop := context.WithTimeout(context.Background(), rollbackTime)
		defer stop()
		// Release closes a connection whose transaction is still open.
		_, _ = s.conn.Exec(ctx, "ROLLBACK")
	}
	s.conn.Release()
	s.conn = nil
}

// pages reads the rows of a query page by page.
type pages struct {
	rows []sqlrows.Row
	exec *executor // nil: there is no further page
	name string    // name of the cursor
	size int
}

func (p *pages) fetchStatement() statement {
	return statement{query: fmt.Sprintf("FETCH %d FROM %s", p.size, p.name)}
}

// setPage uses a result as the current page.
func (p *pages) setPage(r result) {
	p.rows = r.rows
	if len(p.rows) < p.size {
		p.Close()
	}
}

// Next returns the next row, or nil.
func (p *pages) Next() (*sqlrows.Row, error) {
	if len(p.rows) == 0 && p.exec != nil {
		results, _, err := p.exec.sendBatch(p.exec.ctx, p.fetchStatement())
		if err != nil {
			return nil, err
		}
		p.setPage(results[0])
	}
	if len(p.rows) == 0 {
		return nil, nil
	}
	row := &p.rows[0]
	p.rows = p.rows[1:]
	return row, nil
}

// Close closes the cursor with the next statement.
func (p *pages) Close() {
	if p.exec != nil {
		p.exec.queue = append(p.exec.queue, statement{query: "CLOSE " + p.name})
		p.exec = nil
	}
}
