package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Rebuild computes the rows of requests and tokens from the entries again, and returns those that differ, as they were found. It writes them
// to tx; nil writes nothing. It runs no gate and does not check the tree: see [Verify].
func Rebuild(ctx context.Context, r Reader, tx Tx) (different []Fault, err error) {
	b := rebuild{ctx: ctx, r: r, tx: tx}
	for _, pass := range []func() error{b.requests, b.missing, b.tokens} {
		if err := pass(); err != nil {
			return b.different, err
		}
	}
	return b.different, nil
}

type rebuild struct {
	ctx       context.Context
	r         Reader
	tx        Tx // nil: nothing is written
	different []Fault
}

// found notes a row that differs, and writes it.
func (b *rebuild) found(table, key, what string, write func(Tx) error) error {
	b.different = append(b.different, Fault{table, key, what})
	if b.tx == nil {
		return nil
	}
	return write(b.tx)
}

// requests rebuilds the rows that are there.
func (b *rebuild) requests() error {
	for have, err := range b.r.Requests(Filter{}) {
		if err = errors.Join(err, b.ctx.Err()); err != nil {
			return err
		}
		want, err := requestAt(b.r, have.RunID, math.MaxInt64)
		if err != nil {
			return err
		}
		switch what := differing(want, have); {
		case want.RunID == "":
			err = b.found("requests", have.RunID, "no entry tells of it", func(tx Tx) error { return tx.Prune(nil, []string{have.RunID}, nil) })
		case what != "":
			err = b.found("requests", have.RunID, "its "+what, func(tx Tx) error { return tx.PutRequest(want) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// missing adds the rows that are not there.
func (b *rebuild) missing() error {
	for e, err := range b.r.Entries(0) {
		if err = errors.Join(err, b.ctx.Err()); err != nil {
			return err
		}
		if e.RunID == "" || e.N > 0 {
			continue
		}
		if _, err := b.r.Request(e.RunID); !errors.Is(err, ErrNotFound) {
			if err != nil {
				return err
			}
			continue
		}
		want, err := requestAt(b.r, e.RunID, math.MaxInt64)
		if err != nil {
			return err
		}
		if err := b.found("requests", e.RunID, "it is missing", func(tx Tx) error { return tx.PutRequest(want) }); err != nil {
			return err
		}
	}
	return nil
}

// tokens rebuilds the rows of tokens.
func (b *rebuild) tokens() error {
	want, err := tokensOf(b.r)
	if err != nil {
		return err
	}
	for have, err := range b.r.Tokens() {
		if err != nil {
			return err
		}
		token, known := want[have.ID]
		delete(want, have.ID)
		switch what := differing(token, have); {
		case !known:
			err = b.found("tokens", have.ID, "no entry tells of it", func(tx Tx) error { return tx.DropToken(have.ID) })
		case what != "":
			err = b.found("tokens", have.ID, "its "+what, func(tx Tx) error { return tx.PutToken(token) })
		}
		if err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if err := b.found("tokens", id, "it is missing", func(tx Tx) error { return tx.PutToken(want[id]) }); err != nil {
			return err
		}
	}
	return nil
}

// tokensOf computes all tokens from their entries.
func tokensOf(r Reader) (map[string]Token, error) {
	all := make(map[string]Token)
	for _, kind := range []Type{TokenCreated, TokenRevoked} {
		for e, err := range r.EntriesOfType(kind) {
			if err != nil {
				return nil, err
			}
			p, err := e.only(r)
			if err != nil {
				return nil, err
			}
			token := all[tokenID(p)]
			if err := projectToken(&token, &Event{Index: e.Index, At: e.At}, p); err != nil {
				return nil, fmt.Errorf("entry %d: %w", e.Index, err)
			}
			all[token.ID] = token
		}
	}
	return all, nil
}
