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

// ErrPruning means that another process pruned at the same time.
var ErrPruning = errors.New("another process has pruned the ledger meanwhile; look at it again")

// Pruned says what was pruned, and what was not.
type Pruned struct {
	Events int64            // removed
	Runs   int              // removed
	Seq    int64            // of the last event that was removed; 0 if none was
	Head   canonical.Digest // of that event
	Kept   int64            // events of before the time that stay
	Behind string           // the run that had not ended then, behind whose beginning all stays; empty if none
	Ends   string           // when that run ended; empty if it has not
}

// Prune removes what is from before a time, oldest first, up to the first run that had not ended by then: what is left is the
// whole record of the runs that it tells of. It first adds an event that says what is removed, and carries the
// tokens over; both is one transaction. By is who wants it. Where there is nothing to remove, nothing is recorded.
//
// Checkpoints that were taken before say nothing any more about what is left.
func (l *Ledger) Prune(ctx context.Context, before, by string) (Pruned, error) {
	if t, err := time.Parse(timeForm, before); err != nil || t.Format(timeForm) != before || t.After(l.clock()) {
		return Pruned{}, fmt.Errorf("%w: %q", ErrPruneTime, before)
	}
	var plan prunePlan
	err := l.View(ctx, func(r Reader) (err error) {
		plan, err = planPrune(ctx, r, before)
		return err
	})
	if err != nil || plan.Events == 0 {
		return plan.Pruned, err
	}
	err = l.commit(ctx, func(b *batch) error {
		// Between the plan and here events were added, and none changed: only a prune could make the plan wrong.
		first, err := firstEvent(b)
		if err != nil {
			return err
		}
		if first.Seq != plan.first.Seq || first.Hash != plan.first.Hash {
			return ErrPruning
		}
		err = b.add(nil, "", by, &pruned{
			Before: before, Events: plan.Events, Head: plan.Head, Runs: plan.Runs, Seq: plan.Seq, Tokens: plan.tokens,
		})
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

// A prunePlan is what would be pruned.
type prunePlan struct {
	Pruned
	first  Event
	runs   []string // ended within what is removed
	tokens []Token  // as they stand behind it
}

// planPrune finds the last event behind which no run was open, all before a time.
func planPrune(ctx context.Context, r Reader, before string) (prunePlan, error) {
	var p prunePlan
	first, err := firstEvent(r)
	if errors.Is(err, ErrNotFound) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	p.first = first
	tokens, err := carried(r, first.Seq)
	if err != nil {
		return p, err
	}
	open := make(map[string]int64) // runs that have begun and not ended, with the seq of their first event
	var ended []string
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
		switch e.Type {
		case RequestCreated:
			open[e.RunID] = e.Seq
		case RunEnded:
			delete(open, e.RunID)
			ended = append(ended, e.RunID)
		case TokenCreated, TokenRevoked:
			said, err := readPayload(r, &e)
			if err != nil {
				return p, fmt.Errorf("event %d: %w", e.Seq, err)
			}
			told = append(told, tokenEvent{Event{Seq: e.Seq, At: e.At}, said})
		}
		if len(open) > 0 {
			continue
		}
		p.Events, p.Seq, p.Head = seen, e.Seq, e.Hash
		p.runs = append(p.runs, ended...)
		ended = ended[:0]
		if err := follow(tokens, told); err != nil {
			return p, err
		}
		told = told[:0]
	}
	p.Runs, p.Kept = len(p.runs), seen-p.Events
	p.tokens = slices.SortedFunc(maps.Values(tokens), func(a, b Token) int { return strings.Compare(a.ID, b.ID) })
	return p, p.behind(r, open)
}

// behind says which run keeps what is not pruned: the first that had not ended.
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

// carried are the tokens that the last prune carried over.
func carried(r Reader, first int64) (map[string]Token, error) {
	tokens := make(map[string]Token)
	if first == 1 {
		return tokens, nil
	}
	for e, err := range r.Events(0) {
		if err != nil {
			return nil, err
		}
		if e.Type != LedgerPruned {
			continue
		}
		said, err := readPayload(r, &e)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", e.Seq, err)
		}
		if gone := said.(*pruned); gone.Seq == first-1 {
			for _, t := range gone.Tokens {
				tokens[t.ID] = t
			}
			return tokens, nil
		}
	}
	return nil, fmt.Errorf("events up to %d are missing, and no %s says why; run pgfsm ledger verify", first-1, LedgerPruned)
}

// follow moves tokens by what was told of them.
func follow(tokens map[string]Token, told []tokenEvent) error {
	for i := range told {
		t := &told[i]
		id := tokenID(t.said)
		token := tokens[id]
		if err := projectToken(&token, &t.event, t.said); err != nil {
			return fault("events", eventKey(t.event.Seq), err)
		}
		tokens[id] = token
	}
	return nil
}
