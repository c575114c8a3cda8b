package ledger

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// Rebuild computes the rows of requests, tokens and blocks from the entries again, and drops the rows of connections that no
// entry accounts for. It writes the
// rows that differ to tx, unless tx is nil, and returns the faults that it found. It evaluates no
// gate and does not check the tree: see [Verify].
func Rebuild(ctx context.Context, r Reader, tx Tx) (different []Fault, err error) {
	b := newRebuild(ctx, r, tx, func(f Fault) { different = append(different, f) })
	for e, err := range r.Entries(0) {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return different, err
		}
		if err := b.addEntry(&e); err != nil {
			return different, err
		}
	}
	if err := b.finish(); err != nil {
		return different, err
	}
	return different, b.removeRuns()
}

// A rebuild computes rows from the entries, which [rebuild.addEntry] gets in order, and compares them
// with those of the store.
type rebuild struct {
	ctx   context.Context
	r     Reader
	tx    Tx // nil: rebuild writes nothing
	note  func(Fault)
	known generations
	open  map[string]*RunRow // runs that may get further entries
}

// newRebuild begins a rebuild that calls note with each row that differs.
func newRebuild(ctx context.Context, r Reader, tx Tx, note func(Fault)) *rebuild {
	return &rebuild{
		ctx:   ctx,
		r:     r,
		tx:    tx,
		note:  note,
		known: make(generations),
		open:  make(map[string]*RunRow),
	}
}

// noteFault notes a row that differs, and writes it.
func (b *rebuild) noteFault(table, key, what string, write func(Tx) error) error {
	b.note(*newFault(table, key, what))
	if b.tx == nil {
		return nil
	}
	return write(b.tx)
}

// addEntry applies an entry to the row of its run. It compares the row once the run is final.
func (b *rebuild) addEntry(e *Entry) error {
	if e.RunID == "" {
		return nil
	}
	row := b.open[e.RunID]
	if row == nil {
		row = new(RunRow)
		b.open[e.RunID] = row
	}
	if err := row.applyEntry(b.r, e, b.known); err != nil {
		return err
	}
	if !row.isFinal() {
		return nil
	}
	delete(b.open, e.RunID)
	return b.rebuildRun(row)
}

// finish compares the rows of the other runs, and those of tokens, blocks and connections.
func (b *rebuild) finish() error {
	for _, run := range slices.Sorted(maps.Keys(b.open)) {
		if err := b.rebuildRun(b.open[run]); err != nil {
			return err
		}
	}
	if err := b.rebuildTokens(); err != nil {
		return err
	}
	if err := b.rebuildBlocks(); err != nil {
		return err
	}
	return b.rebuildConnections()
}

// isFinal reports whether the run gets no further entry: it has ended and, if it was held, its
// outcome was delivered, or its permit handed out.
func (r *RunRow) isFinal() bool {
	return r.Ended != "" && (r.Binding == "" || r.Delivered != "" || r.Delegates() && r.Sent != "")
}

// rebuildRun compares the row of a run with its entries.
func (b *rebuild) rebuildRun(want *RunRow) error {
	have, err := b.r.Run(want.RunID)
	switch {
	case errors.Is(err, ErrNotFound):
		return b.noteFault("requests", want.RunID, rowMissing, func(tx Tx) error { return tx.AddRun(*want) })
	case err != nil:
		return err
	}
	if what := differingColumn(*want, have); what != "" {
		return b.noteFault("requests", want.RunID, "its "+what, func(tx Tx) error {
			return errors.Join(tx.Prune(nil, []string{want.RunID}, nil), tx.AddRun(*want))
		})
	}
	return nil
}

// removeRuns removes the rows of runs without an entry.
func (b *rebuild) removeRuns() error {
	for q, err := range b.r.Runs(Filter{}) {
		if err = errors.Join(err, b.ctx.Err()); err != nil {
			return err
		}
		begins, err := beginsRun(b.r, &q)
		if err != nil {
			return err
		}
		if begins {
			continue
		}
		err = b.noteFault("requests", q.RunID, rowOfNothing, func(tx Tx) error { return tx.Prune(nil, []string{q.RunID}, nil) })
		if err != nil {
			return err
		}
	}
	return nil
}

// beginsRun reports whether the run begins with the entry that its row names.
func beginsRun(r Reader, q *RunRow) (bool, error) {
	for e, err := range r.Entries(q.First) {
		return err == nil && e.Index == q.First && e.RunID == q.RunID && e.N == 0, err
	}
	return false, nil
}

// rebuildTokens rebuilds the rows of tokens.
func (b *rebuild) rebuildTokens() error {
	events, err := eventsOfTypes(b.r, TokenCreated, TokenRevoked)
	if err != nil {
		return err
	}
	want, err := tokensAfter(events)
	if err != nil {
		return err
	}
	_, err = compareTokens(b.r, want, rowRepair(b, "tokens", want, Tx.PutToken, Tx.DropToken))
	return err
}

// rebuildBlocks rebuilds the rows of blocks.
func (b *rebuild) rebuildBlocks() error {
	events, err := eventsOfTypes(b.r, IdentityBlocked, IdentityUnblocked)
	if err != nil {
		return err
	}
	want, err := blocksAfter(events)
	if err != nil {
		return err
	}
	return compareBlocks(b.r, want, rowRepair(b, "blocks", want, Tx.PutBlock, Tx.DropBlock))
}

// rebuildConnections drops the rows of connections that their events do not account for. No entry has their credentials,
// so they cannot be rebuilt.
func (b *rebuild) rebuildConnections() error {
	live, err := readLiveConnections(b.r)
	if err != nil {
		return err
	}
	return compareConnections(b.r, live, func(c *Connection, what string) error {
		return b.noteFault("connections", c.Person+" "+c.Server, what, func(tx Tx) error { return tx.DropConnection(c.Person, c.Server) })
	})
}

// rowRepair returns a function that puts the wanted row of a key that differs, or drops a row that
// nothing accounts for.
func rowRepair[T any](b *rebuild, table string, want map[string]T, put func(Tx, T) error,
	drop func(Tx, string) error) func(key, what string) error {
	return func(key, what string) error {
		return b.noteFault(table, key, what, func(tx Tx) error {
			if row, known := want[key]; known {
				return put(tx, row)
			}
			return drop(tx, key)
		})
	}
}
