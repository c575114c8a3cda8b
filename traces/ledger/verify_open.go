package ledger

import "context"

// VerifyOpen compares the rows that a gateway acts on with their entries: the tokens, the blocks,
// and the requests that have not ended. Its cost does not depend on the number of ended runs. Only
// [Verify] checks the whole tree. The error is a [*Fault] for the first row that differs.
func VerifyOpen(ctx context.Context, r Reader) error {
	v := newVerifier(ctx, r, VerifyOptions{})
	// A grant counts the calls that a prune carries over.
	for e, err := range r.EntriesOfType(LedgerPruned, 0) {
		if err != nil {
			return unreadFault("entries", "the first of type "+string(LedgerPruned), err)
		}
		if err := v.checkLeaf(&e); err != nil {
			return err
		}
	}
	if err := v.checkIdentities(); err != nil {
		return err
	}
	lastKey := "the first"
	for q, err := range r.Runs(Filter{Open: true}) {
		if err != nil {
			return unreadFault("requests", lastKey, err)
		}
		if err := v.checkOpenRun(q.RunID); err != nil {
			return err
		}
		lastKey = q.RunID
	}
	return nil
}

// checkOpenRun compares the row of a run with the entries to which it leads.
func (v *verifier) checkOpenRun(run string) error {
	s := &runVerifier{verifier: v}
	for e, err := range v.r.EntriesOf(run) {
		if err != nil {
			return unreadFault("entries", "of run "+run, err)
		}
		if err := v.checkLeaf(&e); err != nil {
			return err
		}
		if err := s.addEntry(&e); err != nil {
			return err
		}
	}
	if s.first == nil {
		return newFault("requests", run, rowOfNothing)
	}
	return s.finish()
}

// verifyIdentities compares the tokens and the blocks with their entries. The error is a [*Fault]
// for the first row that differs.
func verifyIdentities(ctx context.Context, r Reader) error {
	return newVerifier(ctx, r, VerifyOptions{}).checkIdentities()
}

func (v *verifier) checkIdentities() error {
	if err := v.checkEntriesOfTypes(TokenCreated, TokenRevoked, IdentityBlocked, IdentityUnblocked, ConnectionMade,
		ConnectionEnded); err != nil {
		return err
	}
	for _, check := range []func() error{v.checkTokens, v.checkBlocks, v.checkConnections} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkEntriesOfTypes verifies the entries of these types, without the entries between them.
func (v *verifier) checkEntriesOfTypes(types ...Type) error {
	for _, t := range types {
		lastKey := "the first of type " + string(t)
		for e, err := range v.r.EntriesOfType(t, 0) {
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
	if err := v.checkLeaf(e); err != nil {
		return err
	}
	return v.checkEntry(e)
}

// checkLeaf compares the hash of an entry with the tree.
func (v *verifier) checkLeaf(e *Entry) error {
	_, intact, err := e.Intact(v.r)
	switch {
	case err != nil:
		return unreadFault("tree", entryKey(e.Index), err)
	case !intact:
		return faultOf(ruleHeader, "entries", entryKey(e.Index), "its hash is not that of the tree")
	}
	return nil
}
