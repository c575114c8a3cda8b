package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pgfsm/traces/ledger"
)

const (
	// lockLog makes this transaction the only one that writes. Each transaction checks that the
	// last acknowledged entry is there: a pooler may connect to another server silently. A stopped
	// process blocks the others only briefly: the timeouts apply both while the server waits for a
	// statement and while it waits for the process to read a large result. A role may have other
	// settings, so lockLog also sets the level of messages: the warning of a commit that the
	// standby may not have must arrive.
	lockLog = "SELECT size, at, type, current_setting('synchronous_commit'), current_setting('transaction_read_only'), " +
		"coalesce((SELECT substr(hashes, 1, 32) FROM entries WHERE idx = ?), ''), " +
		"xmin::text::bigint, pg_current_xact_id()::xid::text::bigint, " +
		"set_config('idle_in_transaction_session_timeout', ?, true), set_config('tcp_user_timeout', ?, true), " +
		"set_config('client_min_messages', 'warning', true) FROM log FOR UPDATE"
	// fence changes no row for a store whose lease another store has ended. No lease can be ended
	// meanwhile: that takes the log's lock, too.
	fence = "UPDATE replicas SET commits = ?, until = clock_timestamp() + ? " + microseconds +
		" WHERE owner = ANY(?) AND NOT over " +
		"RETURNING (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
	grow = "UPDATE log SET size = ?, at = ?, type = ?"
	// touch is a write that changes nothing, but is flushed as any other write.
	touch = "UPDATE log SET size = size"
)

// lockStatements returns the statements that begin a transaction that writes.
func (s *Store) lockStatements() []statement {
	index := int64(-1)
	if last := s.last.Load(); last != nil {
		index = last.index
	}
	idle := fmt.Sprintf("%dms", (s.lease / 3).Milliseconds())
	return []statement{{query: "BEGIN ISOLATION LEVEL READ COMMITTED"},
		{query: lockLog, args: []any{index, idle, idle}}}
}

// endOf checks the answer to lockLog.
func (s *Store) endOf(r result) (end ledger.End, err error) {
	if len(r.rows) != 1 {
		return end, fmt.Errorf("the ledger: table log has %d rows: %w", len(r.rows), ledger.ErrMalformed)
	}
	row := &r.rows[0]
	end = ledger.End{Size: row.Int64(), At: row.Text(), Type: ledger.Type(row.Text())}
	commit, readOnly, leaf := row.Text(), row.Text(), row.Bytes()
	switch {
	case row.Err() != nil:
		return end, fmt.Errorf("the ledger: table log: %w", row.Err())
	case readOnly != "off":
		return end, newUnavailable(errStandby)
	case !isDurable(commit):
		return end, fmt.Errorf("%w: synchronous_commit is %s; set it to on or remote_apply for this user", ErrUnsafe,
			commit)
	}
	if last := s.last.Load(); last != nil {
		return end, s.compareLeaf(last, leaf)
	}
	return end, nil
}

// beginWrite begins a transaction that writes, and answers its first reads in the same round trip.
func (s *Store) beginWrite(t *tx, ahead []statement) error {
	batch := s.lockStatements()
	s.commits++
	if len(s.owners) > 0 {
		batch = append(batch, statement{query: fence, args: []any{s.commits, s.lease.Microseconds(), s.owners}})
	}

	// The transaction is open even if its first answer is lost: it must be rolled back.
	t.exec.begun = true
	t.began = time.Now()
	results, _, err := t.exec.sendBatch(t.exec.ctx, append(batch, ahead...)...)
	if err != nil {
		return err
	}
	t.writes = true
	if t.log, err = s.endOf(results[1]); err != nil {
		return err
	}
	row := &results[1].rows[0] // endOf has read the columns before
	t.last, t.own = row.Int64(), row.Int64()
	if err := errors.Join(row.Err(), t.takeAnswers(ahead, results[len(batch):])); err != nil {
		return err
	}

	if n := len(s.owners); n > 0 {
		if len(results[2].rows) != n {
			return s.endWith(ledger.ErrFenced)
		}
		// This machine's clock may have been set, or have stood still, since the lease was renewed.
		s.setClock(time.UnixMicro(results[2].rows[0].Int64()), time.Now())
	}

	return nil
}

// commit commits with a context of its own, in one round trip with all queued writes.
func (s *Store) commit(t *tx) error {
	if err := t.Usable(); err != nil {
		return err
	}
	t.Finish()
	if !t.Wrote() {
		return nil
	}

	// Every write updates the log's row: see DataVersion.
	batch := []statement{{query: touch}}
	if t.leaf != nil {
		batch[0] = statement{query: grow, args: []any{t.log.Size, t.log.At, string(t.log.Type)}}
	}

	// The lease could not be renewed during the transaction.
	if len(s.owners) > 0 && time.Since(t.began) > s.lease/3 {
		batch = append(batch, statement{query: fence, args: []any{s.commits, s.lease.Microseconds(), s.owners}})
	}

	exec := t.exec
	writes := len(exec.queue) + len(batch)
	delete(exec.connData(), noticed)
	results, done, err := exec.sendBatch(context.Background(), append(batch, statement{query: "COMMIT"})...)

	switch {
	case err == nil && exec.connData()[noticed] == nil:
		if tag := results[len(batch)].tag.String(); tag != "COMMIT" {
			return fmt.Errorf("the ledger: the transaction came to %s", tag)
		}
	// The server does not run the statements after a failed one.
	case done < writes && !exec.conn.Conn().IsClosed():
		return err
	default:
		if err == nil {
			err = fmt.Errorf("%v", exec.connData()[noticed])
		}
		exec.release()
		if err := s.settleCommit(err); err != nil {
			return err
		}
	}

	exec.begun = false
	if t.leaf != nil {
		s.last.Store(&acknowledged{t.log.Size - 1, *t.leaf})
	}

	return nil
}
