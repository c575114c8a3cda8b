package ledger

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/traces/ledger/checkpoint"
)

// ErrNotEmpty means that the ledger cannot import a log, because it has entries.
var ErrNotEmpty = errors.New("the ledger is not empty: name a new one")

// ErrNotClosed means that an export is not of a closed log.
var ErrNotClosed = errors.New("the export does not end with " + string(LedgerClosed) + ": two ledgers would go on with one log; " +
	"close the old ledger with pgfsm ledger close, and export it again")

// MaxLineBytes bounds one line of an export, without its newline: four times the largest result of a
// tool.
const MaxLineBytes = 256 << 20

// ImportOptions configures [Import].
type ImportOptions struct {
	// Authorize returns the caller. It reads the imported tokens; Ledger.CreateToken says who may.
	Authorize func(Reader) (Caller, error)
	// Checkpoint is one that the log must contain; nil if there is none.
	Checkpoint *checkpoint.Checkpoint
	// Clock tells the time; nil means [Store.Now].
	Clock func() time.Time
}

// Import reads an export of a closed log, as an [Exporter] writes it, into an empty store, and adds
// the entry that continues the log. Entries keep their indexes and hashes, so checkpoints of the old
// ledger hold for the new one. The rows of runs, tokens and blocks are computed from the entries, and
// the whole is verified. All of it is one transaction: after an error the store is empty.
//
// Import keeps in memory one line, the runs that have not ended, and the digests of blobs.
//
// No entry can prevent that the same export is imported elsewhere, too. Then two logs of one origin
// differ after [LedgerClosed]: a checkpoint or a witness of one of them reveals the other.
func Import(ctx context.Context, store Store, export io.Reader, o ImportOptions) error {
	if o.Clock == nil {
		o.Clock = store.Now
	}
	return store.Update(ctx, func(tx Tx) error {
		if end, err := tx.End(); err != nil || end.Size > 0 {
			return cmp.Or(err, ErrNotEmpty)
		}

		m, err := readExport(ctx, tx, export)
		if err != nil {
			return err
		}
		if m.last.Type != LedgerClosed {
			return ErrNotClosed
		}
		if _, err := Verify(ctx, tx, VerifyOptions{Checkpoint: o.Checkpoint}); err != nil {
			return fmt.Errorf("the export: %w", err)
		}
		return m.continueLog(&o)
	})
}

// VerifyExport verifies an export, as an [Exporter] writes it from the log's first entry on. It reads the
// export into an empty store, as [Import] does, and verifies that with [Verify]. The error is a [*Fault]
// for what is wrong.
func VerifyExport(ctx context.Context, store Store, export io.Reader, o VerifyOptions) (report Report, err error) {
	err = store.Update(ctx, func(tx Tx) error {
		if _, err := readExport(ctx, tx, export); err != nil {
			if checkpoint.RuleOf(err) == "" {
				err = ruleForm.Wrap(err)
			}
			return asFault("export", "its lines", err)
		}
		report, err = Verify(ctx, tx, o)
		return err
	})
	return report, err
}

// readExport reads the lines of an export into an empty store, and computes the rows of runs, tokens and
// blocks.
func readExport(ctx context.Context, tx Tx, export io.Reader) (*importer, error) {
	tx = &rememberingTx{Tx: tx, memory: newMemory(DataVersion{}, End{})} // each entry needs hashes of earlier ones
	m := &importer{
		rows:   newRebuild(ctx, tx, tx, func(Fault) {}),
		tx:     tx,
		last:   Entry{Index: -1},
		blobs:  make(map[canonical.Digest]bool),
		pruned: make(map[string]prunedRun),
	}
	if err := m.readLines(export); err != nil {
		return nil, err
	}
	return m, m.rows.finish()
}

// An importer reads the lines of an export.
type importer struct {
	rows  *rebuild
	tx    Tx
	last  Entry // the entry before; its index is -1 before the first
	blobs map[canonical.Digest]bool
	// Runs whose bodies were pruned, and that may have further headers, by the link to their last
	// entry.
	pruned map[string]prunedRun
}

// A prunedRun is what the headers of a pruned run say so far.
type prunedRun struct {
	entry       int64 // index of its last entry
	held, ended bool
}

// readLines reads all lines. An error names the line.
func (m *importer) readLines(export io.Reader) error {
	lines := bufio.NewScanner(export)
	lines.Buffer(nil, MaxLineBytes+1)
	lines.Split(splitLine)

	n := 0
	for lines.Scan() {
		n++
		if err := m.rows.ctx.Err(); err != nil {
			return err
		}
		if err := m.addLine(lines.Bytes()); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}

	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("line %d: it has more than %d bytes", n+1, MaxLineBytes)
	case err != nil:
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	return nil
}

// splitLine returns the next line without its newline. The last line must have one, too.
func splitLine(data []byte, atEnd bool) (advance int, line []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEnd && len(data) > 0 {
		return 0, nil, ruleForm.Broken("it has no newline: the export was cut off")
	}
	return 0, nil, nil
}

// addLine adds what one line has to the store.
func (m *importer) addLine(text []byte) error {
	if bytes.HasPrefix(text, []byte(`{"blob":`)) {
		b := new(exportedBlob)
		if err := readLine(text, b); err != nil {
			return err
		}
		return m.addBlob(&Blob{b.Digest, b.Kind, b.Text})
	}

	line := new(exportedEntry)
	if err := readLine(text, line); err != nil {
		return err
	}
	return m.addEntry(line)
}

// readLine decodes a line strictly: only its canonical form is accepted, with exactly the members
// that [Exporter] writes.
func readLine(text []byte, line any) error {
	if err := canonical.Unmarshal(text, line); err != nil {
		return err
	}
	if encoded, err := canonical.Marshal(line); err != nil || !bytes.Equal(encoded, text) {
		return ruleForm.Broken("it is not in canonical form, or a member is missing")
	}
	return nil
}

func (m *importer) addBlob(b *Blob) error {
	if m.blobs[b.Digest] {
		return ruleBlobs.Broken("the blob was written before")
	}
	if b.Kind != BlobBundle && b.Kind != BlobValue {
		return ruleBlobs.Broken("there is no kind %q", b.Kind)
	}
	if err := b.checkDigest(b.Digest, b.Kind); err != nil {
		return err
	}
	if form, err := canonical.JSON([]byte(b.Text)); err != nil || string(form) != b.Text {
		return ruleBlobs.Broken("the text of the blob is not canonical JSON")
	}
	m.blobs[b.Digest] = true
	return m.tx.PutBlob(*b)
}

// addEntry adds an entry, with the hashes of the tree that it completes, and applies it to its run.
func (m *importer) addEntry(line *exportedEntry) error {
	if tlog.RecordHash(line.Header) != line.Hash {
		return ruleHeader.Broken("hash is not the leaf hash of the header")
	}
	h, err := checkpoint.ParseHeader(line.Header)
	if err != nil {
		return ruleForm.Broken("the header: %w", err)
	}

	e := &Entry{Index: line.Index, N: h.N, At: h.At, Prev: h.Prev, Body: line.Body}
	if e.Pruned() {
		e.Header = line.Header
		err = m.linkPruned(e, line.Hash, typesOf(h))
	} else {
		err = m.linkEntry(e, line, typesOf(h))
	}
	if err != nil {
		return err
	}

	if err := checkOrder(e, &m.last); err != nil {
		return err
	}
	hashes, err := tlog.StoredHashesForRecordHash(e.Index, line.Hash, m.tx)
	if err != nil {
		return err
	}
	if err := m.tx.AddEntry(*e, hashes); err != nil {
		return err
	}
	m.last = *e

	if e.Pruned() {
		return nil
	}
	return m.rows.addEntry(e)
}

// linkEntry compares an entry with its header and with the entry before it of its run, and sets what
// the line has no member for.
func (m *importer) linkEntry(e *Entry, line *exportedEntry, types []Type) error {
	body, err := checkpoint.ParseBody(e.Body)
	if err != nil {
		return ruleForm.Broken("the body: %w", err)
	}
	if e.RunID = body.Run; e.RunID == "" && len(types) > 0 {
		e.Type = types[0]
	}
	if !bytes.Equal(e.Leaf(), line.Header) {
		return ruleHeader.Broken("the header is not that of the body")
	}

	refs, err := e.blobReferences()
	if err != nil {
		return err
	}
	for _, d := range refs {
		if !m.blobs[d] {
			return ruleBlobs.Broken("no line before has the blob %s", d)
		}
	}

	if e.RunID == "" {
		return nil
	}
	entries, prev := 0, ""
	if row := m.rows.open[e.RunID]; row != nil {
		link, err := leafHash(m.tx, row.Entry)
		if err != nil {
			return err
		}
		entries, prev, e.Previous = row.Entries, encodeLink(link), row.Entry
	}
	if e.N != entries || e.Prev != prev {
		return ruleChain.Broken("it is linked to another entry of its run")
	}
	return nil
}

// linkPruned finds the entry before a pruned one in its run, by the link in its header.
func (m *importer) linkPruned(e *Entry, leaf tlog.Hash, types []Type) error {
	if classOf(types) != ClassRun {
		if len(types) == 1 {
			e.Type = types[0]
		}
		return nil
	}

	run, known := m.pruned[e.Prev]
	if known != (e.N > 0) {
		return ruleChain.Broken("it is linked to another entry of its run")
	}
	if known {
		e.Previous = run.entry
		delete(m.pruned, e.Prev)
	}

	run.entry = e.Index
	run.held = run.held || slices.Contains(types, ApprovalRequested)
	run.ended = run.ended || slices.Contains(types, RunEnded)
	if run.ended && !run.held || slices.Contains(types, OutcomeDelivered) { // as RunRow.isFinal
		return nil
	}
	m.pruned[encodeLink(leaf)] = run
	return nil
}

// continueLog adds the entry after the one that closed the log.
func (m *importer) continueLog(o *ImportOptions) error {
	by, err := o.Authorize(m.tx)
	if err != nil {
		return err
	}
	now, err := notBefore(o.Clock(), m.last.At)
	if err != nil {
		return err
	}
	if err := mayManage(m.tx, by, now); err != nil {
		return err
	}
	b := &batch{Tx: m.tx, random: rand.Reader, size: m.last.Index + 1, now: now}
	if err := b.addEvent(nil, "", by.Name, new(ledgerContinued)); err != nil {
		return err
	}
	return b.flushEntry()
}
