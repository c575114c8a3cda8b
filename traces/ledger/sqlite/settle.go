package sqlite

import (
	"context"
	"errors"
	"fmt"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/tail"
)

// settled moves all earlier commits into the file.
func (t *tailing) settled(ctx context.Context) error {
	t.mu.Lock()
	none := len(t.pending) == 0
	if !none {
		t.vain++
	}
	t.mu.Unlock()
	if none {
		return nil
	}
	if err := t.s.lock(ctx); err != nil {
		return err
	}
	defer func() { <-t.s.writing }()
	return t.settle()
}

// settle moves commits into the file. The caller has Store.writing. Others may add commits meanwhile, unless the caller has updating as well.
func (t *tailing) settle() error {
	t.mu.RLock()
	all := t.pending
	t.mu.RUnlock()
	for len(all) > 0 {
		part := all[:min(len(all), settleMost)]
		all = all[len(part):]
		err := t.s.transact(context.Background(), func(x ledger.Tx) error {
			if err := t.follows(x, part[0]); err != nil {
				return err
			}
			return replay(x, part)
		})
		if err != nil {
			return err
		}
		t.forget(part)
	}
	return nil
}

// follows returns an error if a commit does not continue the chain of the file. Then the tail accepts no more commits, because they could not be moved.
func (t *tailing) follows(x ledger.Tx, c *tail.Commit) error {
	end, err := x.End()
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return err
	}
	first := c.Events[0].Seq
	if first == end.Seq+1 {
		return nil
	}
	t.mu.Lock()
	t.off = true
	t.mu.Unlock()
	return t.explained(fmt.Errorf("%w: %s%s: %w", tail.ErrDamaged, t.s.path, tail.Suffix, another(first)))
}

// replay writes commits to the file. Of several puts of one request it writes the last, and it adds the steps of a run together: the result is the same as
// of writing each commit.
func replay(x ledger.Tx, commits []*tail.Commit) error {
	type run struct {
		put   *tail.Put
		isNew bool
		steps []ledger.Step
	}
	runs := make(map[string]*run)
	var order []*run
	of := func(id string) *run {
		r := runs[id]
		if r == nil {
			r = &run{}
			runs[id], order = r, append(order, r)
		}
		return r
	}
	for _, c := range commits {
		for i := range c.Blobs {
			if err := x.PutBlob(c.Blobs[i]); err != nil {
				return err
			}
		}
		if err := x.AddEvents(c.Events); err != nil {
			return err
		}
		for i := range c.Decisions {
			if err := x.AddDecision(c.Decisions[i]); err != nil {
				return err
			}
		}
		for steps := c.Steps; len(steps) > 0; {
			n := 1 // of one run
			for n < len(steps) && steps[n].RunID == steps[0].RunID {
				n++
			}
			r := of(steps[0].RunID)
			if r.steps == nil {
				r.steps = steps[:n:n]
			} else {
				r.steps = append(r.steps, steps[:n]...)
			}
			steps = steps[n:]
		}
		for i := range c.Requests {
			put := &c.Requests[i]
			r := of(put.RunID)
			r.put, r.isNew = put, r.isNew || put.New
		}
	}
	for _, r := range order {
		if err := x.AddSteps(r.steps); err != nil {
			return err
		}
		if r.put == nil {
			continue
		}
		write := x.PutRequest
		if r.isNew {
			write = x.AddRequest
		}
		if err := write(r.put.Request); err != nil {
			return err
		}
	}
	return nil
}

// recover moves the commits of a dead process from the tail into the file. If another process does that or reads at the moment, recover returns no error;
// the caller tries again.
func (t *tailing) recover(ctx context.Context, holding bool) error {
	if t.s.readOnly {
		return t.recoverBeside()
	}
	if !holding {
		if err := t.s.enter(ctx, t.updating); err != nil {
			return err
		}
		defer func() { <-t.updating }()
	}
	if err := t.s.lock(ctx); err != nil {
		return err
	}
	defer func() { <-t.s.writing }()
	if left, err := t.seize(); err != nil || !left {
		return err
	}
	err := t.bringIn()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = false
	if err == nil {
		err = t.explained(t.file.End())
	}
	return errors.Join(err, t.explained(t.file.Unlock()))
}

// seize takes the exclusive lock if the tail has left commits and no process uses it.
func (t *tailing) seize() (left bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held || t.busy || t.locked {
		return false, nil
	}
	if ok, err := t.file.TryExclusive(); err != nil || !ok {
		return false, t.explained(err)
	}
	left, err = t.file.Pending()
	if err != nil || !left {
		return false, t.explained(errors.Join(err, t.file.Unlock()))
	}
	t.busy = true
	return true, nil
}

// bringIn writes the tail's commits that the file does not have. No other process uses tail or file.
func (t *tailing) bringIn() error {
	return t.s.transact(context.Background(), func(x ledger.Tx) error {
		end, err := x.End()
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return err
		}
		for r, err := range t.file.Left() {
			if err != nil {
				return t.explained(err)
			}
			c, err := tail.Parse(r.Bytes)
			if err != nil {
				return t.damaged(r, err)
			}
			if len(c.Events) == 0 {
				return t.damaged(r, errors.New("it has no event"))
			}
			first, last := &c.Events[0], &c.Events[len(c.Events)-1]
			switch {
			case last.Seq <= end.Seq: // it was moved before, but the end of the tail was not recorded
				if err := stands(x, last); err != nil {
					return t.damaged(r, err)
				}
				continue
			case r.Gap:
				return t.damaged(r, errors.New("those before it are not whole"))
			case first.Seq != end.Seq+1 || end.Seq > 0 && first.Prev != end.Hash:
				return t.damaged(r, fmt.Errorf("it does not go on where the ledger ends, with event %d", end.Seq))
			}
			if err := replay(x, []*tail.Commit{c}); err != nil {
				return err
			}
			end = ledger.End{Seq: last.Seq, At: last.At, Hash: last.Hash}
		}
		return nil
	})
}

// stands returns an error if the file has a different event in place of a moved one. A missing event was pruned since.
func stands(x ledger.Tx, e *ledger.Event) error {
	for there, err := range x.Events(e.Seq - 1) {
		if err == nil && there.Seq == e.Seq && there.Hash != e.Hash {
			err = another(e.Seq)
		}
		return err
	}
	return nil
}

func another(seq int64) error {
	return fmt.Errorf("the ledger has another event %d: the tail is that of another ledger, or a program that does not know of it wrote the event", seq)
}

func (t *tailing) damaged(r tail.Record, err error) error {
	return t.explained(fmt.Errorf("%w: commit %d of %s%s: %w", tail.ErrDamaged, r.Index, t.s.path, tail.Suffix, err))
}

// recoverBeside is recover for a reader. (SQLite recovers its log for readers, too.)
func (t *tailing) recoverBeside() error {
	path, err := t.ledgerFile()
	if err != nil {
		return err
	}
	w, err := Open(path, Options{unmoved: true})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return fmt.Errorf("ledger %s: commits that a process left in its tail, %s%s, cannot be moved into it: a user who can write the ledger must open it first: %w",
			t.s.path, path, tail.Suffix, err)
	}
	return nil
}
