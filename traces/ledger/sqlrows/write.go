package sqlrows

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/traces/ledger"
)

func placeholders(n int) string { return "(?" + strings.Repeat(", ?", n-1) + ")" }

var (
	insertEntry = "INSERT INTO entries (" + entryColumns + ", hashes) VALUES " + placeholders(9)
	// InsertBlob adds a blob that is not there.
	InsertBlob  = "INSERT INTO blobs (digest, kind, text) VALUES " + placeholders(3)
	upsertToken = "INSERT INTO tokens (" + tokenColumns + ") VALUES " + placeholders(8) + onConflict("id", tokenColumns)
	upsertBlock = "INSERT INTO blocks (name, since, by, entry) VALUES " + placeholders(4) +
		onConflict("name", "since, by, entry")
	upsertDelivery = "INSERT INTO deliveries (entry, hook, attempts, next, state, error) VALUES " + placeholders(6) +
		onConflict("entry, hook", "attempts, next, state, error")
	upsertDelivered = "INSERT INTO delivered (hook, next) VALUES (?, ?)" + onConflict("hook", "next")

	insertRequest = "INSERT INTO requests (" + requestColumns + ") VALUES " +
		placeholders(strings.Count(requestColumns, ",")+1)
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

func (t *Tx) AddEntry(e ledger.Entry, hashes []tlog.Hash) error {
	joined := make([]byte, 0, len(hashes)*tlog.HashSize)
	for i := range hashes {
		joined = append(joined, hashes[i][:]...)
	}
	return t.Change("entry", e.Index, insertEntry, e.Index, e.RunID, int64(e.N), e.At, e.By, e.Prev, string(e.Type),
		string(e.Events), joined)
}

// RequestRow returns the values of a request in the order of its columns.
func RequestRow(r *ledger.RunRow) ([]any, error) {
	approvers := "[]"
	if len(r.Approvers) > 0 {
		text, err := json.Marshal(r.Approvers)
		if err != nil {
			return nil, fmt.Errorf("run %s, approvers: %w", r.RunID, err)
		}
		approvers = string(text)
	}
	return []any{
		r.RunID, r.At, r.Updated, r.Kind, string(r.Status), string(r.State), r.Actor, r.Task, r.Env, r.Server, r.Tool,
		r.Args,
		string(r.Arguments), string(r.Definition), string(r.Bundle), r.Mode, int64(r.Score), r.Policy, r.Code,
		r.Reason, string(r.Binding),
		approvers, int64(r.Quorum), int64(r.Agreed), r.Expires, r.Owner, r.Sent, r.Ended, int64(r.Steps),
		string(r.Head), r.Entry, int64(r.Entries),
		r.Delivered, r.OnBehalfOf, r.Client, r.Trace, r.CallTrace, r.Display, r.OnBehalfOfDisplay,
	}, nil
}

func (t *Tx) AddRun(r ledger.RunRow) error {
	row, err := RequestRow(&r)
	if err != nil {
		return err
	}
	return t.Change("run", r.RunID, insertRequest, row...)
}

func (t *Tx) PutRun(r ledger.RunRow) error {
	row, err := RequestRow(&r)
	if err != nil {
		return err
	}
	return t.Change("run", r.RunID, upsertRequest, row...)
}

func (t *Tx) PutBlob(b ledger.Blob) error {
	// Most blobs exist already and are large: a query is cheaper than sending the text.
	for _, err := range queryRows(t, onePage, (*Row).Int64, "SELECT 1 FROM blobs WHERE digest = ?", string(b.Digest)) {
		return err
	}
	return t.Change("blob", b.Digest, InsertBlob, string(b.Digest), b.Kind, b.Text)
}

func (t *Tx) PutToken(k ledger.Token) error {
	return t.Change("token", k.ID, upsertToken, k.ID, k.Name, k.Role, string(k.Secret), k.Created, k.Expires,
		k.Revoked, k.Entry)
}

func (t *Tx) DropToken(id string) error {
	return t.Change("", nil, "DELETE FROM tokens WHERE id = ?", id)
}

func (t *Tx) PutBlock(b ledger.Block) error {
	return t.Change("block of", b.Name, upsertBlock, b.Name, b.Since, b.By, b.Entry)
}

func (t *Tx) DropBlock(name string) error {
	return t.Change("", nil, "DELETE FROM blocks WHERE name = ?", name)
}

func (t *Tx) PutDelivery(d ledger.Delivery) error {
	return t.Change("delivery of entry", d.Entry, upsertDelivery, d.Entry, d.Hook, int64(d.Attempts), d.Next, d.State,
		d.Error)
}

func (t *Tx) SetNextDelivery(hook string, next int64) error {
	return t.Change("hook", hook, upsertDelivered, hook, next)
}

const emptyEntries = "UPDATE entries SET run_id = '', n = 0, at = '', by = '', prev = '', type = '', events = '' WHERE idx BETWEEN ? AND ?"

// Prune implements [ledger.Tx.Prune].
func (t *Tx) Prune(entries []ledger.Range, runs []string, blobs []canonical.Digest) error {
	for _, run := range runs {
		if err := t.Change("", nil, "DELETE FROM requests WHERE run_id = ?", run); err != nil {
			return err
		}
	}
	for _, r := range entries {
		for _, query := range []string{emptyEntries, "DELETE FROM deliveries WHERE entry BETWEEN ? AND ?"} {
			if err := t.Change("", nil, query, r.First, r.Last); err != nil {
				return err
			}
		}
	}
	for _, d := range blobs {
		if err := t.Change("", nil, "DELETE FROM blobs WHERE digest = ?", string(d)); err != nil {
			return err
		}
	}
	return t.Usable()
}
