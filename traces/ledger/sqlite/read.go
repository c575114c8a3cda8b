package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/fsm"
	"pgfsm/policy/canonical"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// errOver is for a transaction that is used after its function has returned.
var errOver = errors.New("the transaction is over")

// A tx is a transaction that reads, and, in Update, writes.
type tx struct {
	*session
	ctx    context.Context
	path   string
	store  *Store // in Update
	over   bool
	failed error // the first error of a write: SQLite may have ended the transaction with it
	wrote  bool
	open   []*cursor

	committed bool
}

// end ends the transaction for its user, with what is still being read: a sequence may have been left without an end.
func (t *tx) end() {
	t.over = true
	for _, c := range t.open {
		c.Close()
	}
	t.open = nil
}

// usable returns why the transaction cannot be used, if it cannot.
func (t *tx) usable() error {
	switch {
	case t.over:
		return errOver
	case t.failed != nil:
		return t.failed
	}
	return t.ctx.Err()
}

// all returns the rows of a query, each as read makes it of its columns.
func all[T any](t *tx, read func(*row) T, query string, args ...any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		c, err := t.start(query, args)
		if err != nil {
			yield(none, err)
			return
		}
		defer t.done(c)
		for {
			if err := t.usable(); err != nil {
				yield(none, err)
				return
			}
			ok, err := c.next()
			if err != nil {
				yield(none, explained(t.path, err))
				return
			}
			if !ok {
				return
			}
			v := read(&c.row)
			if c.row.err != nil {
				yield(none, fmt.Errorf("ledger %s: %w; pgfsm ledger verify says what else does not fit", t.path, c.row.err))
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// start runs a query.
func (t *tx) start(query string, args []any) (*cursor, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	c, err := t.rows(context.Background(), t.open, query, args...)
	if err != nil {
		return nil, explained(t.path, err)
	}
	t.open = append(t.open, c)
	return c, nil
}

// done closes rows that were read, or left.
func (t *tx) done(c *cursor) {
	c.Close()
	t.open = slices.DeleteFunc(t.open, func(o *cursor) bool { return o == c })
}

// one returns the first row, or ErrNotFound.
func one[T any](rows iter.Seq2[T, error], format string, args ...any) (T, error) {
	for v, err := range rows {
		return v, err
	}
	var none T
	return none, fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ledger.ErrNotFound)
}

const entryColumns = "idx, run_id, n, at, by, prev, type, events"

func readEntry(r *row) ledger.Entry {
	return ledger.Entry{
		Index: r.int64(), RunID: r.text(), N: r.int(), At: r.text(), By: r.text(), Prev: r.text(), Type: ledger.Type(r.text()),
		Events: jsontext.Value(r.text()),
	}
}

// maxIndex is the largest index that an entry can have: package tlog does not terminate for larger trees.
const maxIndex = 1<<62 - 1

func readEnd(r *row) ledger.End {
	index := r.int64()
	if index > maxIndex && r.err == nil {
		r.err = fmt.Errorf("the last entry has the index %d: %w", index, ErrNotLedger)
	}
	return ledger.End{Size: index + 1, At: r.text(), Type: ledger.Type(r.text())}
}

func (t *tx) End() (ledger.End, error) {
	for end, err := range all(t, readEnd, "SELECT idx, at, type FROM entries ORDER BY idx DESC LIMIT 1") {
		return end, err
	}
	return ledger.End{}, nil
}

// ofType has the condition of the partial index written out, so that it is used.
const ofType = "SELECT " + entryColumns + " FROM entries WHERE run_id = '' AND type <> 'mcp.passed' AND type = ? ORDER BY idx"

func (t *tx) LastOf(kind ledger.Type) (ledger.Entry, error) {
	return one(all(t, readEntry, ofType+" DESC LIMIT 1", string(kind)), "the last entry of type %s", kind)
}

func (t *tx) EntriesOfType(kind ledger.Type) iter.Seq2[ledger.Entry, error] {
	return all(t, readEntry, ofType, string(kind))
}

func (t *tx) Entries(from int64) iter.Seq2[ledger.Entry, error] {
	return all(t, readEntry, "SELECT "+entryColumns+" FROM entries WHERE idx >= ? AND events <> '' ORDER BY idx", from)
}

// ofRun has the condition of the partial index written out, so that it is used.
const ofRun = "SELECT " + entryColumns + " FROM entries WHERE run_id = ? AND run_id <> '' ORDER BY n"

func (t *tx) EntriesOf(run string) iter.Seq2[ledger.Entry, error] {
	return all(t, readEntry, ofRun, run)
}

// ReadHashes implements [tlog.HashReader]. A hash of level n is the n-th of the entry that completes it.
func (t *tx) ReadHashes(ids []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(ids))
	for i, id := range ids {
		level, n := tlog.SplitStoredHashIndex(id)
		var err error
		hashes[i], err = one(all(t, func(r *row) tlog.Hash { return tlog.Hash(r.bytes(tlog.HashSize)) }, hashOf,
			int64(level*tlog.HashSize), (n+1)<<level-1), "the hash %d of the tree", id)
		if err != nil {
			return nil, err
		}
	}
	return hashes, nil
}

const hashOf = "SELECT substr(hashes, ?1 + 1, 32) FROM entries WHERE idx = ?2 AND length(hashes) > ?1"

func (t *tx) CountHashes() (int64, error) {
	return one(all(t, func(r *row) int64 {
		size := r.int64()
		if size%tlog.HashSize != 0 {
			r.unreadable("a multiple of 32 bytes")
		}
		return size / tlog.HashSize
	}, "SELECT coalesce(sum(length(hashes)), 0) FROM entries"), "the count of hashes")
}

// requestColumns stand in the order of the table.
const requestColumns = "run_id, at, updated, kind, status, state, actor, task, env, server, tool, args, arguments, definition, bundle, " +
	"mode, score, policy, code, reason, binding, approvers, quorum, agreed, expires, owner, sent, ended, steps, head, entry, entries, delivered"

func readRequest(r *row) ledger.Request {
	return ledger.Request{
		RunID: r.text(), At: r.text(), Updated: r.text(), Kind: r.text(), Status: ledger.Status(r.text()), State: fsm.State(r.text()),
		Actor: r.text(), Task: r.text(), Env: r.text(), Server: r.text(), Tool: r.text(), Args: r.text(),
		Arguments: canonical.Digest(r.text()), Definition: canonical.Digest(r.text()), Bundle: canonical.Digest(r.text()),
		Mode: r.text(), Score: r.int(), Policy: r.text(), Code: r.text(), Reason: r.text(), Binding: canonical.Digest(r.text()),
		Approvers: readList(r), Quorum: r.int(), Agreed: r.int(), Expires: r.text(), Owner: r.text(), Sent: r.text(), Ended: r.text(),
		Steps: r.int(), Head: canonical.Digest(r.text()), Entry: r.int64(), Entries: r.int(), Delivered: r.text(),
	}
}

// readList reads a JSON list of strings; an empty one is nil.
func readList(r *row) []string {
	text := r.text()
	if r.err != nil || text == "[]" {
		return nil
	}
	var list []string
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		r.err = fmt.Errorf("column %d is not a JSON list: %w (%w)", r.at, ErrNotLedger, err)
	}
	return list
}

func (t *tx) Request(run string) (ledger.Request, error) {
	return one(all(t, readRequest, "SELECT "+requestColumns+" FROM requests WHERE run_id = ?", run), "run %s", run)
}

func (t *tx) Reached(run string) (int64, error) {
	return one(all(t, (*row).int64, "SELECT entry FROM requests WHERE run_id = ?", run), "run %s", run)
}

func (t *tx) Requests(f ledger.Filter) iter.Seq2[ledger.Request, error] {
	query, args := filtered(f)
	return all(t, readRequest, query, args...)
}

// wholeArgs is the text of a request's arguments, also where the row has a reference to it.
const wholeArgs = "iif(substr(args, 1, 1) = '@', (SELECT text FROM blobs WHERE digest = substr(args, 2)), args)"

// filtered writes a filter as a query. The terms of the conditions are those of the partial indexes.
func filtered(f ledger.Filter) (string, []any) {
	var terms []string
	var args []any
	term := func(on bool, text string, values ...any) {
		if on {
			terms, args = append(terms, text), append(args, values...)
		}
	}
	statuses := make([]any, len(f.Statuses))
	for i, s := range f.Statuses {
		statuses[i] = string(s)
	}
	// Few runs are open, and few were held; nearly all have ended, and were not. SQLite does not know that, and would read all that
	// were ever denied to find those that still are open, or that people denied: the plus sign keeps it from the index of statuses.
	// Of those that were held few are open.
	status, binding := "status", "binding"
	if f.Open || f.Held {
		status = "+status"
	}
	if f.Open {
		binding = "+binding"
	}
	term(len(statuses) > 0, status+" IN (?"+strings.Repeat(", ?", max(len(statuses)-1, 0))+")", statuses...)
	common := slices.Contains(f.Statuses, ledger.Executed) || slices.Contains(f.Statuses, ledger.Denied)
	term(len(statuses) > 0 && !common, "status NOT IN ('executed', 'denied')")
	term(f.Open, "ended = ''")
	term(f.Held, binding+" <> ''")
	term(f.Actor != "", "actor = ?", f.Actor)
	term(f.Task != "", "task <> '' AND task = ?", f.Task)
	term(f.Server != "", "server = ?", f.Server)
	term(f.Tool != "", "tool = ?", f.Tool)
	term(f.Policy != "", "policy = ?", f.Policy)
	term(f.Code != "", "code = ?", f.Code)
	// One expression, so that one index has it: what is open is behind all times.
	term(f.Since != "", "iif(ended = '', '~', max(at, sent)) >= ?", f.Since)
	term(f.Until != "", "at < ?", f.Until)
	term(f.Text != "", "instr(lower("+wholeArgs+"), lower(?)) > 0", f.Text)
	term(f.Counted, "(sent <> '' OR ended = '')")
	term(f.After != "", "run_id > ?", f.After)
	query := "SELECT " + requestColumns + " FROM requests"
	if len(terms) > 0 {
		query += " WHERE " + strings.Join(terms, " AND ")
	}
	query += " ORDER BY run_id"
	if f.Newest {
		query += " DESC"
	}
	if f.Limit > 0 {
		query, args = query+" LIMIT ?", append(args, int64(f.Limit))
	}
	return query, args
}

// attachable has the conditions of the partial index written out, so that it is used.
const attachable = "kind = '" + states.KindAgent + "' AND binding <> '' AND delivered = ''"

const waiting = "SELECT run_id FROM requests WHERE actor = ? AND server = ? AND tool = ? AND arguments = ? AND " + attachable +
	" ORDER BY run_id LIMIT 1"

func (t *tx) Waiting(l ledger.Look) (string, error) {
	return one(all(t, (*row).text, waiting, l.Actor, l.Server, l.Tool, string(l.Arguments)), "a run that waits")
}

func readBlob(r *row) ledger.Blob {
	return ledger.Blob{Digest: canonical.Digest(r.text()), Kind: r.text(), Text: r.text()}
}

func (t *tx) Blob(d canonical.Digest) (ledger.Blob, error) {
	return one(all(t, readBlob, "SELECT digest, kind, text FROM blobs WHERE digest = ?", string(d)), "blob %s", d)
}

func (t *tx) Blobs() iter.Seq2[ledger.Blob, error] {
	return all(t, readBlob, "SELECT digest, kind, text FROM blobs ORDER BY digest")
}

const tokenColumns = "id, name, role, secret, created, expires, revoked, entry"

func readToken(r *row) ledger.Token {
	return ledger.Token{
		ID: r.text(), Name: r.text(), Role: r.text(), Secret: canonical.Digest(r.text()), Created: r.text(), Expires: r.text(),
		Revoked: r.text(), Entry: r.int64(),
	}
}

func (t *tx) Token(id string) (ledger.Token, error) {
	return one(all(t, readToken, "SELECT "+tokenColumns+" FROM tokens WHERE id = ?", id), "token %s", id)
}

func (t *tx) Tokens() iter.Seq2[ledger.Token, error] {
	return all(t, readToken, "SELECT "+tokenColumns+" FROM tokens ORDER BY created, id")
}

func (t *tx) Deliveries(due string, limit int) iter.Seq2[ledger.Delivery, error] {
	return all(t, func(r *row) ledger.Delivery {
		return ledger.Delivery{Entry: r.int64(), Hook: r.text(), Attempts: r.int(), Next: r.text(), State: r.text(), Error: r.text()}
	}, "SELECT entry, hook, attempts, next, state, error FROM deliveries WHERE state = 'waiting' AND next <= ? ORDER BY entry, hook LIMIT ?",
		due, int64(max(limit, 0)))
}

func (t *tx) Hooks() iter.Seq2[string, error] {
	return all(t, (*row).text, "SELECT hook FROM delivered ORDER BY hook")
}

func (t *tx) Delivered(hook string) (int64, error) {
	return one(all(t, (*row).int64, "SELECT next FROM delivered WHERE hook = ?", hook), "hook %s", hook)
}
