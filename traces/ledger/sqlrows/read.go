package sqlrows

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/fsm"
	"pgfsm/internal/canonical"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// entryColumns lists the columns of an entry. The link to the entry before it of its run is in the
// hashes of that entry.
const entryColumns = "e.idx, e.run, e.n, coalesce(e.previous, 0), e.at, " +
	"(SELECT substr(p.hashes, 1, 32) FROM entries p WHERE p.idx = e.previous), e.type, e.body, e.header"

func readEntry(r *Row) ledger.Entry {
	e := ledger.Entry{
		Index:    r.Int64(),
		RunID:    r.ID(),
		N:        r.nextInt(),
		Previous: r.Int64(),
		At:       r.Time(),
	}
	if prev := r.optional(tlog.HashSize); prev != nil {
		e.Prev = base64.StdEncoding.EncodeToString(prev)
	}
	e.Type = ledger.Type(r.OptionalText())
	e.Body, e.Header = readJSON(r), readJSON(r)
	return e
}

// maxIndex is the largest index that an entry can have: package tlog does not terminate for larger
// trees.
const maxIndex = 1<<62 - 1

func readEnd(r *Row) ledger.End {
	index := r.Int64()
	if index > maxIndex && r.err == nil {
		r.err = fmt.Errorf("the last entry has the index %d: %w", index, ledger.ErrMalformed)
	}
	return ledger.End{Size: index + 1, At: r.Time(), Type: ledger.Type(r.OptionalText())}
}

func (t *Tx) End() (ledger.End, error) {
	for end, err := range queryRows(t, onePage, readEnd,
		"SELECT idx, at, type FROM entries ORDER BY idx DESC LIMIT 1") {
		return end, err
	}
	return ledger.End{}, nil
}

// OfType repeats the condition of the partial index, so that the database uses the index.
const OfType = "SELECT " + entryColumns +
	" FROM entries e WHERE e.type IS NOT NULL AND e.type <> 'mcp.passed' AND e.type = ? AND e.idx >= ? AND e.body IS NOT NULL ORDER BY e.idx"

func (t *Tx) LastOfType(kind ledger.Type) (ledger.Entry, error) {
	return queryRow(t, "the last entry of type", kind, readEntry, OfType+" DESC LIMIT 1", string(kind), 0)
}

func (t *Tx) EntriesOfType(kind ledger.Type, from int64) iter.Seq2[ledger.Entry, error] {
	return queryRows(t, fullPage, readEntry, OfType, string(kind), from)
}

// Prompts implements [ledger.Reader]. The condition repeats that of the partial index.
func (t *Tx) Prompts(session string) iter.Seq2[ledger.Entry, error] {
	return queryRows(t, fullPage, readEntry, "SELECT "+entryColumns+" FROM entries e WHERE e.type = 'prompt.captured' AND "+
		t.dialect.Session+" = ? ORDER BY e.idx", session)
}

func (t *Tx) Entries(from int64) iter.Seq2[ledger.Entry, error] {
	return queryRows(t, fullPage, readEntry,
		"SELECT "+entryColumns+" FROM entries e WHERE e.idx >= ? ORDER BY e.idx", from)
}

// OfRun follows the entries of a run from its row and the last entry back to the first. SQLite
// keeps the order of a CROSS JOIN, and so looks up each entry; otherwise it would read all entries.
const OfRun = "WITH RECURSIVE chain(idx) AS (SELECT entry FROM runs WHERE run = ? UNION ALL " +
	"SELECT b.previous FROM chain c CROSS JOIN entries b WHERE b.idx = c.idx AND b.previous < c.idx) " +
	"SELECT " + entryColumns + " FROM chain c CROSS JOIN entries e WHERE e.idx = c.idx ORDER BY e.idx"

func (t *Tx) EntriesOf(run string) iter.Seq2[ledger.Entry, error] {
	return queryRows(t, fullPage, readEntry, OfRun, keyOf(run))
}

// keyOf returns the key of a run, or nil, which no row has, for a text that names none.
func keyOf(run string) []byte {
	u, err := uuid.Parse(run)
	if err != nil || u.String() != run {
		return nil
	}
	return u[:]
}

// ReadHashes implements [tlog.HashReader].
func (t *Tx) ReadHashes(ids []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(ids))
	for i, id := range ids {
		var err error
		entry, offset := Place(id)
		if hashes[i], err = queryRow(t, "the hash of the tree", id, (*Row).Hash, hashOf, offset+1, entry,
			offset); err != nil {
			return nil, err
		}
	}
	return hashes, nil
}

const hashOf = "SELECT substr(hashes, ?, 32) FROM entries WHERE idx = ? AND length(hashes) > ?"

// Place returns where a hash is stored: the entry that completes it, and the offset in that entry's
// hashes. A hash of level n is the nth.
func Place(id int64) (entry, offset int64) {
	level, n := tlog.SplitStoredHashIndex(id)
	return (n+1)<<level - 1, int64(level * tlog.HashSize)
}

func (t *Tx) CountHashes() (int64, error) {
	return queryRow(t, "the count of", "hashes", func(r *Row) int64 {
		size := r.Int64()
		if size%tlog.HashSize != 0 {
			r.fail("a multiple of 32 bytes")
		}
		return size / tlog.HashSize
	}, "SELECT coalesce(sum(length(hashes)), 0) FROM entries")
}

// runColumns lists the columns in the order of the table.
const runColumns = fixedColumns + ", " + changingColumns

const (
	fixedColumns = "first, run, at, kind, actor, display, on_behalf_of, on_behalf_of_display, client, task, env, server, " +
		"tool, args, arguments, definition, bundle, trace, session"
	// changingColumns lists those that events after the first one may change.
	changingColumns = "updated, status, state, mode, score, policy, code, reason, binding, approvers, quorum, agreed, expires, " +
		"owner, sent, ended, steps, head, entry, entries, delivered, call_trace, client_call"
)

func readRun(r *Row) ledger.RunRow {
	return ledger.RunRow{
		First:             r.Int64(),
		RunID:             r.ID(),
		At:                r.Time(),
		Kind:              r.Text(),
		Actor:             r.Text(),
		Display:           r.Text(),
		OnBehalfOf:        r.Text(),
		OnBehalfOfDisplay: r.Text(),
		Client:            r.Text(),
		Task:              r.Text(),
		Env:               r.Text(),
		Server:            r.Text(),
		Tool:              r.Text(),
		Args:              r.Text(),
		Arguments:         r.Digest(),
		Definition:        r.Digest(),
		Bundle:            r.Digest(),
		Trace:             r.Text(),
		Session:           r.Text(),
		Updated:           r.Time(),
		Status:            ledger.Status(r.Text()),
		State:             fsm.State(r.Text()),
		Mode:              r.Text(),
		Score:             r.nextInt(),
		Policy:            r.Text(),
		Code:              r.Text(),
		Reason:            r.Text(),
		Binding:           r.Digest(),
		Approvers:         readList(r),
		Quorum:            r.nextInt(),
		Agreed:            r.nextInt(),
		Expires:           r.Time(),
		Owner:             r.ID(),
		Sent:              r.Time(),
		Ended:             r.Time(),
		Steps:             r.nextInt(),
		Head:              r.Digest(),
		Entry:             r.Int64(),
		Entries:           r.nextInt(),
		Delivered:         r.Time(),
		CallTrace:         r.Text(),
		ClientCall:        r.Text(),
	}
}

// readList reads a JSON list of strings; an empty one is nil.
func readList(r *Row) []string {
	text := r.Text()
	if r.err != nil || text == "[]" {
		return nil
	}
	var list []string
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		r.err = fmt.Errorf("column %d is not a JSON list: %w (%w)", r.at, ledger.ErrMalformed, err)
	}
	return list
}

func (t *Tx) Run(run string) (ledger.RunRow, error) {
	return queryRow(t, "run", run, readRun, "SELECT "+runColumns+" FROM runs WHERE run = ?", keyOf(run))
}

func (t *Tx) LastIndexOf(run string) (int64, error) {
	return queryRow(t, "run", run, (*Row).Int64, "SELECT entry FROM runs WHERE run = ?", keyOf(run))
}

func (t *Tx) Runs(f ledger.Filter) iter.Seq2[ledger.RunRow, error] {
	query, args := t.dialect.Requests(f)
	return queryRows(t, fullPage, readRun, query, args...)
}

// lowerASCII converts ASCII letters to lower case and no others, as lower does in both databases.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// Requests writes a filter as a query. Its conditions repeat the terms of the partial indexes.
func (d *Dialect) Requests(f ledger.Filter) (string, []any) {
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

	// Few runs are open and few were held; nearly all have ended and were never held. SQLite does
	// not know that: to find open or approver-denied runs, it would read every denied run. The plus
	// sign keeps SQLite from using the index of statuses. Of the runs that were held, few are open.
	status, binding := "status", "binding"
	if f.Open || f.Held {
		status = d.Unindexed + status
	}

	if f.Open {
		binding = d.Unindexed + binding
	}

	term(len(statuses) > 0, status+" IN (?"+strings.Repeat(", ?", max(len(statuses)-1, 0))+")", statuses...)
	common := slices.Contains(f.Statuses, ledger.Executed) || slices.Contains(f.Statuses, ledger.Denied)
	term(len(statuses) > 0 && !common, "status NOT IN ('executed', 'denied')")
	term(f.Open, "ended IS NULL")
	term(f.Held, binding+" IS NOT NULL")
	// The indexes of names are on expressions that depend on the database.
	named := func(column, name string) {
		term(name != "", d.Name(column), slices.Repeat([]any{name}, strings.Count(d.Name(column), "?"))...)
	}
	named("actor", f.Actor)
	term(f.Who != "", "(actor = ? OR display = ?)", f.Who, f.Who)
	term(f.Task != "", "task <> '' AND task = ?", f.Task)
	term(f.Session != "", "session <> '' AND session = ?", f.Session)
	term(f.ClientCall != "", "client_call = ?", f.ClientCall)
	named("server", f.Server)
	named("tool", f.Tool)
	term(f.Policy != "", "policy = ?", f.Policy)
	term(f.Code != "", "code = ?", f.Code)
	// This is one expression, so that one index covers it. Open runs sort after all times.
	term(f.Since != "", Reached+" >= ?", timeKey(f.Since))
	term(f.Until != "", "at < ?", timeKey(f.Until))
	term(f.Text != "", d.Position+"(lower("+d.Args+"), ?) > 0", lowerASCII(f.Text))
	term(f.Counted, "(sent IS NOT NULL OR ended IS NULL)")
	term(f.After != "", "run > ?", prefixKey(f.After))
	term(f.Before != "", "run < ?", prefixKey(f.Before))
	term(f.Short != "", fmt.Sprintf("substr(%s, %d, %d) = ?", d.HexRun, 32-ledger.ShortRun+1, len(f.Short)), f.Short)
	query := "SELECT " + runColumns + " FROM runs"
	if len(terms) > 0 {
		query += " WHERE " + strings.Join(terms, " AND ")
	}

	query += " ORDER BY run"
	if f.Newest {
		query += " DESC"
	}

	if f.Limit > 0 {
		query, args = query+" LIMIT ?", append(args, int64(f.Limit))
	}

	return query, args
}

// Reached is when a call was asked for or left, whichever is later. The indexes repeat it.
const Reached = "CASE WHEN ended IS NULL THEN 9223372036854775807 WHEN sent > at THEN sent ELSE at END"

// timeKey returns a time of a filter in milliseconds. A text of another form is before all times.
func timeKey(text string) int64 {
	ms, ok := milliseconds(text)
	if !ok {
		return math.MinInt64
	}
	return ms
}

// prefixKey returns the key of a run, or of the beginning of one.
func prefixKey(run string) []byte {
	key, err := hex.DecodeString(strings.ReplaceAll(run, "-", ""))
	if err != nil {
		return []byte{}
	}
	return key
}

// counts reads a bounded number of rows, whatever the period is.
const counts = "SELECT CASE WHEN at >= ? THEN at / ? * ? END AS since, status, code, min(at), count(*) " +
	"FROM (SELECT at, status, code FROM runs ORDER BY run DESC LIMIT ?) AS newest GROUP BY 1, 2, 3 ORDER BY since NULLS FIRST, 2, 3"

func (t *Tx) Counts(newest int, since string, unit time.Duration) iter.Seq2[ledger.Count, error] {
	return queryRows(t, fullPage, func(r *Row) ledger.Count {
		return ledger.Count{
			At:     r.Time(),
			Status: ledger.Status(r.Text()),
			Code:   r.Text(),
			First:  r.Time(),
			Runs:   r.nextInt(),
		}
	}, counts, timeKey(since), unit.Milliseconds(), unit.Milliseconds(), int64(newest))
}

// attachable repeats the conditions of the partial index, so that the database uses the index.
const attachable = "binding IS NOT NULL AND delivered IS NULL AND kind = ?"

// Waiting is the query of [ledger.Reader.FindWaiting].
const Waiting = waiting + firstRun

// WaitingDelegated is the same for a call that its client makes itself.
const WaitingDelegated = waiting + " AND session = ? AND sent IS NULL" + firstRun

const (
	waiting  = "SELECT run FROM runs WHERE actor = ? AND on_behalf_of = ? AND client = ? AND server = ? AND tool = ? AND arguments = ? AND " + attachable
	firstRun = " ORDER BY run LIMIT 1"
)

func (t *Tx) FindWaiting(l ledger.RepeatedCall) (string, error) {
	var arguments values
	if arguments.addDigest(l.Arguments); arguments.err != nil {
		return "", arguments.err
	}
	query, args := Waiting, []any{l.Actor, l.OnBehalfOf, l.Client, l.Server, l.Tool, arguments.list[0], cmp.Or(l.Kind, states.KindAgent)}
	if l.Kind != "" {
		query, args = WaitingDelegated, append(args, l.Session)
	}
	return queryRow(t, "a run that waits for", l.Tool, (*Row).ID, query, args...)
}

func readBlob(r *Row) ledger.Blob {
	return ledger.Blob{Digest: canonical.Digest(r.Text()), Kind: r.Text(), Text: r.Text()}
}

func (t *Tx) Blob(d canonical.Digest) (ledger.Blob, error) {
	return queryRow(t, "blob", d, readBlob, "SELECT digest, kind, text FROM blobs WHERE digest = ?", string(d))
}

func (t *Tx) Blobs() iter.Seq2[ledger.Blob, error] {
	return queryRows(t, largePage, readBlob, "SELECT digest, kind, text FROM blobs ORDER BY digest")
}

const tokenColumns = "id, name, role, secret, created, expires, revoked, entry"

func readToken(r *Row) ledger.Token {
	return ledger.Token{
		ID:      r.Text(),
		Name:    r.Text(),
		Role:    r.Text(),
		Secret:  canonical.Digest(r.Text()),
		Created: r.Text(),
		Expires: r.Text(),
		Revoked: r.Text(),
		Entry:   r.Int64(),
	}
}

func (t *Tx) Token(id string) (ledger.Token, error) {
	return queryRow(t, "token", id, readToken, "SELECT "+tokenColumns+" FROM tokens WHERE id = ?", id)
}

func (t *Tx) Tokens() iter.Seq2[ledger.Token, error] {
	return queryRows(t, fullPage, readToken, "SELECT "+tokenColumns+" FROM tokens ORDER BY created, id")
}

func readBlock(r *Row) ledger.Block {
	return ledger.Block{Name: r.Text(), Since: r.Text(), By: r.Text(), Entry: r.Int64()}
}

func (t *Tx) Block(name string) (ledger.Block, error) {
	return queryRow(t, "the block of", name, readBlock, "SELECT name, since, by, entry FROM blocks WHERE name = ?",
		name)
}

func (t *Tx) Blocks() iter.Seq2[ledger.Block, error] {
	return queryRows(t, fullPage, readBlock, "SELECT name, since, by, entry FROM blocks ORDER BY name")
}

// Scopes have no spaces.
const connectionColumns = "person, server, id, kind, issuer, client, resource, scopes, account, state, made, used, seal_key, generation, entry, asked, holder, until, sealed"

func readConnection(r *Row) ledger.Connection {
	return ledger.Connection{
		Person:     r.Text(),
		Server:     r.Text(),
		ID:         r.Text(),
		Kind:       r.Text(),
		Issuer:     r.Text(),
		Client:     r.Text(),
		Resource:   r.Text(),
		Scopes:     strings.Fields(r.Text()),
		Account:    r.Text(),
		State:      r.Text(),
		Made:       r.Text(),
		Used:       r.Text(),
		Key:        r.Text(),
		Generation: r.Int64(),
		Entry:      r.Int64(),
		Asked:      strings.Fields(r.Text()),
		Holder:     r.Text(),
		Until:      r.Text(),
		Sealed:     r.Bytes(),
	}
}

func (t *Tx) Connection(person, server string) (ledger.Connection, error) {
	return queryRow(t, "a connection to", server, readConnection,
		"SELECT "+connectionColumns+" FROM connections WHERE person = ? AND server = ?", person, server)
}

func (t *Tx) Connections() iter.Seq2[ledger.Connection, error] {
	return queryRows(t, fullPage, readConnection, "SELECT "+connectionColumns+" FROM connections ORDER BY person, server")
}

func (t *Tx) Deliveries(hook, due string, limit int) iter.Seq2[ledger.Delivery, error] {
	query, args := "SELECT entry, hook, attempts, next, state, error FROM deliveries WHERE state = 'waiting' AND next <= ?", []any{due}
	if hook != "" {
		query, args = query+" AND hook = ?", append(args, hook)
	}
	return queryRows(t, fullPage, func(r *Row) ledger.Delivery {
		return ledger.Delivery{
			Entry:    r.Int64(),
			Hook:     r.Text(),
			Attempts: r.nextInt(),
			Next:     r.Text(),
			State:    r.Text(),
			Error:    r.Text(),
		}
	}, query+" ORDER BY entry, hook LIMIT ?", append(args, int64(max(limit, 0)))...)
}

func (t *Tx) NextDelivery(hook string) (int64, error) {
	return queryRow(t, "hook", hook, (*Row).Int64, "SELECT next FROM delivered WHERE hook = ?", hook)
}
