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
	insertEntry = "INSERT INTO entries (idx, at, run, n, previous, type, body, header, hashes) VALUES " + placeholders(9)
	// InsertBlob adds a blob that is not there.
	InsertBlob  = "INSERT INTO blobs (digest, kind, text) VALUES " + placeholders(3)
	upsertToken = "INSERT INTO tokens (" + tokenColumns + ") VALUES " + placeholders(8) + onConflict("id", tokenColumns)
	upsertBlock = "INSERT INTO blocks (name, since, by, entry) VALUES " + placeholders(4) +
		onConflict("name", "since, by, entry")
	upsertConnection = "INSERT INTO connections (" + connectionColumns + ") VALUES " + placeholders(19) +
		onConflict("person, server", strings.TrimPrefix(connectionColumns, "person, server, "))
	upsertDelivery = "INSERT INTO deliveries (entry, hook, attempts, next, state, error) VALUES " + placeholders(6) +
		onConflict("entry, hook", "attempts, next, state, error")
	upsertDelivered = "INSERT INTO delivered (hook, next) VALUES (?, ?)" + onConflict("hook", "next")

	insertRun = "INSERT INTO runs (" + runColumns + ") VALUES " + placeholders(strings.Count(runColumns, ",")+1)
	// A statement that does not set a column does not touch the indexes of the column. If another
	// process has continued the run, no row matches.
	updateRun = "UPDATE runs SET " + strings.ReplaceAll(changingColumns, ", ", " = ?, ") +
		" = ? WHERE first = ? AND run = ? AND (entry = ? OR entries < ?)"
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
	var v values
	v.add(e.Index)
	v.addTime(e.At)
	v.addID(e.RunID)
	v.add(int64(e.N))
	if e.N > 0 {
		v.add(e.Previous)
	} else {
		v.add(nil)
	}
	v.add(optionalText(string(e.Type)), optionalText(string(e.Body)), optionalText(string(e.Header)), joined)
	if v.err != nil {
		return t.Fail(fmt.Errorf("entry %d: %w", e.Index, v.err))
	}
	return t.Change("entry", e.Index, insertEntry, v.list...)
}

// optionalText returns a text, or NULL for an empty one.
func optionalText(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// addFixed adds the values of fixedColumns.
func (v *values) addFixed(r *ledger.RunRow) {
	v.add(r.First)
	v.addID(r.RunID)
	v.addTime(r.At)
	v.add(r.Kind, r.Actor, r.Display, r.OnBehalfOf, r.OnBehalfOfDisplay, r.Client, r.Task, r.Env, r.Server, r.Tool, r.Args)
	v.addDigest(r.Arguments)
	v.addDigest(r.Definition)
	v.addDigest(r.Bundle)
	v.add(r.Trace, r.Session)
}

// addChanging adds the values of changingColumns.
func (v *values) addChanging(r *ledger.RunRow) {
	approvers := "[]"
	if len(r.Approvers) > 0 {
		text, err := json.Marshal(r.Approvers)
		if err != nil && v.err == nil {
			v.err = fmt.Errorf("approvers: %w", err)
		}
		approvers = string(text)
	}

	v.addTime(r.Updated)
	v.add(string(r.Status), string(r.State), r.Mode, int64(r.Score), r.Policy, r.Code, r.Reason)
	v.addDigest(r.Binding)
	v.add(approvers, int64(r.Quorum), int64(r.Agreed))
	v.addTime(r.Expires)
	v.addID(r.Owner)
	v.addTime(r.Sent)
	v.addTime(r.Ended)
	v.add(int64(r.Steps))
	v.addDigest(r.Head)
	v.add(r.Entry, int64(r.Entries))
	v.addTime(r.Delivered)
	v.add(r.CallTrace, r.ClientCall)
}

func (t *Tx) AddRun(r ledger.RunRow) error {
	var v values
	v.addFixed(&r)
	v.addChanging(&r)
	return t.changeRun(&r, insertRun, &v)
}

func (t *Tx) PutRun(r ledger.RunRow) error {
	var v values
	v.addChanging(&r)
	v.add(r.First)
	v.addID(r.RunID)
	v.add(r.Entry, int64(r.Entries))
	return t.changeRun(&r, updateRun, &v)
}

func (t *Tx) changeRun(r *ledger.RunRow, query string, v *values) error {
	if v.err != nil {
		return t.Fail(fmt.Errorf("run %s: %w", r.RunID, v.err))
	}
	return t.Change("run", r.RunID, query, v.list...)
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

func (t *Tx) PutConnection(c ledger.Connection) error {
	return t.Change("connection of", c.Person, upsertConnection, c.Person, c.Server, c.ID, c.Kind, c.Issuer, c.Client,
		c.Resource, strings.Join(c.Scopes, " "), c.Account, c.State, c.Made, c.Used, c.Key, c.Generation, c.Entry,
		strings.Join(c.Asked, " "), c.Holder, c.Until, c.Sealed)
}

func (t *Tx) DropConnection(person, server string) error {
	return t.Change("", nil, "DELETE FROM connections WHERE person = ? AND server = ?", person, server)
}

func (t *Tx) PutDelivery(d ledger.Delivery) error {
	return t.Change("delivery of entry", d.Entry, upsertDelivery, d.Entry, d.Hook, int64(d.Attempts), d.Next, d.State,
		d.Error)
}

func (t *Tx) SetNextDelivery(hook string, next int64) error {
	return t.Change("hook", hook, upsertDelivered, hook, next)
}

const (
	emptyEntry     = "UPDATE entries SET run = NULL, body = NULL, header = ? WHERE idx = ? AND body IS NOT NULL"
	dropDeliveries = "DELETE FROM deliveries WHERE entry = ?"
)

// Prune implements [ledger.Tx.Prune].
func (t *Tx) Prune(entries []ledger.PrunedEntry, runs []string, blobs []canonical.Digest) error {
	for _, run := range runs {
		if err := t.Change("", nil, "DELETE FROM runs WHERE run = ?", keyOf(run)); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if err := t.Change("entry", e.Index, emptyEntry, string(e.Header), e.Index); err != nil {
			return err
		}
		if err := t.Change("", nil, dropDeliveries, e.Index); err != nil {
			return err
		}
	}
	for _, d := range blobs {
		if err := t.Change("", nil, "DELETE FROM blobs WHERE digest = ?", string(d)); err != nil {
			return err
		}
	}
	return t.Usable()
}
