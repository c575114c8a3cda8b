package ledger

import "context"

// VerifyOpen compares the rows that a gateway acts on with their entries: the tokens, the blocks,
// and the requests that have not ended. Its cost does not depend on the number of ended runs. Only
// [Verify] checks the whole tree. The error is a [*Fault] for the first row that differs.
func VerifyOpen(ctx context.Context, r Reader) error {
	v := &verifier{ctx: ctx, r: r, blobs: newBlobs(r)}
	if err := v.ofTypes(LedgerPruned); err != nil {
		return err
	}
	if err := v.identities(); err != nil {
		return err
	}
	lastKey := "the first"
	for q, err := range r.Runs(Filter{Open: true}) {
		if err != nil {
			return unread("requests", lastKey, err)
		}
		if _, err := v.run(&q); err != nil {
			return err
		}
		lastKey = q.RunID
	}
	return nil
}

// verifyIdentities compares the tokens and the blocks with their entries. The error is a [*Fault]
// for the first row that differs.
func verifyIdentities(ctx context.Context, r Reader) error {
	return (&verifier{ctx: ctx, r: r, blobs: newBlobs(r)}).identities()
}

func (v *verifier) identities() error {
	if err := v.ofTypes(TokenCreated, TokenRevoked, IdentityBlocked, IdentityUnblocked); err != nil {
		return err
	}
	if err := v.tokens(); err != nil {
		return err
	}
	return v.blocked()
}

// ofTypes verifies the entries of these types, without the entries between them.
func (v *verifier) ofTypes(types ...Type) error {
	for _, t := range types {
		lastKey := "the first of type " + string(t)
		for e, err := range v.r.EntriesOfType(t) {
			if err != nil {
				return unread("entries", lastKey, err)
			}
			if err := v.single(&e); err != nil {
				return err
			}
			lastKey = entryKey(e.Index)
		}
	}
	return nil
}

// single verifies an entry that belongs to no run, without the entries before it.
func (v *verifier) single(e *Entry) error {
	key := entryKey(e.Index)
	stored, err := leafHash(v.r, e.Index)
	if err != nil {
		return unread("tree", key, err)
	}
	if e.hash() != stored || e.RunID != "" {
		return &Fault{"entries", key, "its hash is not that of the tree"}
	}
	return v.entry(e)
}
