package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/note"
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

	v.total = end.Size
	v.tree.r = v.r
	last := Entry{Index: -1}

	for e, err := range v.r.Entries(everything) {
		if err != nil {
			return unreadFault("entries", entryKey(last.Index), err)
		}
		if err := checkOrder(&e, &last); err != nil {
			return asFault("entries", entryKey(e.Index), err)
		}
		if err := v.tree.addLeaf(e.computeHash()); err != nil {
			return err
		}
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

// checkOrder checks an entry's index and time.
func checkOrder(e, last *Entry) error {
	switch {
	case e.Index <= last.Index:
		return ruleOrder.Broken("it follows entry %d", last.Index)
	case e.Index > last.Index+1:
		return faultOf(ruleOrder, "entries", entryKey(last.Index+1), "it is missing")
	}

	isClosed, continues := last.Type == LedgerClosed, e.Type == LedgerContinued
	if isClosed != continues {
		return ruleClosed.Broken("%s is the only entry that may follow %s, and follows nothing else", LedgerContinued,
			LedgerClosed)
	}
	if e.At < last.At {
		return ruleOrder.Broken("its time %s is before that of the entry before it, %s", e.At, last.At)
	}
	if !isTime(e.At) {
		return ruleOrder.Broken("its time %q is not of the form %s", e.At, timeForm)
	}

	return nil
}

// isTime reports whether a text is a time in the ledger's form.
func isTime(text string) bool {
	t, err := time.Parse(timeForm, text)
	return err == nil && t.Format(timeForm) == text
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
		return faultOf(ruleHeader, "entries", entryKey(t.size), "a hash of the tree that it completes is missing")
	case err != nil:
		return unreadFault("entries", entryKey(t.size), err)
	case have[0] != leaf:
		return faultOf(ruleHeader, "entries", entryKey(t.size), "its hash is not that of the tree")
	case !slices.Equal(have, hashes):
		return faultOf(ruleHeader, "entries", entryKey(t.size), "a hash of the tree that it completes is not that of the tree below")
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

// checkEntry checks an entry that was pruned, or belongs to no run. [verifier.checkRunEntry] checks
// the others.
func (v *verifier) checkEntry(e *Entry) error {
	if e.Pruned() {
		v.report.Pruned++
		return asFault("entries", entryKey(e.Index), v.checkPrunedEntry(e))
	}
	v.report.Entries++
	key := entryKey(e.Index)
	if len(e.Header) > 0 || (e.Type == "") != (e.RunID != "") {
		return faultOf(ruleClass, "entries", key, "it has a header beside its body, or the type of another entry")
	}
	if e.RunID != "" {
		if err := v.checkChain(e); err != nil {
			return asFault("entries", key, err)
		}
		return v.checkRunEntry(e)
	}

	single, err := e.singleEvent()
	if err != nil {
		return asFault("entries", key, err)
	}
	v.blobs.noteUsed(payloadReferences(single.payload))

	p := single.payload
	switch {
	case e.N != 0 || e.Prev != "":
		return faultOf(ruleClass, "entries", key, "it belongs to no run, and is linked")
	case p.class() == ClassRun:
		return faultOf(ruleClass, "entries", key, fmt.Sprintf("%s must be about a run", e.Type))
	case (e.Type == LogCreated) != (e.Index == 0):
		return faultOf(ruleFirstEntry, "entries", key, fmt.Sprintf("%s is the first entry, and only that", LogCreated))
	}

	switch p := p.(type) {
	case *logCreated:
		v.report.Origin = p.Origin
		return asFault("entries", key, ruleFirstEntry.Wrap(checkpoint.CheckOrigin(p.Origin)))
	case *reportLate:
		if err := v.checkTold(&single.event, p.Token); err != nil {
			return asFault("entries", key, ruleSession.Wrap(err))
		}
		return asFault("entries", key, v.checkLate(&single.event, p.Run))
	case *promptCaptured:
		v.counts.prompts[lookback{actor: single.event.By, session: p.Session}]++
		return asFault("entries", key, ruleSession.Wrap(v.checkTold(&single.event, p.Token)))
	case *mcpPassed:
		return asFault("entries", key, ruleSession.Wrap(v.checkPassage(&single.event, p)))
	case *commandStarted:
		return asFault("entries", key, v.checkGeneration(&single, &p.generation))
	case *bundleActivated:
		if err := v.checkGeneration(&single, &p.generation); err != nil {
			return asFault("entries", key, err)
		}
		return asFault("entries", key, p.checkCause())
	case *tokenCreated, *tokenRevoked:
		return v.addToken(&single)
	case *identityBlocked, *identityUnblocked:
		v.blocks.addEvent(single)
		return asFault("entries", key, v.projectConnection(&single))
	case *connectionMade, *connectionEnded:
		return asFault("entries", key, v.addConnection(&single))
	case *accessRefused:
		return asFault("entries", key, ruleSession.Wrap(v.checkRefusal(&single.event, p)))
	case *keyAdded, *keyRemoved:
		v.keys, err = projectKey(v.keys, v.report.Origin, e.At, p)
		return asFault("entries", key, err)
	case *ledgerPruned:
		return asFault("entries", key, v.checkPrune(&single.event, p))
	}

	return nil
}

// checkGeneration checks that the bundle of a generation is there.
func (v *verifier) checkGeneration(e *decodedEvent, g *generation) error {
	if _, err := v.generations.add(e); err != nil {
		return err
	}
	if g.Events > EventList {
		return fmt.Errorf("entry %d: %w", e.event.Index, ErrNewer)
	}
	if g.Events != EventList {
		return ruleGeneration.Broken("entry %d: there is no version %d of the list of events", e.event.Index, g.Events)
	}
	if g.ClaimWithin < 0 || g.Retention < 0 {
		return ruleForm.Broken("entry %d: a time that is negative", e.event.Index)
	}
	v.stated.add(e.event.Type, g)
	_, err := v.blobs.checkedText(g.Bundle, BlobBundle, "entries", entryKey(e.event.Index))
	return err
}

// checkPrunedEntry checks the header of a pruned entry. Its class may be pruned, and so was the
// entry before it of its run.
func (v *verifier) checkPrunedEntry(e *Entry) error {
	h, err := e.readHeader()
	if err != nil {
		return err
	}
	class, isOther := Class(h.Class), func(t Type) bool { return classOf([]Type{t}) != Class(h.Class) }
	switch {
	case class != ClassRun && class != ClassSession:
		return rulePruneClass.Broken("its body is missing, and nothing may remove a body of the class %q", h.Class)
	case slices.ContainsFunc(typesOf(h), isOther):
		return ruleClass.Broken("its header has the class %q, which is not that of its events", h.Class)
	case class == ClassSession && (e.N != 0 || e.Prev != "" || len(h.Types) != 1):
		return ruleClass.Broken("its header belongs to no run, and is linked or has several events")
	case class == ClassRun && ((h.Types[0] == string(RequestCreated)) != (e.N == 0) || slices.Contains(h.Types[1:], string(RequestCreated))):
		return ruleRunOrder.Broken("%s is the first event of a run, and only that", RequestCreated)
	case e.RunID != "":
		return ruleClass.Broken("it was pruned, and still belongs to a run")
	case e.N > 0 && !v.isPruned(e.Previous):
		return rulePruneRuns.Broken("it was pruned, and the entry before it of its run was not")
	}
	if slices.Contains(h.Types, string(CallUnreported)) {
		v.prunedSilent++
	}
	v.missing = addIndex(v.missing, e.Index)
	return nil
}

// typesOf returns the types in a header.
func typesOf(h *checkpoint.Header) []Type {
	types := make([]Type, len(h.Types))
	for i, t := range h.Types {
		types[i] = Type(t)
	}
	return types
}

// checkChain checks that the entry before it of its run was not pruned.
func (v *verifier) checkChain(e *Entry) error {
	if e.N > 0 && v.isPruned(e.Previous) {
		return rulePruneRuns.Broken("the entry before it of its run was pruned, and it was not")
	}
	return nil
}

// isPruned reports whether an earlier entry was pruned.
func (v *verifier) isPruned(index int64) bool { return containsIndex(v.missing, index) }

// addIndex adds the next index to ranges, which are in order.
func addIndex(ranges []Range, index int64) []Range {
	if n := len(ranges); n > 0 && ranges[n-1].Last == index-1 {
		ranges[n-1].Last = index
		return ranges
	}
	return append(ranges, Range{index, index})
}

// containsIndex reports whether ranges, which are in order, contain an index.
func containsIndex(ranges []Range, index int64) bool {
	_, found := slices.BinarySearchFunc(ranges, index, func(r Range, index int64) int {
		switch {
		case r.Last < index:
			return -1
		case r.First > index:
			return 1
		}
		return 0
	})
	return found
}

// checkPrune checks the event of a prune against the headers of what it removed.
// [verifier.checkComplete] finds what is missing without such an event.
func (v *verifier) checkPrune(e *Event, p *ledgerPruned) error {
	if len(p.Entries) == 0 {
		return rulePruneRanges.Broken("it removes nothing")
	}
	next := int64(0)
	for _, r := range p.Entries {
		if r.First < next || r.Last < r.First || r.Last >= e.Index {
			return rulePruneRanges.Broken("it says that entries were removed that cannot have been there")
		}
		next = r.Last + 2
		if overlaps(v.prunedRanges, r) {
			return rulePruneRanges.Broken("it says that entries were removed, and an earlier %s says so of some of them", LedgerPruned)
		}
	}

	if err := v.checkPruneAllowed(e, p); err != nil {
		return err
	}
	runs, err := v.checkPrunedRuns(p)
	if err != nil {
		return err
	}
	if p.Runs != runs {
		return rulePruneCounts.Broken("it says that it removed %d runs, and the headers are of %d", p.Runs, runs)
	}
	if err := p.checkCounts(v.lastPrune); err != nil {
		return err
	}
	v.prunedRanges = unionOf(append(v.prunedRanges, p.Entries...))
	v.lastPrune = p
	v.report.Prunes = append(v.report.Prunes, newPrune(e, p, &v.stated.Settings))
	return nil
}

// checkPrunedRuns checks that a prune removed whole runs that had ended, and entries of the time that it
// names, and returns how many runs. It follows the runs through their headers.
func (v *verifier) checkPrunedRuns(p *ledgerPruned) (runs int, err error) {
	type run struct {
		n     int // how many entries so far
		ended bool
	}
	byLast := make(map[string]run) // by the link to the run's last entry so far

	for _, r := range p.Entries {
		for e, err := range v.r.Entries(r.First) {
			switch {
			case err != nil:
				return 0, err
			case !e.Pruned() && e.RunID == "" && classOf([]Type{e.Type}) != ClassSession:
				return 0, rulePruneClass.Broken("it says that entry %d was removed, which is of the log itself", e.Index)
			case !e.Pruned():
				return 0, ruleLeftOut.Broken("it says that entry %d was removed, and its body is there", e.Index)
			case p.Kind == PruneRetention && e.At >= p.Before:
				return 0, rulePruneRetention.Broken("it removed entry %d, which was not added before %s", e.Index, p.Before)
			}
			h, err := e.readHeader()
			if err != nil {
				return 0, err
			}
			if Class(h.Class) == ClassRun {
				before := byLast[e.Prev]
				if before.n != e.N {
					return 0, rulePruneRuns.Broken("it removed entry %d, and not the entry before it of its run", e.Index)
				}
				delete(byLast, e.Prev)
				byLast[encodeLink(e.computeHash())] = run{e.N + 1, before.ended || slices.Contains(h.Types, string(RunEnded))}
			}
			if e.Index == r.Last {
				break
			}
		}
	}

	for _, one := range byLast {
		if !one.ended {
			return 0, rulePruneRuns.Broken("it removed a part of a run, or one that had not ended")
		}
	}
	return len(byLast), nil
}

// orderingKeys returns the keys that order a prune now: those that the reader trusts, from the first
// entry on that added one of them; without trusted keys, those of the log.
func (v *verifier) orderingKeys() (verifiers []note.Verifier, err error) {
	if len(v.o.Keys) == 0 {
		return activeVerifiers(v.keys)
	}
	for i := range v.keys {
		added, err := note.NewVerifier(v.keys[i].Key)
		if err != nil {
			return nil, err
		}
		isAdded := func(trusted note.Verifier) bool {
			return trusted.Name() == added.Name() && trusted.KeyHash() == added.KeyHash()
		}
		if slices.ContainsFunc(v.o.Keys, isAdded) {
			return v.o.Keys, nil
		}
	}
	return nil, nil
}

// checkPruneAllowed checks that the owner of the log's key ordered a prune, if the log has a key, and
// that the stated retention allows it.
func (v *verifier) checkPruneAllowed(e *Event, p *ledgerPruned) error {
	verifiers, err := v.orderingKeys()
	if err != nil {
		return err
	}
	switch {
	case p.Kind != PruneRetention && p.Kind != PruneErasure, (p.Kind == PruneErasure) != (p.Before == ""):
		return rulePruneErasure.Broken("it has the kind %q and the time %q", p.Kind, p.Before)
	case p.Reason.checkFor(p.Kind) != nil:
		return rulePruneErasure.Broken("%w", p.Reason.checkFor(p.Kind))
	case p.Order == "" && (len(verifiers) > 0 || p.Kind == PruneErasure):
		return rulePruneOrdered.Broken("it has no order that a key of the log has signed")
	case p.Order != "":
		order, err := openPruneOrder([]byte(p.Order), verifiers, v.report.Origin)
		if err == nil {
			err = order.allows(p)
		}
		if err != nil {
			return rulePruneOrder.Wrap(err)
		}
	}

	if p.Kind == PruneErasure {
		return nil
	}
	added, err := time.Parse(timeForm, e.At)
	if err != nil {
		return err
	}
	before, err := time.Parse(timeForm, p.Before)
	switch {
	case err != nil:
		return err
	case before.After(added):
		return rulePruneRetention.Broken("it removes what is newer than itself")
	case v.stated.Retention > 0 && before.After(added.Add(-daysOf(v.stated.Retention))):
		return rulePruneRetention.Broken("it removes what the retention of %d days keeps", v.stated.Retention)
	}
	return nil
}

// overlaps reports whether a range has an index in common with ranges, which are in order.
func overlaps(ranges []Range, one Range) bool {
	i, _ := slices.BinarySearchFunc(ranges, one.First, func(r Range, first int64) int { return cmp.Compare(r.Last, first) })
	return i < len(ranges) && ranges[i].First <= one.Last
}

// checkComplete checks that only pruned entries are missing, and compares the tree with the
// checkpoint.
func (v *verifier) checkComplete() error {
	v.report.Size = v.tree.size
	if n, err := v.r.CountHashes(); err != nil {
		return unreadFault("tree", "the last", err)
	} else if want := tlog.StoredHashCount(v.tree.size); n != want {
		return newFault("tree", fmt.Sprintf("of %d entries", v.tree.size),
			fmt.Sprintf("it has %d hashes, and should have %d", n, want))
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
		return faultOf(checkpoint.RuleInconsistent, "tree", fmt.Sprintf("of %d entries", c.Size), err.Error())
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
			return faultOf(ruleLeftOut, "entries", entryKey(missing[i].First),
				fmt.Sprintf("it is missing, and no %s says why", LedgerPruned))
		case i == len(missing) || pruned[i].First < missing[i].First:
			return faultOf(ruleLeftOut, "entries", entryKey(pruned[i].First),
				fmt.Sprintf("it was pruned, says %s: it should not be there", LedgerPruned))
		case missing[i].Last < pruned[i].Last:
			return faultOf(ruleLeftOut, "entries", entryKey(missing[i].Last+1),
				fmt.Sprintf("it was pruned, says %s: it should not be there", LedgerPruned))
		case missing[i].Last > pruned[i].Last:
			return faultOf(ruleLeftOut, "entries", entryKey(pruned[i].Last+1),
				fmt.Sprintf("it is missing, and no %s says why", LedgerPruned))
		}
	}
	return nil
}

// addToken applies an event to its token.
func (v *verifier) addToken(e *decodedEvent) error {
	id := tokenID(e.payload)
	token := v.tokens[id]
	if err := projectToken(&token, &e.event, e.payload); err != nil {
		return asFault("entries", entryKey(e.event.Index), err)
	}
	v.tokens[id] = token
	return nil
}

// checkTokens compares the tokens with their rows.
func (v *verifier) checkTokens() (err error) {
	v.report.Tokens, err = compareTokens(v.r, v.tokens, func(id, what string) error { return newFault("tokens", id, what) })
	return err
}
