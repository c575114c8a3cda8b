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

// ErrRetention means that a prune would remove what the recorded retention keeps, or that no
// retention is recorded.
var ErrRetention = errors.New("the retention does not allow the prune")

// A PruneRequest says what to remove.
type PruneRequest struct {
	Before string // what is older than this time, in the ledger's form; empty: the order says what
	// A signed [PruneOrder]. It is required if the log has a key, and for an erasure.
	Order  []byte
	Reason ErasureReason // why an order erases
	// The configuration states no retention (ledger_retention), and the prune removes all the same.
	Unstated bool
}

// Prune removes the bodies of entries: those of runs that ended before a time, and older relayed
// messages and refused requests; or, if an order of the kind [PruneErasure] says so, those that the
// order names. A run whose outcome was delivered after that time stays. The headers and hashes of the
// entries stay, so that the rest can still be verified against every checkpoint.
//
// Prune removes many entries in several transactions. Each removes whole runs. It first adds an
// entry that names what it removes and carries the calls of tasks over. by is the caller:
// [Ledger.CreateToken] says who may prune, and the error is [ErrRole] or [ErrToken] for other
// callers. It is [ErrPruneOrder] or [ErrRetention] if the prune is not allowed. If there is nothing to
// remove, Prune records nothing. After an error, done says what was removed before it.
func (l *Ledger) Prune(ctx context.Context, q PruneRequest, by Caller) (done Pruned, err error) {
	return l.pruneInParts(ctx, q, by, pruneAtOnce)
}

func (l *Ledger) pruneInParts(ctx context.Context, q PruneRequest, by Caller, atOnce int64) (done Pruned, err error) {
	var plan prunePlan
	err = l.View(ctx, func(r Reader) error {
		if err := l.mayPrune(r, by); err != nil {
			return err
		}
		order, err := q.order(r)
		if err != nil {
			return err
		}
		if err := q.Reason.checkFor(order.Kind); err != nil {
			return err
		}
		if order.Kind == PruneRetention {
			if err := l.checkRetention(r, order.Before, q.Unstated); err != nil {
				return err
			}
		}
		plan, err = l.planPrune(ctx, r, order, atOnce)
		return err
	})
	if err != nil {
		return done, err
	}

	done.Kept = plan.kept
	for i := range plan.parts {
		part := &plan.parts[i]
		if err := l.prunePart(ctx, &plan, part, &q, by); err != nil {
			return done, err
		}
		done.Entries += part.entries
		done.Runs += len(part.runs)
	}

	return done, nil
}

// order returns the order of the prune. Without a key of the log it may be unsigned.
func (q *PruneRequest) order(r Reader) (*PruneOrder, error) {
	keys, err := Keys(r)
	if err != nil {
		return nil, err
	}
	verifiers, err := activeVerifiers(keys)
	if err != nil {
		return nil, err
	}
	if len(q.Order) == 0 && len(verifiers) > 0 {
		return nil, fmt.Errorf("%w: give --key with a private key of the log, or --order with what pgfsm ledger prune-order signed", ErrPruneOrder)
	}
	if len(q.Order) == 0 {
		return &PruneOrder{Kind: PruneRetention, Before: q.Before}, nil
	}

	origin, err := Origin(r)
	if err != nil {
		return nil, err
	}
	order, err := openPruneOrder(q.Order, verifiers, origin)
	if err == nil && q.Before != "" && q.Before != order.Before {
		return nil, fmt.Errorf("%w: it orders a prune before %s", ErrPruneOrder, order.Before)
	}
	return order, err
}

// checkRetention returns an error unless a time has passed, and the stated retention allows a prune of
// what is older.
func (l *Ledger) checkRetention(r Reader, before string, unstated bool) error {
	now := l.clock()
	t, err := time.Parse(timeForm, before)
	if err != nil || t.Format(timeForm) != before || t.After(now) {
		return fmt.Errorf("%w: %q", ErrPruneTime, before)
	}
	stated, err := currentSettings(r)
	if err != nil {
		return err
	}
	switch days := stated.Retention; {
	case days == 0 && !unstated:
		return fmt.Errorf("%w: none is stated; set ledger_retention in the configuration of the gateway, or say --unstated",
			ErrRetention)
	case days > 0 && t.After(now.Add(-daysOf(days))):
		return fmt.Errorf("%w: %d days are stated, so it allows a time of %s or before", ErrRetention, days,
			now.Add(-daysOf(days)).UTC().Format(timeForm))
	}
	return nil
}

func daysOf(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }

// prunePart removes one part of the plan, in one transaction.
func (l *Ledger) prunePart(ctx context.Context, plan *prunePlan, part *prunePart, q *PruneRequest, by Caller) error {
	plan.calls.addAll(part.calls)
	p := &ledgerPruned{
		Reason:  q.Reason,
		Before:  plan.order.Before,
		Entries: part.removed,
		Kind:    plan.order.Kind,
		Order:   string(q.Order),
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
		headers, err := headersOf(b, part.removed)
		if err != nil {
			return err
		}
		if err := plan.forgetTold(b); err != nil {
			return err
		}
		return b.Prune(headers, part.runs, plan.unusedBlobs(part))
	})
	if err != nil {
		return err
	}

	plan.size, plan.last = size, size-1
	return nil
}

// headersOf returns the headers of entries.
func headersOf(r Reader, ranges []Range) (headers []PrunedEntry, err error) {
	for _, part := range ranges {
		for e, err := range r.Entries(part.First) {
			if err != nil {
				return nil, err
			}
			if e.Index > part.Last {
				break
			}
			headers = append(headers, PrunedEntry{e.Index, e.Leaf()})
		}
	}
	return headers, nil
}

// mayPrune returns an error for a caller who may not prune, before the work begins.
func (l *Ledger) mayPrune(r Reader, by Caller) error {
	now, err := l.readTime(r)
	if err != nil {
		return err
	}
	return mayManage(r, by, now)
}

// A knownPrune is what the prunes so far have in common with each other.
type knownPrune struct {
	entry int64      // index of the last one; 0: there was none
	tasks []taskCall // the calls of tasks that it carries
	// Calls before this time may have been removed: the latest time of a retention, or of the entry
	// of an erasure.
	before string
	// How many there were of each kind.
	retentions, erasures int
}

// lastPrune returns what the prunes so far say. It parses the entries once, because runs need it
// while all writers wait.
func (l *Ledger) lastPrune(r Reader) (knownPrune, error) {
	last, err := r.LastOfType(LedgerPruned)
	if errors.Is(err, ErrNotFound) {
		return knownPrune{}, nil
	}
	if err != nil {
		return knownPrune{}, err
	}
	if cached := l.parsedPrune.Load(); cached != nil && cached.entry == last.Index {
		return *cached, nil
	}

	parsed := new(knownPrune)
	events, err := eventsOfTypes(r, LedgerPruned)
	if err != nil {
		return knownPrune{}, err
	}
	for i := range events {
		p := events[i].payload.(*ledgerPruned)
		before := p.Before
		if p.Kind == PruneErasure {
			before = events[i].event.At
			parsed.erasures++
		} else {
			parsed.retentions++
		}
		parsed.entry, parsed.tasks, parsed.before = events[i].event.Index, p.Tasks, max(parsed.before, before)
	}
	l.parsedPrune.Store(parsed)
	return *parsed, nil
}

// PruneOf returns what the event of a prune says.
func PruneOf(r Reader, e *Event) (Prune, error) {
	decoded, err := e.decodePayload()
	if err != nil {
		return Prune{}, err
	}
	p, ok := decoded.(*ledgerPruned)
	if !ok {
		return Prune{}, fmt.Errorf("entry %d: %w: it is no prune", e.Index, ErrChanged)
	}
	stated, err := currentSettings(r)
	if err != nil {
		return Prune{}, err
	}
	return newPrune(e, p, stated), nil
}

// newPrune returns what the event of a prune says, with the settings that the log stated then.
func newPrune(e *Event, p *ledgerPruned, stated *Settings) Prune {
	return Prune{
		Entry:    e.Index,
		At:       e.At,
		By:       e.By,
		Before:   p.Before,
		Runs:     p.Runs,
		Kind:     p.Kind,
		Reason:   p.Reason,
		Signed:   p.Order != "",
		Unstated: p.Kind == PruneRetention && stated.Retention == 0,
		Entries:  p.Entries,
	}
}

// CountPrunes returns how many prunes of each kind the log has.
func (l *Ledger) CountPrunes(ctx context.Context) (retentions, erasures int, err error) {
	err = l.View(ctx, func(r Reader) error {
		known, err := l.lastPrune(r)
		retentions, erasures = known.retentions, known.erasures
		return err
	})
	return retentions, erasures, err
}
