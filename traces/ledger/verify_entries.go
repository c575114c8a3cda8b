package ledger

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/traces/ledger/checkpoint"
)

// checkEntries checks all entries, oldest first. Each must be the leaf that the tree has, the tree
// must be complete, and missing entries must have been pruned.
func (v *verifier) checkEntries() error {
	end, err := v.r.End()
	if err != nil {
		return unreadFault("entries", "the last", err)
	}

	v.total = 2 * end.Size
	v.tree.r = v.r
	last := Entry{Index: -1}

	for e, err := range v.r.Entries(everything) {
		if err != nil {
			return unreadFault("entries", entryKey(last.Index), err)
		}
		if err := v.checkOrder(&e, &last); err != nil {
			return asFault("entries", entryKey(e.Index), err)
		}
		if err := v.tree.addLeaf(e.computeHash()); err != nil {
			return err
		}
		v.report.Entries++
		if err := v.checkEntry(&e); err != nil {
			return err
		}
		if err := v.countEntry(); err != nil {
			return err
		}
		last = e
	}

	return v.checkComplete()
}

// checkOrder checks an entry's index and time. Pruned entries before it have no body, so their
// leaves are read from the tree.
func (v *verifier) checkOrder(e, last *Entry) error {
	if e.Index <= last.Index {
		return fmt.Errorf("it follows entry %d", last.Index)
	}

	if e.Index > last.Index+1 {
		v.missing = append(v.missing, Range{last.Index + 1, e.Index - 1})
	}

	for i := last.Index + 1; i < e.Index; i++ {
		h, err := leafHash(v.r, i)
		if errors.Is(err, ErrNotFound) {
			return &Fault{"entries", entryKey(i), "it is missing"}
		}
		if err != nil {
			return unreadFault("entries", entryKey(i), err)
		}
		if err := v.tree.addLeaf(h); err != nil {
			return err
		}
		v.report.Pruned++
	}

	isClosed, continues := last.Type == LedgerClosed, e.Type == LedgerContinued
	if isClosed != continues || isClosed && e.Index != last.Index+1 {
		return fmt.Errorf("%s is the only entry that may follow %s, and follows nothing else", LedgerContinued,
			LedgerClosed)
	}
	if e.At < last.At {
		return fmt.Errorf("its time %s is before that of the entry before it, %s", e.At, last.At)
	}
	if t, err := time.Parse(timeForm, e.At); err != nil || t.Format(timeForm) != e.At {
		return fmt.Errorf("its time %q is not of the form %s", e.At, timeForm)
	}

	return nil
}

// A treeCheck computes a tree again and compares it with the stored hashes.
type treeCheck struct {
	r       tlog.HashReader
	size    int64
	pending map[int64]tlog.Hash // hashes that are needed to compute later ones
}

// addLeaf adds a leaf. The error is a [*Fault] if the store has different hashes.
func (t *treeCheck) addLeaf(leaf tlog.Hash) error {
	hashes, err := tlog.StoredHashesForRecordHash(t.size, leaf,
		tlog.HashReaderFunc(func(ids []int64) ([]tlog.Hash, error) {
			needed := make([]tlog.Hash, len(ids))
			for i, id := range ids {
				needed[i] = t.pending[id]
				delete(t.pending, id) // each hash is needed once
			}
			return needed, nil
		}))
	if err != nil {
		return err
	}

	// The store must have the leaf's hash, and each hash of the tree that the leaf completes.
	first := tlog.StoredHashIndex(0, t.size)
	ids := make([]int64, len(hashes))

	for i := range hashes {
		ids[i] = first + int64(i)
	}

	have, err := t.r.ReadHashes(ids)
	switch {
	case errors.Is(err, ErrNotFound):
		return &Fault{"entries", entryKey(t.size), "a hash of the tree that it completes is missing"}
	case err != nil:
		return unreadFault("entries", entryKey(t.size), err)
	case have[0] != leaf:
		return &Fault{"entries", entryKey(t.size), "its hash is not that of the tree"}
	case !slices.Equal(have, hashes):
		return &Fault{"entries", entryKey(t.size), "a hash of the tree that it completes is not that of the tree below"}
	}

	if t.pending == nil {
		t.pending = make(map[int64]tlog.Hash)
	}

	for i, id := range ids {
		t.pending[id] = hashes[i]
	}

	t.size++
	return nil
}

// checkEntry checks an entry that belongs to no run. [verifier.checkRuns] checks the others.
func (v *verifier) checkEntry(e *Entry) error {
	if e.RunID != "" {
		v.runEntries++
		return nil
	}

	key := entryKey(e.Index)
	decoded, err := v.decodePayloads(e)
	if err != nil {
		return err
	}

	p := decoded[0]
	switch {
	case len(decoded) != 1 || e.N != 0 || e.Prev != "":
		return &Fault{"entries", key, "it belongs to no run, and is linked or has several events"}
	case !p.aboutNoRun():
		return &Fault{"entries", key, fmt.Sprintf("%s must be about a run", e.Type)}
	case (e.Type == LogCreated) != (e.Index == 0):
		return &Fault{"entries", key, fmt.Sprintf("%s is the first entry, and only that", LogCreated)}
	}

	switch p := p.(type) {
	case *logCreated:
		v.report.Origin = p.Origin
		return asFault("entries", key, p.checkOrigins())
	case *mcpPassed:
		return v.checkPassage(&Event{Index: e.Index, At: e.At, By: e.By}, p)
	case *bundleActivated:
		if _, err := v.blobs.checkedText(p.Bundle, BlobBundle, "entries", key); err != nil {
			return err
		}
		return asFault("entries", key, p.checkCause())
	case *tokenCreated, *tokenRevoked:
		v.tokenEvents = append(v.tokenEvents, logEvent{Event{Index: e.Index, At: e.At}, p})
	case *identityBlocked, *identityUnblocked:
		v.blocks.addEvent(logEvent{Event{Index: e.Index, At: e.At, By: e.By}, p})
	case *accessRefused:
		return asFault("entries", key, p.checkValues(e.By))
	case *keyAdded, *keyRemoved:
		v.keys, err = projectKey(v.keys, v.report.Origin, e.At, p)
		return asFault("entries", key, err)
	case *ledgerPruned:
		return asFault("entries", key, v.checkPrune(e, p))
	}

	return nil
}

// decodePayloads decodes the events of an entry.
func (v *verifier) decodePayloads(e *Entry) ([]payload, error) {
	key := entryKey(e.Index)
	value, err := v.blobs.checkedValue(string(e.Events), "entries", key)
	if err != nil {
		return nil, err
	}
	list, err := e.splitEvents(value)
	if err != nil {
		return nil, asFault("entries", key, err)
	}
	decoded, err := e.decodeEvents(list)
	if err != nil {
		return nil, asFault("entries", key, err)
	}
	v.blobs.noteUsed(e.referencesOf(decoded))
	return decoded, nil
}

// checkPrune checks the event of a prune. [verifier.checkComplete] compares the event with the
// missing entries.
func (v *verifier) checkPrune(e *Entry, p *ledgerPruned) error {
	next := int64(1) // the first entry is never pruned
	for _, r := range p.Entries {
		if r.First < next || r.Last < r.First || r.Last >= e.Index {
			return errors.New("it says that entries were removed that cannot have been there")
		}
		next = r.Last + 2
	}
	if len(p.Entries) == 0 {
		return errors.New("it removes nothing")
	}
	if err := p.checkCounts(v.lastPrune); err != nil {
		return err
	}
	v.prunedRanges = unionOf(append(v.prunedRanges, p.Entries...))
	v.lastPrune = p
	v.report.Prunes = append(v.report.Prunes, Prune{e.Index, e.At, e.By, p.Before, p.Runs, p.Entries})
	return nil
}

// checkComplete checks that only pruned entries are missing, and compares the tree with the
// checkpoint.
func (v *verifier) checkComplete() error {
	v.report.Size = v.tree.size
	if n, err := v.r.CountHashes(); err != nil {
		return unreadFault("tree", "the last", err)
	} else if want := tlog.StoredHashCount(v.tree.size); n != want {
		return &Fault{"tree", fmt.Sprintf("of %d entries", v.tree.size),
			fmt.Sprintf("it has %d hashes, and should have %d", n, want)}
	}

	if err := checkRangesMatch(v.missing, v.prunedRanges); err != nil {
		return err
	}
	var err error
	if v.report.Root, err = tlog.TreeHash(v.tree.size, v.r); err != nil {
		return err
	}

	c := v.o.Checkpoint
	if c == nil {
		return nil
	}

	v.report.PrunedAfter = prunedAfter(v.report.Prunes, c.Size)
	err = c.Contained(checkpoint.Checkpoint{Origin: v.report.Origin, Size: v.tree.size, Root: v.report.Root}, v.r)
	if errors.Is(err, checkpoint.ErrInconsistent) {
		return &Fault{"tree", fmt.Sprintf("of %d entries", c.Size), err.Error()}
	}

	return err
}

// unionOf returns the union of ranges as the fewest ranges, in order.
func unionOf(ranges []Range) (union []Range) {
	slices.SortFunc(ranges, func(a, b Range) int { return int(a.First - b.First) })
	for _, r := range ranges {
		if n := len(union); n > 0 && r.First <= union[n-1].Last+1 {
			union[n-1].Last = max(union[n-1].Last, r.Last)
			continue
		}
		union = append(union, r)
	}
	return union
}

// prunedAfter returns those of the first size entries that later entries name as pruned.
func prunedAfter(prunes []Prune, size int64) (ranges []Range) {
	first := slices.IndexFunc(prunes, func(p Prune) bool { return p.Entry >= size })
	if first < 0 {
		return nil
	}
	add := func(from, to int64) {
		if from <= to {
			ranges = append(ranges, Range{from, to})
		}
	}
	earlier := rangesOf(prunes[:first])
	for _, r := range rangesOf(prunes[first:]) {
		next, last := r.First, min(r.Last, size-1)
		for _, removed := range earlier {
			if removed.Last >= next && removed.First <= last {
				add(next, removed.First-1)
				next = removed.Last + 1
			}
		}
		add(next, last)
	}
	return ranges
}

// rangesOf returns the ranges that prunes removed.
func rangesOf(prunes []Prune) (ranges []Range) {
	for _, p := range prunes {
		ranges = append(ranges, p.Entries...)
	}
	return unionOf(ranges)
}

// checkRangesMatch returns a fault for the first entry that is absent although it was not pruned,
// or present although it was.
func checkRangesMatch(missing, pruned []Range) error {
	for i := range max(len(missing), len(pruned)) {
		switch {
		case i < len(missing) && (i == len(pruned) || missing[i].First < pruned[i].First):
			return &Fault{"entries", entryKey(missing[i].First),
				fmt.Sprintf("it is missing, and no %s says why", LedgerPruned)}
		case i == len(missing) || pruned[i].First < missing[i].First:
			return &Fault{"entries", entryKey(pruned[i].First),
				fmt.Sprintf("it was pruned, says %s: it should not be there", LedgerPruned)}
		case missing[i].Last < pruned[i].Last:
			return &Fault{"entries", entryKey(missing[i].Last + 1),
				fmt.Sprintf("it was pruned, says %s: it should not be there", LedgerPruned)}
		case missing[i].Last > pruned[i].Last:
			return &Fault{"entries", entryKey(pruned[i].Last + 1),
				fmt.Sprintf("it is missing, and no %s says why", LedgerPruned)}
		}
	}
	return nil
}

// checkTokens computes all tokens from their events, and compares them with their rows.
func (v *verifier) checkTokens() (err error) {
	if v.tokens, err = tokensAfter(v.tokenEvents); err != nil {
		return err
	}
	v.tokenEvents = nil
	v.report.Tokens, err = compareTokens(v.r, v.tokens, func(id, what string) error { return &Fault{"tokens", id, what} })
	return err
}
