package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"pgfsm/internal/canonical"
)

// A prunePlan lists what a prune removes.
type prunePlan struct {
	order       *PruneOrder
	pruned      []Range // entries that were pruned before
	kept        int
	parts       []prunePart
	last        int64                   // index of the last prune
	size        int64                   // the size of the log when the plan was made
	calls       carriedCalls            // calls of tasks by runs that earlier prunes removed
	lastEntries map[string]int64        // the runs to remove, with the indexes of their last entries
	told        map[toldSessionKey]bool // sessions of clients of which something goes
	// Blobs that no remaining entry refers to, with the last entry of the last run that refers to them.
	blobs map[canonical.Digest]int64
}

// A prunePart lists what one transaction of a prune removes.
type prunePart struct {
	entries int64
	removed []Range
	runs    []string
	blobs   []canonical.Digest // blobs that no later part refers to
	calls   carriedCalls       // calls of tasks by the runs of this part
}

// checkCurrent returns an error if the plan is out of date: another process pruned the ledger, or
// delivered the outcome of a run. A delivery is the only event after a run's end.
func (p *prunePlan) checkCurrent(r Reader) error {
	last, err := r.LastOfType(LedgerPruned)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if last.Index != p.last {
		return ErrPruning
	}

	for e, err := range r.Entries(p.size) {
		if err != nil {
			return err
		}
		if _, removed := p.lastEntries[e.RunID]; removed {
			return ErrPruning
		}
		refs, err := e.blobReferences()
		if err != nil {
			return err
		}
		for _, d := range refs {
			delete(p.blobs, d)
		}
	}

	return nil
}

// unusedBlobs returns the blobs of a part that no remaining entry refers to.
func (p *prunePlan) unusedBlobs(part *prunePart) (blobs []canonical.Digest) {
	for _, d := range part.blobs {
		if _, removed := p.blobs[d]; removed {
			blobs = append(blobs, d)
		}
	}
	return blobs
}

// A removal is an entry that a prune removes, with the last entry of its run.
type removal struct{ last, index int64 }

// planPrune finds what a prune removes: the runs that ended before a time with their entries, and
// older messages and refusals; or the runs, messages and refusals that the order names.
func (l *Ledger) planPrune(ctx context.Context, r Reader, order *PruneOrder, atOnce int64) (p prunePlan, err error) {
	previous, err := l.lastPrune(r)
	if err != nil {
		return p, err
	}

	p = prunePlan{
		order:       order,
		last:        previous.entry,
		calls:       carriedBy(previous.tasks),
		lastEntries: make(map[string]int64),
		told:        make(map[toldSessionKey]bool),
		blobs:       make(map[canonical.Digest]int64),
	}

	carried := carriedBy(previous.tasks)
	ended := make(map[int64]RunRow) // by their last entries

	for q, err := range r.Runs(Filter{}) {
		switch {
		case err != nil:
			return p, err
		case ctx.Err() != nil:
			return p, ctx.Err()
		case p.removesRun(&q):
			p.lastEntries[q.RunID] = q.Entry
			p.told[toldSessionKey{q.Actor, q.Session}] = true
			ended[q.Entry] = RunRow{RunID: q.RunID, Task: q.Task, Server: q.Server, Tool: q.Tool, Sent: q.Sent}
			if err := carried.addRun(&q); err != nil {
				return p, err
			}
		case q.At < order.Before || containsIndex(order.Entries, q.First):
			p.kept++
		}
	}

	found, err := p.findEntries(ctx, r)
	if err != nil {
		return p, err
	}
	// Each part repeats the calls of all tasks, so a part must not be smaller than they are.
	if err := p.cutParts(found, ended, max(int(atOnce), len(carried))); err != nil {
		return p, err
	}
	return p, p.checkComplete()
}

// cutParts cuts what a prune removes into parts of about so many entries. A run goes as a whole.
func (p *prunePlan) cutParts(found []removal, ended map[int64]RunRow, atOnce int) error {
	slices.SortFunc(found, func(a, b removal) int { return cmp.Or(cmp.Compare(a.last, b.last), cmp.Compare(a.index, b.index)) })
	blobs := slices.SortedFunc(maps.Keys(p.blobs), func(a, b canonical.Digest) int {
		return cmp.Or(cmp.Compare(p.blobs[a], p.blobs[b]), cmp.Compare(a, b))
	})
	for len(found) > 0 {
		n := min(atOnce, len(found))
		for n < len(found) && found[n].last == found[n-1].last {
			n++
		}
		part := prunePart{entries: int64(n), calls: make(carriedCalls)}
		for _, one := range found[:n] {
			part.removed = append(part.removed, Range{one.index, one.index})
			if q, isLast := ended[one.index]; isLast {
				part.runs = append(part.runs, q.RunID)
				if err := part.calls.addRun(&q); err != nil {
					return err
				}
			}
		}
		part.removed = unionOf(part.removed)
		for ; len(blobs) > 0 && p.blobs[blobs[0]] <= found[n-1].last; blobs = blobs[1:] {
			part.blobs = append(part.blobs, blobs[0])
		}
		p.parts, found = append(p.parts, part), found[n:]
	}
	return nil
}

// removesRun reports whether the prune removes a run.
func (p *prunePlan) removesRun(q *RunRow) bool {
	if p.order.Kind == PruneErasure {
		return containsIndex(p.order.Entries, q.First) && q.Ended != ""
	}
	return q.Ended != "" && q.Ended < p.order.Before && q.Delivered < p.order.Before
}

// removesEntry reports whether the prune removes an entry of no run.
func (p *prunePlan) removesEntry(e *Entry) bool {
	if classOf([]Type{e.Type}) != ClassSession {
		return false
	}
	if p.order.Kind == PruneErasure {
		return containsIndex(p.order.Entries, e.Index)
	}
	return e.At < p.order.Before
}

// checkComplete returns an error if an erasure would remove more or less than its order names, and
// than was removed before.
func (p *prunePlan) checkComplete() error {
	if p.order.Kind != PruneErasure {
		return nil
	}
	removed := p.pruned
	for i := range p.parts {
		removed = append(removed, p.parts[i].removed...)
	}
	removed = unionOf(removed)
	if last := p.order.Entries[len(p.order.Entries)-1].Last; last >= p.size {
		return fmt.Errorf("%w: the log has no entry %d", ErrPruneOrder, last)
	}
	for _, r := range p.order.Entries {
		for index := r.First; index <= r.Last; index++ {
			if !containsIndex(removed, index) {
				return fmt.Errorf("%w: entry %d is not one that can be erased: of a run that has not ended, of a run that the order does not "+
					"name whole, or of the log itself", ErrPruneOrder, index)
			}
		}
	}
	for i := range p.parts {
		if err := p.order.allows(&ledgerPruned{Kind: PruneErasure, Entries: p.parts[i].removed}); err != nil {
			return err
		}
	}
	return nil
}

// findEntries finds the entries to remove, and the blobs that only these refer to. It reads the
// whole log twice: first for the entries to remove, then for those that stay.
func (p *prunePlan) findEntries(ctx context.Context, r Reader) (found []removal, err error) {
	end, err := r.End()
	if err != nil {
		return nil, err
	}
	p.size = end.Size
	for _, pass := range []bool{true, false} {
		for e, err := range r.Entries(0) {
			if err != nil || ctx.Err() != nil {
				return nil, errors.Join(err, ctx.Err())
			}
			if e.Pruned() {
				if pass {
					p.pruned = addIndex(p.pruned, e.Index)
				}
				continue
			}
			last, removed := p.lastEntries[e.RunID]
			if !removed && p.removesEntry(&e) {
				last, removed = e.Index, true
			}
			if removed != pass {
				continue
			}

			refs, err := e.blobReferences()
			if err != nil {
				return nil, err
			}
			// A blob goes with the last run that refers to it, unless an entry that stays does.
			for _, d := range refs {
				if pass {
					p.blobs[d] = max(p.blobs[d], last)
				} else {
					delete(p.blobs, d)
				}
			}
			if !pass {
				continue
			}
			if err := p.noteSession(&e); err != nil {
				return nil, err
			}
			found = append(found, removal{last, e.Index})
		}
		if len(p.blobs) == 0 { // no entry to remove refers to a blob
			break
		}
	}
	return found, nil
}

// A toldSessionKey names a client's session of an actor; the session may be empty.
type toldSessionKey struct{ actor, session string }

// noteSession notes the session of a prompt that goes.
func (p *prunePlan) noteSession(e *Entry) error {
	if e.Type != PromptCaptured || e.RunID != "" {
		return nil
	}
	event, err := e.singleEvent()
	if err == nil {
		p.told[toldSessionKey{event.event.By, event.payload.(*promptCaptured).Session}] = true
	}
	return err
}

// forgetTold drops what hooks told about the erased sessions, and announcements that no call used in time: their names
// are digests of calls.
func (p *prunePlan) forgetTold(b *batch) error {
	if p.order.Kind != PruneErasure {
		return nil
	}
	for _, told := range slices.SortedFunc(maps.Keys(p.told), func(a, b toldSessionKey) int {
		return cmp.Or(cmp.Compare(a.actor, b.actor), cmp.Compare(a.session, b.session))
	}) {
		if err := b.DropTold(toldSession, told.actor, told.session); err != nil {
			return err
		}
		if err := b.LimitTold(toldCall, told.actor, b.now, maxTold); err != nil {
			return err
		}
	}
	return nil
}
