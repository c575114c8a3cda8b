package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"pgfsm/policy/canonical"
)

// ErrPruneTime means that a time is not one before which can be pruned.
var ErrPruneTime = errors.New("the ledger is pruned before a time of the form " + timeForm + ", which has passed")

// ErrPruning means that another process changed what was to be pruned.
var ErrPruning = errors.New("another process pruned the ledger or delivered an outcome meanwhile; try again")

// Pruned is the result of a prune.
type Pruned struct {
	Entries int64 `json:"entries"` // removed
	Runs    int   `json:"runs"`    // removed
	Kept    int   `json:"kept"`    // runs that began before the time and stay
}

// Prune removes the bodies of entries: of runs that ended before a time, and of messages that were relayed before it. A run whose outcome was
// delivered later stays. The hashes of the entries stay in the tree, so that what is left can still be verified against every checkpoint.
// Prune first adds an entry that names what is removed, and carries the calls of tasks over; both is one transaction. By is the caller:
// [Ledger.CreateToken] says who may, and the error is [ErrRole] or [ErrToken] for others. If there is nothing to remove, nothing is recorded.
func (l *Ledger) Prune(ctx context.Context, before string, by Caller) (Pruned, error) {
	if t, err := time.Parse(timeForm, before); err != nil || t.Format(timeForm) != before || t.After(l.clock()) {
		return Pruned{}, fmt.Errorf("%w: %q", ErrPruneTime, before)
	}
	var plan prunePlan
	err := l.View(ctx, func(r Reader) error {
		if err := l.mayPrune(r, by); err != nil {
			return err
		}
		var err error
		plan, err = l.planPrune(ctx, r, before)
		return err
	})
	if err != nil || plan.Entries == 0 {
		return plan.Pruned, err
	}
	runs := slices.Sorted(maps.Keys(plan.over))
	err = l.commit(ctx, func(b *batch) error {
		if err := mayManage(b, by, b.now); err != nil { // the token may be gone since
			return err
		}
		if err := plan.holds(b); err != nil {
			return err
		}
		err := b.add(nil, "", by.Name, &pruned{Before: before, Entries: plan.removed, Runs: plan.Runs, Tasks: plan.tasks})
		if err == nil {
			err = b.flush()
		}
		if err != nil {
			return err
		}
		return b.Prune(plan.removed, runs, slices.Sorted(maps.Keys(plan.blobs)))
	})
	if err != nil {
		return Pruned{}, err
	}
	return plan.Pruned, nil
}

// mayPrune returns an error for a caller who may not prune, before the work begins.
func (l *Ledger) mayPrune(r Reader, by Caller) error {
	end, err := r.End()
	if err != nil {
		return err
	}
	now, err := l.now(end.At)
	if err != nil {
		return err
	}
	return mayManage(r, by, now)
}

// A prunePlan is what would be pruned.
type prunePlan struct {
	Pruned
	last    int64           // index of the last prune when the plan was made
	over    map[string]bool // the runs
	removed []Range
	blobs   map[canonical.Digest]bool // to which no other entry refers
	size    int64                     // of the log when the plan was made
	tasks   []taskCall                // calls of tasks, of these runs and of those that were removed before
}

// holds returns an error if a plan is out of date: another process pruned, or delivered the outcome of a run, which is the only event after
// a run's end.
func (p *prunePlan) holds(r Reader) error {
	last, err := r.LastOf(LedgerPruned)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if last.Index != p.last {
		return ErrPruning
	}
	for e, err := range r.Entries(p.size) {
		if p.over[e.RunID] {
			return ErrPruning
		}
		if err == nil {
			err = p.refers(r, &e, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refers notes the blobs of an entry that goes, or stays.
func (p *prunePlan) refers(r Reader, e *Entry, goes bool) error {
	refs, err := e.references(r)
	for _, d := range refs {
		if goes {
			p.blobs[d] = true
		} else {
			delete(p.blobs, d)
		}
	}
	return err
}

// planPrune finds the runs that ended before a time, and their entries.
func (l *Ledger) planPrune(ctx context.Context, r Reader, before string) (p prunePlan, err error) {
	gone, err := l.lastPrune(r)
	if err != nil {
		return p, err
	}
	p.last, p.over = gone.entry, make(map[string]bool)
	calls := carriedBy(gone.Tasks)
	for q, err := range r.Requests(Filter{}) {
		switch {
		case err != nil:
			return p, err
		case ctx.Err() != nil:
			return p, ctx.Err()
		case q.Ended != "" && q.Ended < before && q.Delivered < before:
			p.over[q.RunID] = true
			if err := calls.add(&q); err != nil {
				return p, err
			}
		case q.At < before:
			p.Kept++
		}
	}
	p.Runs, p.tasks = len(p.over), calls.sorted()
	return p, p.walk(ctx, r, before)
}

// walk finds the entries that go, and the blobs to which only these refer. It reads the whole log.
func (p *prunePlan) walk(ctx context.Context, r Reader, before string) error {
	end, err := r.End()
	if err != nil {
		return err
	}
	p.blobs, p.size = make(map[canonical.Digest]bool), end.Size
	goes := func(e *Entry) bool {
		over := p.over[e.RunID]
		return over || e.Type == MCPPassed && e.At < before
	}
	for _, pass := range []bool{true, false} { // those that go, then those that stay
		within := false // the entry before goes, too
		for e, err := range r.Entries(0) {
			if err != nil || ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
			if goes(&e) != pass {
				within = false
				continue
			}
			if err := p.refers(r, &e, pass); err != nil {
				return err
			}
			if !pass {
				continue
			}
			if !within {
				p.removed = append(p.removed, Range{First: e.Index})
			}
			p.removed[len(p.removed)-1].Last = e.Index
			p.Entries, within = p.Entries+1, true
		}
		if len(p.blobs) == 0 { // nothing goes that refers to any
			break
		}
	}
	return nil
}

// A knownPrune is the parsed payload of an entry.
type knownPrune struct {
	pruned
	entry int64
}

// lastPrune is the last prune, and zero if there was none. It is parsed once, because runs ask for it while all writers wait.
func (l *Ledger) lastPrune(r Reader) (knownPrune, error) {
	e, err := r.LastOf(LedgerPruned)
	if errors.Is(err, ErrNotFound) {
		return knownPrune{}, nil
	}
	if err != nil {
		return knownPrune{}, err
	}
	if known := l.gone.Load(); known != nil && known.entry == e.Index {
		return *known, nil
	}
	p, err := e.only(r)
	if err != nil {
		return knownPrune{}, err
	}
	gone := &knownPrune{pruned: *p.(*pruned), entry: e.Index}
	l.gone.Store(gone)
	return *gone, nil
}
