package postgres

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlrows"
)

// errPlanned answers every read of a plan.
var errPlanned = errors.New("the read is planned, and was not done yet")

// frontier reads the hashes of some entries, and those that the next entry needs.
const frontier = "WITH RECURSIVE trees (size) AS (SELECT size FROM log UNION ALL " +
	"SELECT size & (size - 1) FROM trees WHERE size & (size - 1) > 0) " +
	"SELECT idx, hashes FROM entries WHERE idx = ANY(?) OR idx IN (SELECT size - 1 FROM trees)"

// A plan collects the statements of reads. It is a [ledger.Reader] that answers none of them.
type plan struct {
	sqlrows.Tx
	statements []statement
	entries    []int64 // the entries whose hashes are read
}

// planReads returns the statements of the reads that a transaction begins with. The last statement is
// frontier.
func planReads(ctx context.Context, ahead []func(ledger.Reader)) []statement {
	if len(ahead) == 0 {
		return nil
	}
	p := &plan{entries: []int64{}}
	p.Tx = sqlrows.New(ctx, p, dialect)
	for _, read := range ahead {
		read(p)
	}
	return append(p.statements, statement{query: frontier, args: []any{p.entries}})
}

// ReadHashes implements [tlog.HashReader].
func (p *plan) ReadHashes(ids []int64) ([]tlog.Hash, error) {
	for _, id := range ids {
		entry, _ := sqlrows.Place(id)
		p.entries = append(p.entries, entry)
	}
	return nil, errPlanned
}

// Query implements [sqlrows.Source.Query]. Only queries for one row are planned.
func (p *plan) Query(page int, query string, args ...any) (sqlrows.Rows, error) {
	if page == 1 {
		p.statements = append(p.statements, statement{query: query, args: storableArgs(args)})
	}
	return nil, errPlanned
}

// Write implements [sqlrows.Source.Write]. A reader does not call it.
func (p *plan) Write(string, any, string, ...any) error { return errPlanned }

// takeAnswers notes the answers of planned reads, until the transaction writes.
func (t *tx) takeAnswers(planned []statement, answers []result) error {
	if len(planned) == 0 {
		return nil
	}
	last := len(planned) - 1
	for i := range answers[last].rows {
		if err := addHashes(&answers[last].rows[i], t.hashes); err != nil {
			return err
		}
	}

	t.exec.answers = make(map[string]result, last)
	for i, s := range planned[:last] {
		t.exec.answers[s.text()] = answers[i]
	}
	return nil
}

// text returns a text that two statements share only if they read the same.
func (s *statement) text() string { return fmt.Sprintf("%s%q", s.query, s.args) }
