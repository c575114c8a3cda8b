package ledger

import (
	"context"
	"crypto/rand"
	"strconv"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// Unlinked is the index of an event whose entry [Rewrite] links to no entry of its run.
const Unlinked = -1

// Rewrite writes events again, like an attacker who can write all tables and knows the rules of hashing, with the rows that are made from
// them. What cannot have happened is written all the same. Events that follow each other and have the same index make one entry. Entries
// that were pruned from the original stay so.
func Rewrite(tx Tx, original Reader, events []Event) error {
	requests, order := make(map[string]*RunRow), []string(nil)
	moved := make(map[int64]int64) // the entries of generations, by their former indexes
	index := int64(0)
	for len(events) > 0 {
		more, err := rewritePruned(tx, original, index)
		if err != nil {
			return err
		}
		if more {
			index++
			continue
		}
		n := 1
		for n < len(events) && events[n].Index == events[0].Index && events[n].RunID == events[0].RunID && events[n].By == events[0].By {
			n++
		}
		first := events[0]
		q := requests[first.RunID]
		if q == nil && first.RunID != "" {
			q = new(RunRow)
			requests[first.RunID], order = q, append(order, first.RunID)
		}
		if first.Type == BundleActivated || first.Type == CommandStarted {
			moved[first.Index] = index
		}
		if err := rewrite(tx, q, index, events[:n], moved); err != nil {
			return err
		}
		events, index = events[n:], index+1
	}
	for _, run := range order {
		if requests[run].RunID == "" { // it begins with another event
			continue
		}
		if err := tx.AddRun(*requests[run]); err != nil {
			return err
		}
	}
	return nil
}

// rewritePruned adds an entry that was pruned from the original, if it was.
func rewritePruned(tx Tx, original Reader, index int64) (bool, error) {
	for e, err := range original.Entries(index) {
		if err != nil || !e.Pruned() {
			return false, err
		}
		hashes, err := tlog.StoredHashesForRecordHash(index, e.computeHash(), tx)
		if err != nil {
			return false, err
		}
		return true, tx.AddEntry(e, hashes)
	}
	return false, nil
}

func rewrite(tx Tx, q *RunRow, index int64, events []Event, moved map[int64]int64) error {
	last := events[len(events)-1]
	e := Entry{Index: index, RunID: last.RunID, At: last.At}
	if q == nil {
		e.Type = last.Type
	}
	if q != nil && q.Entries > 0 {
		e.N, e.Previous = q.Entries, q.Entry
		if last.Index == Unlinked {
			e.Previous = 0
		}
		before, err := leafHash(tx, e.Previous)
		if err != nil {
			return err
		}
		e.Prev = encodeLink(before)
	}
	var list [][]byte
	var types []Type
	for _, event := range events {
		p, err := event.decodePayload()
		if err != nil {
			return err
		}
		event.Index = index
		if first, ok := p.(*requestCreated); ok {
			if to, known := moved[first.Gen]; known && to != first.Gen {
				first.Gen = to
				if event.Payload, err = encodePayload(first); err != nil {
					return err
				}
			}
			// A run that refers to no generation has one of nothing.
			if make(generations).resolve(tx, &decodedEvent{event, p}) != nil {
				first.generation = &generation{Bundle: canonical.Sum(BlobBundle, nil)}
			}
		}
		list, types = append(list, event.Payload), append(types, event.Type)
		if q != nil && projectEvent(q, &event, p) != nil {
			q.Updated = e.At
		}
		if issuer, subject, ends := subjectOf(p); issuer != "" {
			name := policy.SubjectName(issuer, subject)
			if err := tx.DropBlock(name); err != nil {
				return err
			}
			if !ends {
				if err := tx.PutBlock(Block{Name: name, Since: e.At, By: event.By, Entry: index}); err != nil {
					return err
				}
			}
		}
		if id := tokenID(p); id != "" {
			t, _ := tx.Token(id) // none is the zero one
			if err := projectToken(&t, &event, p); err != nil {
				return err
			}
			if err := tx.PutToken(t); err != nil {
				return err
			}
		}
	}
	if q != nil {
		q.Entry, q.Entries = index, e.N+1
	}
	b := batch{Tx: tx, random: rand.Reader, size: index, entry: &e, by: last.By, events: list, types: types}
	return b.flushEntry()
}

// ReadAgain reads a payload and writes it again.
func ReadAgain(t Type, value []byte) ([]byte, error) {
	p, err := (&Event{Type: t, Payload: value}).decodePayload()
	if err != nil {
		return nil, err
	}
	return encodePayload(p)
}

// Carry is how many counts a prune carries that removes one run, where the prune before carried so many, with a task's among them.
func Carry(r Reader, before int, with, run string) (int, error) {
	q, err := r.Run(run)
	if err != nil {
		return 0, err
	}
	var all []taskCall
	for i := range before {
		c := taskCall{Calls: 1, Server: q.Server, Task: "old-" + strconv.Itoa(i), Tool: q.Tool}
		if i == 0 && with != "" {
			c.Task = with
		}
		all = append(all, c)
	}
	carried := carriedBy(all)
	err = carried.addRun(&q)
	return len(carried.sortedCounts()), err
}

// PruneAtOnce is [Ledger.Prune] with transactions of so many entries.
func (l *Ledger) PruneAtOnce(ctx context.Context, before string, by Caller, atOnce int64) (Pruned, error) {
	return l.pruneInParts(ctx, PruneRequest{Before: before, Unstated: true}, by, atOnce)
}
