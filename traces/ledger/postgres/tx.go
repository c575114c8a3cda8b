package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlrows"
)

var dialect = &sqlrows.Dialect{
	Ledger:   "in the database",
	Position: "strpos",
	// The operators of json fail if a text in it has U+0000.
	Args: `CASE WHEN args = '@' THEN (SELECT (replace(e.body, '\u0000', '\ufffd')::json #> '{events,0,call,args}')::text ` +
		`FROM entries e WHERE e.idx = first) ELSE args END`,
	HexRun:  "encode(run, 'hex')",
	Session: `replace(e.body, '\u0000', '\ufffd')::json #>> '{events,0,session}'`,
	Name: func(column string) string {
		// The same expression as in the indexes.
		return "left(" + column + ", 128) = left(?, 128) AND " + column + " = ?"
	},
}

// A tx is a transaction.
type tx struct {
	sqlrows.Tx
	exec   *executor
	writes bool             // the transaction holds the log's lock
	began  time.Time        // start of a transaction that writes
	log    ledger.End       // end of the log, with the entries that the transaction adds
	leaf   *tlog.Hash       // leaf hash of the last added entry
	hashes map[int64][]byte // hashes that were read ahead, by the entry that completes them
	// The transaction that wrote the log's row last, and this one, by their ids.
	last, own int64
}

func newTx(ctx context.Context, exec *executor) *tx {
	return &tx{
		Tx:     sqlrows.New(ctx, exec, dialect),
		exec:   exec,
		hashes: make(map[int64][]byte),
	}
}

// End implements [ledger.Reader.End].
func (t *tx) End() (end ledger.End, err error) {
	if err := t.Usable(); err != nil {
		return end, err
	}
	if t.writes {
		return t.log, nil
	}
	rows, err := t.exec.Query(1, "SELECT size, at, type FROM log")
	if err != nil {
		return end, err
	}
	row, err := rows.Next()
	if err != nil || row == nil {
		return end, fmt.Errorf("the ledger: table log has no row: %w", ledger.ErrMalformed)
	}
	end = ledger.End{Size: row.Int64(), At: row.Text(), Type: ledger.Type(row.Text())}
	return end, row.Err()
}

// DataVersion implements [ledger.Tx.DataVersion]. Each transaction that writes updates the log's row,
// which is locked from the beginning to the commit.
func (t *tx) DataVersion() (ledger.DataVersion, error) {
	g := ledger.DataVersion{t.last, t.log.Size}
	if t.Wrote() {
		g[0] = t.own
	}
	return g, t.Usable()
}

// AddEntry implements [ledger.Tx.AddEntry].
func (t *tx) AddEntry(e ledger.Entry, hashes []tlog.Hash) error {
	if e.Index < t.log.Size {
		return t.Fail(fmt.Errorf("entry %d: the log has %d entries already, and is append-only", e.Index, t.log.Size))
	}
	if err := t.Tx.AddEntry(e, hashes); err != nil {
		return err
	}
	t.log, t.leaf = ledger.End{Size: e.Index + 1, At: e.At, Type: e.Type}, &hashes[0]
	return nil
}

// smallBlob is the size of a text that costs less to send than to ask for, which is a round trip.
const smallBlob = 16 << 10

// PutBlob implements [ledger.Tx.PutBlob].
func (t *tx) PutBlob(b ledger.Blob) error {
	if len(b.Text) > smallBlob {
		return t.Tx.PutBlob(b)
	}
	return t.Change("", nil, sqlrows.InsertBlob+" ON CONFLICT DO NOTHING", string(b.Digest), b.Kind, b.Text)
}

// ReadHashes implements [tlog.HashReader] with one query at most, and none for hashes that were read ahead.
func (t *tx) ReadHashes(ids []int64) ([]tlog.Hash, error) {
	if err := t.Usable(); err != nil {
		return nil, err
	}

	var missing []int64
	for _, id := range ids {
		entry, _ := sqlrows.Place(id)
		if t.hashes[entry] == nil {
			missing = append(missing, entry)
		}
	}

	found := t.hashes
	if len(missing) > 0 {
		found = maps.Clone(t.hashes)
		if err := t.readHashes(missing, found); err != nil {
			return nil, err
		}
	}

	ordered := make([]tlog.Hash, len(ids))
	for i, id := range ids {
		entry, offset := sqlrows.Place(id)
		hashes := found[entry]
		if int64(len(hashes)) < offset+tlog.HashSize {
			return nil, fmt.Errorf("the hash %d of the tree: %w", id, ledger.ErrNotFound)
		}
		copy(ordered[i][:], hashes[offset:])
	}

	return ordered, nil
}

const hashesOf = "SELECT idx, hashes FROM entries WHERE idx = ANY(?)"

// readHashes reads the hashes that entries complete.
func (t *tx) readHashes(entries []int64, found map[int64][]byte) error {
	rows, err := t.exec.Query(1, hashesOf, entries)
	if err != nil {
		return err
	}
	for {
		row, err := rows.Next()
		if row == nil {
			return err
		}
		if err := addHashes(row, found); err != nil {
			return err
		}
	}
}

func addHashes(row *sqlrows.Row, found map[int64][]byte) error {
	found[row.Int64()] = row.Bytes()
	if err := row.Err(); err != nil {
		return fmt.Errorf("the ledger: the hashes of entries: %w", err)
	}
	return nil
}

// leaseLapsed reports whether an owner has no lease, or a lease that the query reports as lapsed.
func (t *tx) leaseLapsed(query, owner string) (bool, error) {
	if err := errors.Join(checkOwner(owner), t.Usable()); err != nil {
		return false, err
	}
	rows, err := t.exec.Query(1, query, owner)
	if err != nil {
		return false, err
	}
	row, err := rows.Next()
	if err != nil {
		return false, err
	}
	if row == nil {
		return true, nil
	}
	return row.Text() == "true", row.Err()
}

// OwnerGone implements [ledger.Tx.OwnerGone]. A lease that runs out after endLease can be renewed,
// so only an owner whose lease was ended is gone.
func (t *tx) OwnerGone(owner string) (bool, error) {
	if err := checkOwner(owner); err != nil {
		return false, err
	}
	if err := t.Change("", nil, endLease, owner); err != nil {
		return false, err
	}
	return t.leaseLapsed(askOver, owner)
}
