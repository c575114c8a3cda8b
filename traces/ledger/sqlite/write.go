package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/policy/canonical"
	"pgfsm/traces/ledger"
)

// write runs a statement. After an error the transaction is over: SQLite may have rolled it back, and later writes would be committed separately.
func (t *tx) write(query string, args ...any) (int64, error) {
	if err := t.usable(); err != nil {
		return 0, err
	}
	t.wrote = true
	n, err := t.exec(context.Background(), query, args...)
	if err != nil {
		t.failed = explained(t.path, err)
		return 0, t.failed
	}
	return n, nil
}

// one runs a statement that must change exactly one row, which its error names.
func (t *tx) one(table string, key any, query string, args ...any) error {
	n, err := t.write(query, args...)
	if err == nil && n != 1 {
		t.failed = fmt.Errorf("ledger %s: %w: %d rows were changed instead of one; pgfsm ledger verify looks for what prevents it",
			t.path, ErrUnrecorded, n)
		err = t.failed
	}
	if err != nil {
		return fmt.Errorf("%s %v: %w", table, key, err)
	}
	return nil
}

func marks(n int) string { return "(?" + strings.Repeat(", ?", n-1) + ")" }

var (
	// One row a statement: for several SQLite makes a table of its own first, because of the triggers, and reads the rows from that.
	insertEntry    = "INSERT INTO entries (" + entryColumns + ", hashes) VALUES " + marks(9)
	insertBlob     = "INSERT INTO blobs (digest, kind, text) VALUES " + marks(3)
	upsertToken    = "INSERT INTO tokens (" + tokenColumns + ") VALUES " + marks(8) + onConflict("id", tokenColumns)
	upsertDelivery = "INSERT INTO deliveries (entry, hook, attempts, next, state, error) VALUES " + marks(6) +
		onConflict("entry, hook", "attempts, next, state, error")
	upsertDelivered = "INSERT INTO delivered (hook, next) VALUES (?, ?)" + onConflict("hook", "next")

	// Most requests are changed after they were put first, and their indexed columns stay as they are then, save three. A statement that does not set a
	// column does not touch its indexes.
	updateRequest = "UPDATE requests SET updated = ?3, status = ?5, state = ?6, env = ?9, definition = ?14, " +
		"mode = ?16, score = ?17, policy = ?18, code = ?19, reason = ?20, binding = ?21, approvers = ?22, quorum = ?23, agreed = ?24, " +
		"expires = ?25, owner = ?26, sent = ?27, ended = ?28, steps = ?29, head = ?30, entry = ?31, entries = ?32, delivered = ?33 " +
		"WHERE run_id = ?1 AND at = ?2 AND kind = ?4 AND actor = ?7 AND task = ?8 AND server = ?10 AND tool = ?11 AND args = ?12 " +
		"AND arguments = ?13 AND bundle = ?15"
	insertRequest = "INSERT INTO requests (" + requestColumns + ") VALUES " + marks(33)
	upsertRequest = insertRequest + onConflict("run_id", requestColumns)
)

// onConflict replaces the columns, except the key.
func onConflict(key, columns string) string {
	var sets []string
	for column := range strings.SplitSeq(columns, ", ") {
		if column != key {
			sets = append(sets, column+" = excluded."+column)
		}
	}
	return " ON CONFLICT (" + key + ") DO UPDATE SET " + strings.Join(sets, ", ")
}

func (t *tx) AddEntry(e ledger.Entry, hashes []tlog.Hash) error {
	all := make([]byte, 0, len(hashes)*tlog.HashSize)
	for i := range hashes {
		all = append(all, hashes[i][:]...)
	}
	return t.one("entry", e.Index, insertEntry, e.Index, e.RunID, int64(e.N), e.At, e.By, e.Prev, string(e.Type), string(e.Events), all)
}

// requestRow is a request as its statements want it.
func requestRow(r *ledger.Request) ([]any, error) {
	approvers := "[]"
	if len(r.Approvers) > 0 {
		text, err := json.Marshal(r.Approvers)
		if err != nil {
			return nil, fmt.Errorf("run %s, approvers: %w", r.RunID, err)
		}
		approvers = string(text)
	}
	return []any{
		r.RunID, r.At, r.Updated, r.Kind, string(r.Status), string(r.State), r.Actor, r.Task, r.Env, r.Server, r.Tool, r.Args,
		string(r.Arguments), string(r.Definition), string(r.Bundle), r.Mode, int64(r.Score), r.Policy, r.Code, r.Reason, string(r.Binding),
		approvers, int64(r.Quorum), int64(r.Agreed), r.Expires, r.Owner, r.Sent, r.Ended, int64(r.Steps), string(r.Head), r.Entry, int64(r.Entries),
		r.Delivered,
	}, nil
}

func (t *tx) AddRequest(r ledger.Request) error {
	row, err := requestRow(&r)
	if err != nil {
		return err
	}
	return t.one("run", r.RunID, insertRequest, row...)
}

func (t *tx) PutRequest(r ledger.Request) error {
	row, err := requestRow(&r)
	if err != nil {
		return err
	}
	if n, err := t.write(updateRequest, row...); err != nil || n != 0 {
		return err
	}
	return t.one("run", r.RunID, upsertRequest, row...)
}

func (t *tx) PutBlob(b ledger.Blob) error {
	// Most blobs are there, and large: asking is cheaper than handing the text over.
	for _, err := range all(t, (*row).int64, "SELECT 1 FROM blobs WHERE digest = ?", string(b.Digest)) {
		return err
	}
	return t.one("blob", b.Digest, insertBlob, string(b.Digest), b.Kind, b.Text)
}

func (t *tx) PutToken(k ledger.Token) error {
	return t.one("token", k.ID, upsertToken, k.ID, k.Name, k.Role, string(k.Secret), k.Created, k.Expires, k.Revoked, k.Entry)
}

func (t *tx) DropToken(id string) error {
	_, err := t.write("DELETE FROM tokens WHERE id = ?", id)
	return err
}

func (t *tx) PutDelivery(d ledger.Delivery) error {
	return t.one("delivery of entry", d.Entry, upsertDelivery, d.Entry, d.Hook, int64(d.Attempts), d.Next, d.State, d.Error)
}

func (t *tx) SetDelivered(hook string, next int64) error {
	return t.one("hook", hook, upsertDelivered, hook, next)
}

const emptyEntries = "UPDATE entries SET run_id = '', n = 0, at = '', by = '', prev = '', type = '', events = '' WHERE idx BETWEEN ? AND ?"

// Prune is [ledger.Tx.Prune].
func (t *tx) Prune(entries []ledger.Range, runs []string, blobs []canonical.Digest) error {
	if err := t.one("row of", "pruning", "INSERT INTO pruning (since) VALUES (1)"); err != nil {
		return err
	}
	for _, run := range runs {
		if _, err := t.write("DELETE FROM requests WHERE run_id = ?", run); err != nil {
			return err
		}
	}
	for _, r := range entries {
		for _, query := range []string{emptyEntries, "DELETE FROM deliveries WHERE entry BETWEEN ? AND ?"} {
			if _, err := t.write(query, r.First, r.Last); err != nil {
				return err
			}
		}
	}
	for _, d := range blobs {
		if _, err := t.write("DELETE FROM blobs WHERE digest = ?", string(d)); err != nil {
			return err
		}
	}
	return t.one("row of", "pruning", "DELETE FROM pruning")
}
