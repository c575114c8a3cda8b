package ledger

import "context"

// VerifyOpen compares the rows that a gateway acts on with their entries: the tokens, the blocks,
// and the requests that have not ended. Its cost does not depend on the number of ended runs. Only
// [Verify] checks the whole tree. The error is a [*Fault] for the first row that differs.
func VerifyOpen(ctx context.Context, r Reader) error {
	v := &verifier{ctx: ctx, r: r, blobs: newBlobs(r)}
	if err := v.checkEntriesOfTypes(LedgerPruned); err != nil {
		return err
	}
	if err := v.checkIdentities(); err != nil {
		return err
	}
	lastKey := "the first"
	for q, err := range r.Runs(Filter{Open: true}) {
		if err != nil {
			return unreadFault("requests", lastKey, err)
		}
		if _, err := v.checkRun(&q); err != nil {
			return err
		}
		lastKey = q.RunID
	}
	return nil
}

// verifyIdentities compares the tokens and the blocks with their entries. The error is a [*Fault]
// for the first row that differs.
func verifyIdentities(ctx context.Context, r Reader) error {
	return (&verifier{ctx: ctx, r: r, blobs: newBlobs(r)}).checkIdentities()
}

func (v *verifier) checkIdentities() error {
	if err := v.checkEntriesOfTypes(TokenCreated, TokenRevoked, IdentityBlocked, IdentityUnblocked); err != nil {
		return err
	}
	if err := v.checkTokens(); err != nil {
		return err
	}
	return v.checkBlocks()
}

// checkEntriesOfTypes verifies the entries of these types, without the entries between them.
func (v *verifier) checkEntriesOfTypes(types ...Type) error {
	for _, t := range types {
		lastKey := "the first of type " + string(t)
		for e, err := range v.r.EntriesOfType(t) {
			if err != nil {
				return unreadFault("entries", lastKey, err)
			}
			if err := v.checkSingleEntry(&e); err != nil {
				return err
			}
			lastKey = entryKey(e.Index)
		}
	}
	return nil
}

// checkSingleEntry verifies an entry that belongs to no run, without the entries before it.
func (v *verifier) checkSingleEntry(e *Entry) error {
	key := entryKey(e.Index)
	stored, err := leafHash(v.r, e.Index)
	if err != nil {
		return unreadFault("tree", key, err)
	}
	if e.computeHash() != stored || e.RunID != "" {
		return &Fault{"entries", key, "its hash is not that of the tree"}
	}
	return v.checkEntry(e)
}
