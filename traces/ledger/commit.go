package ledger

import (
	"context"
	"errors"
	"io"
	"maps"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/traces/ledger/checkpoint"
)

// maxBatch bounds the operations that share a transaction.
const maxBatch = 256

// yields says how often the committer yields before it commits, if the last commit had several
// operations. Under load, more operations arrive meanwhile and share the flush.
const yields = 2

// An operation is committed as a whole or not at all. It may run more than once, so it keeps no
// state. It returns its refusals before it writes anything, so that the other operations of its
// batch continue.
type operation struct {
	do    func(*batch) error
	ahead func(Reader) // reads that do begins with; may be nil
	taken atomic.Bool  // the committer records it, or its caller gave it up
	err   chan error
}

// commit runs an operation. When it returns nil, the operation is durable. If ctx is done, an
// operation that has not begun is dropped.
func (l *Ledger) commit(ctx context.Context, do func(*batch) error) error {
	return l.commitAhead(ctx, nil, do)
}

// commitAhead is commit for an operation that begins with the reads of ahead. They cost no round
// trip: see [Store.Update].
func (l *Ledger) commitAhead(ctx context.Context, ahead func(Reader), do func(*batch) error) error {
	o := &operation{do: do, ahead: ahead, err: make(chan error, 1)}
	select {
	case <-l.closing:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	case l.queue <- o:
	}

	select {
	case err := <-o.err:
		return err
	case <-ctx.Done():
		if o.taken.CompareAndSwap(false, true) {
			return context.Cause(ctx)
		}
		return <-o.err
	case <-l.done:
		select {
		case err := <-o.err:
			return err
		default:
			return ErrClosed
		}
	}
}

// commitLoop commits all waiting operations in one transaction, and repeats that until the ledger
// is closed.
func (l *Ledger) commitLoop() {
	defer close(l.done)
	lastSize := 1 // how many operations the last commit had
	for {
		var waiting []*operation
		select {
		case o := <-l.queue:
			waiting = append(waiting, o)
		case <-l.closing:
			select {
			case o := <-l.queue:
				waiting = append(waiting, o)
			default:
				return
			}
		}
		waiting = l.collectBatch(waiting, lastSize, runtime.Gosched)
		lastSize = len(waiting)
		l.commitOperations(waiting)
	}
}

// collectBatch returns the waiting operations and those that arrive while other goroutines run.
func (l *Ledger) collectBatch(waiting []*operation, lastSize int, yield func()) []*operation {
	for n := 0; n < yields && lastSize > 1; n++ {
		yield()
	}
	for len(waiting) < maxBatch {
		select {
		case o := <-l.queue:
			waiting = append(waiting, o)
		default:
			return waiting
		}
	}
	return waiting
}

// commitOperations commits operations together and, if that fails, each alone. It does not retry if
// no operation was begun, or if the store cannot record now: each retry would wait in vain.
func (l *Ledger) commitOperations(waiting []*operation) {
	begun := waiting[:0]
	for _, o := range waiting {
		if o.taken.CompareAndSwap(false, true) {
			begun = append(begun, o)
		}
	}

	if len(begun) == 0 {
		return
	}
	errs, err := l.commitBatch(begun)
	// After ErrUnsettled, each operation may be committed already.
	if err != nil && errs != nil && len(begun) > 1 && !errors.Is(err, ErrUnsettled) && !errors.Is(err, ErrUnavailable) {
		for i, o := range begun {
			refusals, err := l.commitBatch(begun[i : i+1])
			if err != nil {
				o.err <- err
				continue
			}
			o.err <- refusals[0]
		}
		return
	}

	for i, o := range begun {
		if err != nil {
			o.err <- err
		} else {
			o.err <- errs[i]
		}
	}
}

// commitBatch runs operations in one transaction. errs has the refusal of each operation, and is
// nil if none was begun; err says why the transaction failed.
func (l *Ledger) commitBatch(operations []*operation) (errs []error, err error) {
	start := time.Now()
	defer func() {
		if took := l.measure.Load(); took != nil {
			(*took)(time.Since(start))
		}
	}()

	readAhead := func(r Reader) {
		for _, o := range operations {
			if o.ahead != nil {
				o.ahead(r)
			}
		}
	}

	var added map[generationKey]int64
	var ended []Connection
	err = l.store.Update(context.Background(), func(storeTx Tx) error {
		tx, err := l.rememberTx(storeTx)
		if err != nil {
			return err
		}
		end := tx.end
		if end.Type == LedgerClosed {
			return closedError(tx)
		}
		now, err := l.timeAfter(end.At)
		if err != nil {
			return err
		}

		errs = make([]error, len(operations))
		b := &batch{Tx: tx, ledger: l, random: l.random, size: end.Size, now: now}
		readAhead(tx)

		for i, o := range operations {
			b.wrote = false
			if errs[i] = o.do(b); errs[i] == nil {
				errs[i] = b.flushEntry()
			}
			if errs[i] != nil && b.wrote {
				return errs[i]
			}
		}

		added, ended = b.generations, b.ended
		tx.version, err = storeTx.DataVersion()
		return err
	}, readAhead)
	if err != nil {
		l.memory = nil
	} else {
		maps.Copy(l.generations, added)
		if do := l.ended.Load(); do != nil && len(ended) > 0 {
			(*do)(ended)
		}
	}

	return errs, l.reportFatal(err)
}

// A batch is a transaction together with the end of the log.
type batch struct {
	Tx
	ledger *Ledger
	random io.Reader
	size   int64 // how many entries the store has
	now    string
	wrote  bool     // the operation has written something
	entry  *Entry   // the entry that is not in the store yet
	by     string   // who caused entry
	events [][]byte // the events of entry
	types  []Type   // their types

	generations map[generationKey]int64 // entries of generations that the transaction added
	ended       []Connection            // connections that the transaction ended
}

// addEvent adds an event, and applies it to its request, if it has one. It does not put the
// request: an operation that adds several events puts the request once. The events that an
// operation adds to a run make one entry. An operation that reads its own events must flush first.
func (b *batch) addEvent(r *RunRow, run, by string, p payload) error {
	b.wrote = true
	if b.size == 0 && b.entry == nil && p.eventType() != LogCreated {
		if err := b.addEvent(nil, "", b.ledger.owner, &logCreated{Origin: b.ledger.origin}); err != nil {
			return err
		}
	}

	if e := b.entry; e == nil || run == "" || e.RunID != run || b.by != by {
		if err := b.beginEntry(r, run, by); err != nil {
			return err
		}
	}

	text, err := encodePayload(p)
	if err != nil {
		return err
	}

	e := b.entry
	b.events, b.types = append(b.events, text), append(b.types, p.eventType())
	if run == "" {
		e.Type = p.eventType()
	}
	if r == nil {
		return nil
	}
	if err := projectEvent(r, &Event{Index: e.Index, RunID: run, Type: p.eventType(), At: e.At, By: by}, p); err != nil {
		return err
	}

	r.Entry, r.Entries = e.Index, e.N+1
	return nil
}

// beginEntry flushes the previous entry and begins a new one.
func (b *batch) beginEntry(r *RunRow, run, by string) error {
	if err := b.flushEntry(); err != nil {
		return err
	}
	e := &Entry{Index: b.size, RunID: run, At: b.now}
	if r != nil && r.Entries > 0 {
		previousHash, err := leafHash(b, r.Entry)
		if err != nil {
			return err
		}
		e.N, e.Previous, e.Prev = r.Entries, r.Entry, encodeLink(previousHash)
	}
	b.entry, b.by = e, by
	return nil
}

// flushEntry adds the entry to the store, with the hashes of the tree that the entry completes.
func (b *batch) flushEntry() error {
	e := b.entry
	if e == nil {
		return nil
	}
	salt := make([]byte, checkpoint.SaltBytes)
	if _, err := io.ReadFull(b.random, salt); err != nil {
		return err
	}
	e.Body = encodeBody(b.by, b.events, e.RunID, salt)
	leaf := tlog.RecordHash(e.leafOf(b.types))
	hashes, err := tlog.StoredHashesForRecordHash(e.Index, leaf, b)
	if err != nil {
		return err
	}
	if err := b.AddEntry(*e, hashes); err != nil {
		return err
	}
	b.entry, b.events, b.types, b.size = nil, nil, nil, b.size+1
	return nil
}
