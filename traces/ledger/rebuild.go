package ledger

import (
	"context"
	"errors"
	"math"
)

// Rebuild computes the rows of requests, tokens and blocks from the entries again. It writes the
// rows that differ to tx, unless tx is nil, and returns the faults that it found. It evaluates no
// gate and does not check the tree: see [Verify].
func Rebuild(ctx context.Context, r Reader, tx Tx) (different []Fault, err error) {
	b := rebuild{ctx: ctx, r: r, tx: tx}
	for _, pass := range []func() error{b.rebuildRuns, b.addMissingRuns, b.rebuildTokens, b.rebuildBlocks} {
		if err := pass(); err != nil {
			return b.different, err
		}
	}
	return b.different, nil
}

type rebuild struct {
	ctx       context.Context
	r         Reader
	tx        Tx // nil: Rebuild writes nothing
	different []Fault
}

// noteFault notes a row that differs, and writes it.
func (b *rebuild) noteFault(table, key, what string, write func(Tx) error) error {
	b.different = append(b.different, Fault{table, key, what})
	if b.tx == nil {
		return nil
	}
	return write(b.tx)
}

// rebuildRuns rebuilds the existing rows of requests.
func (b *rebuild) rebuildRuns() error {
	for have, err := range b.r.Runs(Filter{}) {
		if err = errors.Join(err, b.ctx.Err()); err != nil {
			return err
		}
		if err := b.rebuildRun(have.RunID, &have); err != nil {
			return err
		}
	}
	return nil
}

// addMissingRuns adds the missing rows of requests.
func (b *rebuild) addMissingRuns() error {
	for e, err := range b.r.Entries(0) {
		if err = errors.Join(err, b.ctx.Err()); err != nil {
			return err
		}
		if e.RunID == "" || e.N > 0 {
			continue
		}
		if _, err = b.r.Run(e.RunID); errors.Is(err, ErrNotFound) {
			err = b.rebuildRun(e.RunID, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rebuildRun rebuilds the row of a request; have is nil if it is missing.
func (b *rebuild) rebuildRun(run string, have *RunRow) error {
	want, err := requestAt(b.r, run, math.MaxInt64)
	if err != nil {
		return err
	}
	put := func(tx Tx) error { return tx.PutRun(want) }
	switch {
	case have == nil:
		return b.noteFault("requests", run, rowMissing, put)
	case want.RunID == "":
		return b.noteFault("requests", run, rowOfNothing, func(tx Tx) error { return tx.Prune(nil, []string{run}, nil) })
	}
	if what := differingColumn(want, *have); what != "" {
		return b.noteFault("requests", run, "its "+what, put)
	}
	return nil
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
