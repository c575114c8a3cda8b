package ledger

import (
	"context"
	"errors"
	"strconv"
)

// Rewrite writes events again, like an attacker who can write all tables and knows the rules of hashing: chained to each other, with
// the rows that are made from them. What cannot have happened is written all the same.
func Rewrite(tx Tx, events []Event) error {
	end := link{hash: Origin}
	if len(events) > 0 && events[0].Seq > 1 { // what was before is pruned
		end = link{seq: events[0].Seq - 1, hash: events[0].Prev}
	}
	requests, order := make(map[string]*Request), []string(nil)
	for _, e := range events {
		p, err := readPayload(tx, &e)
		if err != nil {
			return err
		}
		if gone, ok := p.(*pruned); ok {
			for _, t := range gone.Tokens {
				if err := tx.PutToken(t); err != nil {
					return err
				}
			}
		}
		if e.Seq = end.seq + 1; e.Prev != Origin { // the origin stays where a test has put it
			e.Prev = end.hash
		}
		q := requests[e.RunID]
		if q == nil && e.RunID != "" {
			q = new(Request)
			requests[e.RunID], order = q, append(order, e.RunID)
		}
		if e.RunPrev != Origin && q != nil {
			e.RunPrev = q.Hash
		}
		if e.Payload, err = (&batch{Tx: tx}).aside(e.Payload); err != nil {
			return err
		}
		e.Hash = e.digest()
		for _, d := range references(&e, p) {
			if _, err := tx.Blob(d); errors.Is(err, ErrNotFound) {
				continue // a test has forged the reference
			}
			if err := tx.UseBlob(d, e.Seq); err != nil {
				return err
			}
		}
		if q != nil {
			if project(q, &e, p) != nil {
				q.Updated, q.Seq, q.Hash = e.At, e.Seq, e.Hash
			}
		}
		if err := tx.AddEvents([]Event{e}); err != nil {
			return err
		}
		end = link{e.Seq, e.At, e.Hash}
		if d, ok := p.(*decision); ok {
			if err := tx.AddDecision(d.row(&e)); err != nil {
				return err
			}
		}
		if id := tokenID(p); id != "" {
			t, _ := tx.Token(id) // none is the zero one
			if err := projectToken(&t, &e, p); err != nil {
				return err
			}
			if err := tx.PutToken(t); err != nil {
				return err
			}
		}
	}
	for _, run := range order {
		if err := tx.PutRequest(*requests[run]); err != nil {
			return err
		}
	}
	return nil
}

// ReadAgain reads a payload and writes it again.
func ReadAgain(t Type, value []byte) ([]byte, error) {
	p, err := parsePayload(t, value)
	if err != nil {
		return nil, err
	}
	return encode(p)
}

// Carry is how many counts a prune carries that removes one run, where the prune before carried so many, with a task's among them.
func Carry(r Reader, before int, with, run string) (int, error) {
	q, err := r.Request(run)
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
	carried, err := carry(context.Background(), r, all, []string{run})
	return len(carried), err
}
