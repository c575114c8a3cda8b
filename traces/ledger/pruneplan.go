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

// A prunePlan lists what a prune removes. A window is a number of consecutive indexes.
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
	// Blobs that no remaining entry refers to, with the last window that refers to them.
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

// planPrune finds what a prune removes: the runs that ended before a time with their entries, and
// older messages and refusals; or the runs, messages and refusals that the order names. The runs whose
// last entry is in a window are removed together, with the messages and refusals of that window.
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
	var ended []RunRow

	for q, err := range r.Runs(Filter{}) {
		switch {
		case err != nil:
			return p, err
		case ctx.Err() != nil:
			return p, ctx.Err()
		case p.removesRun(&q):
			p.lastEntries[q.RunID] = q.Entry
			p.told[toldSessionKey{q.Actor, q.Session}] = true
			ended = append(ended, RunRow{
				RunID:  q.RunID,
				Entry:  q.Entry,
				Task:   q.Task,
				Server: q.Server,
				Tool:   q.Tool,
				Sent:   q.Sent,
			})
			if err := carried.addRun(&q); err != nil {
				return p, err
			}
		case q.At < order.Before || containsIndex(order.Entries, q.First):
			p.kept++
		}
	}

	// Each part repeats the calls of all tasks, so a part must not be smaller than they are.
	window := max(atOnce, int64(len(carried)))
	parts := make(map[int64]*prunePart)
	if err := p.findEntries(ctx, r, parts, window); err != nil {
		return p, err
	}

	// A run goes with the part of its last entry.
	for i := range ended {
		part := parts[ended[i].Entry/window]
		if part == nil { // no entry of the run is left
			continue
		}
		part.runs = append(part.runs, ended[i].RunID)
		if err := part.calls.addRun(&ended[i]); err != nil {
			return p, err
		}
	}

	p.joinParts(parts, window)
	return p, p.checkComplete()
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
func (p *prunePlan) findEntries(ctx context.Context, r Reader, parts map[int64]*prunePart, window int64) error {
	end, err := r.End()
	if err != nil {
		return err
	}

	p.size = end.Size
	const none = -1
	windowOf := func(e *Entry) int64 {
		switch last, removed := p.lastEntries[e.RunID]; {
		case removed:
			return last / window
		case p.removesEntry(e):
			return e.Index / window
		}
		return none
	}

	for _, pass := range []bool{true, false} {
		previous := int64(none) // the window of the previous entry
		for e, err := range r.Entries(0) {
			if err != nil || ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
			if e.Pruned() {
				previous = none
				if pass {
					p.pruned = addIndex(p.pruned, e.Index)
				}
				continue
			}
			windowIndex := windowOf(&e)
			if removed := windowIndex != none; removed != pass {
				previous = none
				continue
			}
			refs, err := e.blobReferences()
			if err != nil {
				return err
			}

			// A blob goes with the last window that refers to it, unless an entry that stays does.
			for _, d := range refs {
				if pass {
					p.blobs[d] = max(p.blobs[d], windowIndex)
				} else {
					delete(p.blobs, d)
				}
			}

			if !pass {
				continue
			}
			if err := p.noteSession(&e); err != nil {
				return err
			}

			part := parts[windowIndex]
			if part == nil {
				part = &prunePart{calls: make(carriedCalls)}
				parts[windowIndex] = part
			}

			if windowIndex != previous {
				part.removed = append(part.removed, Range{First: e.Index})
			}

			part.removed[len(part.removed)-1].Last = e.Index
			part.entries, previous = part.entries+1, windowIndex
		}

		if len(p.blobs) == 0 { // no entry to remove refers to a blob
			break
		}
	}

	return nil
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

// joinParts orders the parts by their windows, assigns the blobs to them, and joins small parts.
func (p *prunePlan) joinParts(parts map[int64]*prunePart, window int64) {
	for _, d := range slices.Sorted(maps.Keys(p.blobs)) {
		part := parts[p.blobs[d]]
		part.blobs = append(part.blobs, d)
	}
	for _, index := range slices.Sorted(maps.Keys(parts)) {
		next := parts[index]
		n := len(p.parts)
		if n == 0 || p.parts[n-1].entries+next.entries > window {
			p.parts = append(p.parts, *next)
			continue
		}
		previous := &p.parts[n-1]
		previous.entries += next.entries
		previous.removed = unionOf(append(previous.removed, next.removed...))
		previous.runs = append(previous.runs, next.runs...)
		previous.blobs = append(previous.blobs, next.blobs...)
		previous.calls.addAll(next.calls)
	}
}
