package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrPruneTime means that the ledger cannot be pruned before a time: the time is malformed or has
// not passed.
var ErrPruneTime = errors.New("the ledger is pruned before a time of the form " + timeForm + ", which has passed")

// ErrPruning means that another process changed what the prune would have removed.
var ErrPruning = errors.New("another process pruned the ledger or delivered an outcome meanwhile; try again")

// Pruned is the result of a prune.
type Pruned struct {
	Entries int64 `json:"entries"` // how many entries were removed
	Runs    int   `json:"runs"`    // how many runs were removed
	Kept    int   `json:"kept"`    // how many runs began before the time and stay
}

// pruneAtOnce bounds, roughly, how many entries one transaction of a prune removes. No other
// process records anything during the transaction.
const pruneAtOnce = 5000

// Prune removes the bodies of entries: those of runs that ended before a time, and older relayed
// messages and refused requests. A run whose outcome was delivered after that time stays. The
// hashes of the entries stay in the tree, so that the rest can still be verified against every
// checkpoint.
//
// Prune removes many entries in several transactions. Each removes whole runs. It first adds an
// entry that names what it removes and carries the calls of tasks over. by is the caller:
// [Ledger.CreateToken] says who may prune, and the error is [ErrRole] or [ErrToken] for other
// callers. If there is nothing to remove, Prune records nothing. After an error, done says what was
// removed before it.
func (l *Ledger) Prune(ctx context.Context, before string, by Caller) (done Pruned, err error) {
	return l.pruneInParts(ctx, before, by, pruneAtOnce)
}

func (l *Ledger) pruneInParts(ctx context.Context, before string, by Caller, atOnce int64) (done Pruned, err error) {
	if t, err := time.Parse(timeForm, before); err != nil || t.Format(timeForm) != before || t.After(l.clock()) {
		return done, fmt.Errorf("%w: %q", ErrPruneTime, before)
	}

	var plan prunePlan
	err = l.View(ctx, func(r Reader) error {
		if err := l.mayPrune(r, by); err != nil {
			return err
		}
		var err error
		plan, err = l.planPrune(ctx, r, before, atOnce)
		return err
	})
	if err != nil {
		return done, err
	}

	done.Kept = plan.kept
	for i := range plan.parts {
		part := &plan.parts[i]
		if err := l.prunePart(ctx, &plan, part, by); err != nil {
			return done, err
		}
		done.Entries += part.entries
		done.Runs += len(part.runs)
	}

	return done, nil
}

// prunePart removes one part of the plan, in one transaction.
func (l *Ledger) prunePart(ctx context.Context, plan *prunePlan, part *prunePart, by Caller) error {
	plan.calls.addAll(part.calls)
	p := &ledgerPruned{
		Before:  plan.before,
		Entries: part.removed,
		Runs:    len(part.runs),
		Tasks:   plan.calls.sortedCounts(),
	}

	var size int64
	err := l.commit(ctx, func(b *batch) error {
		// The token may have been revoked or have expired since.
		if err := mayManage(b, by, b.now); err != nil {
			return err
		}
		if err := plan.checkCurrent(b); err != nil {
			return err
		}
		if err := b.addEvent(nil, "", by.Name, p); err != nil {
			return err
		}
		if err := b.flushEntry(); err != nil {
			return err
		}
		size = b.size
		return b.Prune(part.removed, part.runs, plan.unusedBlobs(part))
	})
	if err != nil {
		return err
	}

	plan.size, plan.last = size, size-1
	return nil
}

// mayPrune returns an error for a caller who may not prune, before the work begins.
func (l *Ledger) mayPrune(r Reader, by Caller) error {
	end, err := r.End()
	if err != nil {
		return err
	}
	now, err := l.timeAfter(end.At)
	if err != nil {
		return err
	}
	return mayManage(r, by, now)
}

// A knownPrune is the parsed payload of a [LedgerPruned] entry.
type knownPrune struct {
	ledgerPruned
	entry int64
}

// lastPrune returns the last prune; zero if there was none. It parses the entry once, because runs
// need it while all writers wait.
func (l *Ledger) lastPrune(r Reader) (knownPrune, error) {
	e, err := r.LastOfType(LedgerPruned)
	if errors.Is(err, ErrNotFound) {
		return knownPrune{}, nil
	}
	if err != nil {
		return knownPrune{}, err
	}
	if cached := l.parsedPrune.Load(); cached != nil && cached.entry == e.Index {
		return *cached, nil
	}
	p, err := e.singleEvent(r)
	if err != nil {
		return knownPrune{}, err
	}
	parsed := &knownPrune{ledgerPruned: *p.(*ledgerPruned), entry: e.Index}
	l.parsedPrune.Store(parsed)
	return *parsed, nil
}
