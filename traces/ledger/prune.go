package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgfsm/policy/canonical"
)

// ErrPruneTime means that a time is not one before which can be pruned.
var ErrPruneTime = errors.New("events are pruned before a time of the form " + timeForm + ", which has passed")

// ErrPruning means that another process changed what was to be pruned.
var ErrPruning = errors.New("another process pruned the ledger or delivered an outcome meanwhile; try again")

// Pruned is the result of a prune.
type Pruned struct {
	Events int64            `json:"events"` // removed
	Runs   int              `json:"runs"`   // removed
	Seq    int64            `json:"seq"`    // of the last event that was removed; 0 if none was
	Head   canonical.Digest `json:"head"`   // of that event
	Kept   int64            `json:"kept"`   // events of before the time that stay
	Behind string           `json:"behind"` // the run that was not over then, behind whose beginning all stays; empty if none
	Ends   string           `json:"-"`      // when that run ended; empty if it has not
}

// Prune removes what is older than a time, oldest first, up to the first run that was not over by then: the remaining runs have
// their whole record. A run is over when it has ended and its outcome, if it is ever delivered, was delivered. Prune first adds
// an event that says what is removed, and carries the tokens and the calls of tasks over; both is one transaction. By is the
// caller: [Ledger.CreateToken] says who may, and the error is [ErrRole] or [ErrToken] for others. If there is nothing to
// remove, nothing is recorded.
//
// Earlier checkpoints say nothing about what is left.
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
	if err != nil || plan.Events == 0 {
		return plan.Pruned, err
	}
	err = l.commit(ctx, func(b *batch) error {
		if err := mayManage(b, by, b.now); err != nil { // the token may be gone since
			return err
		}
		if err := plan.holds(b); err != nil {
			return err
		}
		err = b.add(nil, "", by.Name, &pruned{
			Before: before, Events: plan.Events, Head: plan.Head, Runs: plan.Runs, Seq: plan.Seq, Tasks: plan.tasks, Tokens: plan.tokens,
		})
		if err == nil {
			err = b.flush()
		}
		if err != nil {
			return err
		}
		return b.Prune(plan.Seq, plan.runs)
	})
	if err != nil {
		return Pruned{}, err
	}
	return plan.Pruned, nil
}

// mayPrune returns an error for a caller who may not prune, before the work begins.
func (l *Ledger) mayPrune(r Reader, by Caller) error {
	end, err := lastLink(r)
	if err != nil {
		return err
	}
	now, err := l.now(end.at)
	if err != nil {
		return err
	}
	return mayManage(r, by, now)
}

// A prunePlan is what would be pruned.
type prunePlan struct {
	Pruned
	first  Event
	seen   int64      // seq of the last event when the plan was made
	runs   []string   // over within what is removed
	tasks  []taskCall // calls of tasks, of these runs and of those that were removed before
	tokens []Token    // as they stand behind it
}

// holds returns an error if a plan is out of date. Events were added, and none changed: only a prune can do that, or the
// delivery of an outcome, which is the only event after a run's end.
func (p *prunePlan) holds(r Reader) error {
	first, err := firstEvent(r)
	if err != nil {
		return err
	}
	if first.Seq != p.first.Seq || first.Hash != p.first.Hash {
		return ErrPruning
	}
	for e, err := range r.Events(p.seen) {
		if err != nil {
			return err
		}
		if e.Type == OutcomeDelivered && slices.Contains(p.runs, e.RunID) {
			return ErrPruning
		}
	}
	return nil
}

// planPrune finds the last event behind which every run was over, all before a time.
func (l *Ledger) planPrune(ctx context.Context, r Reader, before string) (prunePlan, error) {
	var p prunePlan
	first, err := firstEvent(r)
	if errors.Is(err, ErrNotFound) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	p.first = first
	end, err := lastLink(r)
	if err != nil {
		return p, err
	}
	p.seen = end.seq
	gone, err := l.lastPrune(r)
	if err != nil {
		return p, err
	}
	tokens := make(map[string]Token)
	for _, t := range gone.Tokens {
		tokens[t.ID] = t
	}
	under := underway{r: r, open: make(map[string]int64), held: make(map[string]bool)}
	var told []tokenEvent
	seen := int64(0)
	for e, err := range r.Events(0) {
		if err != nil {
			return p, err
		}
		if e.At >= before {
			break
		}
		if seen++; seen%progressEvery == 0 && ctx.Err() != nil {
			return p, ctx.Err()
		}
		if err := under.see(&e); err != nil {
			return p, err
		}
		if e.Type == TokenCreated || e.Type == TokenRevoked {
			payload, err := readPayload(r, &e)
			if err != nil {
				return p, fmt.Errorf("event %d: %w", e.Seq, err)
			}
			told = append(told, tokenEvent{Event{Seq: e.Seq, At: e.At}, payload})
		}
		if len(under.open) > 0 {
			continue
		}
		p.Events, p.Seq, p.Head = seen, e.Seq, e.Hash
		p.runs = append(p.runs, under.over...)
		under.over = under.over[:0]
		if err := follow(tokens, told); err != nil {
			return p, err
		}
		told = told[:0]
	}
	p.Runs, p.Kept = len(p.runs), seen-p.Events
	if p.tasks, err = carry(ctx, r, gone.Tasks, p.runs); err != nil {
		return p, err
	}
	p.tokens = slices.SortedFunc(maps.Values(tokens), func(a, b Token) int { return strings.Compare(a.ID, b.ID) })
	return p, p.behind(r, under.open)
}

// Underway are the runs that are not over, while events are read in order.
type underway struct {
	r    Reader
	open map[string]int64 // with the seq of their first event
	held map[string]bool  // those that were held
	over []string         // those that are over, and were not taken away from here
}

// see applies one event. After a run's end only a delivery can follow, and only if the run was held.
func (u *underway) see(e *Event) error {
	switch e.Type {
	case RequestCreated:
		u.open[e.RunID] = e.Seq
	case ApprovalRequested:
		u.held[e.RunID] = true
	case RunEnded, OutcomeDelivered:
		if u.held[e.RunID] && e.Type == RunEnded {
			for later, err := range u.r.EventsOf(e.RunID) {
				if err != nil {
					return err
				}
				if later.Type == OutcomeDelivered {
					return nil
				}
			}
		}
		delete(u.open, e.RunID)
		delete(u.held, e.RunID)
		u.over = append(u.over, e.RunID)
	}
	return nil
}

// behind names the run that stops the prune: the first that was not over.
func (p *prunePlan) behind(r Reader, open map[string]int64) error {
	least := int64(0)
	for run, seq := range open { // the least seq, in any order
		if least == 0 || seq < least {
			least, p.Behind = seq, run
		}
	}
	if p.Behind == "" {
		return nil
	}
	q, err := r.Request(p.Behind)
	p.Ends = q.Ended
	return err
}

// firstEvent returns the first event that is left, or ErrNotFound.
func firstEvent(r Reader) (Event, error) {
	for e, err := range r.Events(0) {
		return e, err
	}
	return Event{}, ErrNotFound
}

// lastPrune is the payload of the last prune, and zero if there was none: what it does not carry over is unknown. It is parsed
// once, because runs ask for it while all writers wait.
func (l *Ledger) lastPrune(r Reader) (pruned, error) {
	first, err := firstEvent(r)
	if errors.Is(err, ErrNotFound) || err == nil && first.Seq == 1 {
		return pruned{}, nil
	}
	if err != nil {
		return pruned{}, err
	}
	last, err := r.LastPrune()
	if err != nil && !errors.Is(err, ErrNotFound) {
		return pruned{}, err
	}
	if known := l.gone.Load(); known != nil && last.Hash != "" && known.hash == last.Hash {
		return known.pruned, known.reaches(first.Seq)
	}
	gone := &knownPrune{hash: last.Hash}
	if last.Type == LedgerPruned {
		payload, err := readPayload(r, &last)
		if err != nil {
			return pruned{}, fmt.Errorf("event %d: %w", last.Seq, err)
		}
		gone.pruned = *payload.(*pruned)
	}
	if err := gone.reaches(first.Seq); err != nil {
		return pruned{}, err
	}
	l.gone.Store(gone)
	return gone.pruned, nil
}

// A knownPrune is the parsed payload of the event with a hash.
type knownPrune struct {
	pruned
	hash canonical.Digest
}

// reaches compares a prune with the first remaining event.
func (p *knownPrune) reaches(first int64) error {
	if p.Seq == first-1 {
		return nil
	}
	return fmt.Errorf("events up to %d are missing, and no %s says why; run pgfsm ledger verify", first-1, LedgerPruned)
}

// follow applies events to tokens.
func follow(tokens map[string]Token, told []tokenEvent) error {
	for i := range told {
		t := &told[i]
		id := tokenID(t.payload)
		token := tokens[id]
		if err := projectToken(&token, &t.event, t.payload); err != nil {
			return fault("events", eventKey(t.event.Seq), err)
		}
		tokens[id] = token
	}
	return nil
}
