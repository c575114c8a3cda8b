package sqlite

import (
	"context"
	"errors"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/tail"
)

// update is [Store.Update] while this process holds the ledger. The caller has updating.
func (t *tailing) update(ctx context.Context, do func(ledger.Tx) error) (done bool, err error) {
	if t.broken != nil {
		return true, t.broken
	}
	if held, err := t.hold(ctx); err != nil || !held {
		return err != nil, err
	}
	q := &quick{ctx: ctx, t: t, updates: true}
	defer q.close() // also when do panics
	if err := do(q); err != nil {
		return true, err
	}
	if q.file == nil && q.whole() {
		if err := q.usable(); err != nil {
			return true, err
		}
		if kept, err := t.keep(ctx, &q.adds); kept || err != nil {
			return true, err
		}
	}
	x := q.elsewhere()
	if err := t.file.Same(); err != nil { // another process may have locked a different file, and commit there
		return true, t.explained(err)
	}
	return true, t.s.commit(x)
}

// write continues an update in the file, after it has moved all earlier commits there.
func (q *quick) write() (x *tx, done func(), err error) {
	t := q.t
	t.mu.Lock()
	t.vain++
	t.mu.Unlock()
	if err := t.s.lock(q.ctx); err != nil {
		return nil, nil, err
	}
	done = func() { <-t.s.writing }
	if err := t.settle(); err != nil {
		return nil, done, err
	}
	if x, err = t.s.begin(q.ctx); err != nil {
		return nil, done, err
	}
	done = func() {
		t.s.undo(x)
		t.refresh()
		<-t.s.writing
	}
	return x, done, replay(x, []*tail.Commit{&q.adds})
}

// keep writes a commit to the tail, if it has events (they order the commits) and fits.
func (t *tailing) keep(ctx context.Context, c *tail.Commit) (bool, error) {
	if len(c.Events) == 0 {
		return len(c.Requests)+len(c.Steps)+len(c.Blobs)+len(c.Decisions) == 0, nil
	}
	// A record in a file that was moved away is lost: a denial there would have no effect.
	if err := errors.Join(t.s.file.same(), t.file.Same()); err != nil {
		return false, err
	}
	t.record = c.Append(t.record[:0])
	if int64(len(t.record)) > t.file.Room() {
		if err := t.restart(ctx); err != nil {
			return false, err
		}
		if int64(len(t.record)) > t.file.Room() {
			return false, nil
		}
	}
	if err := t.file.Append(t.record); err != nil {
		return false, t.failed(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = append(t.pending, c)
	t.learn(c)
	t.commits, t.idle, t.kept, t.used = t.commits+1, 0, t.kept+1, t.used+len(t.record)
	return true, nil
}

// restart moves all commits into the file and restarts the tail.
func (t *tailing) restart(ctx context.Context) error {
	if err := t.s.lock(ctx); err != nil {
		return err
	}
	defer func() { <-t.s.writing }()
	if err := t.settle(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used = 0
	return t.explained(t.file.Restart())
}

// failed handles a commit that the tail could not store: earlier commits are moved into the file, and the tail is not used any more.
func (t *tailing) failed(why error) error {
	t.mu.Lock()
	t.off = true
	t.mu.Unlock()
	if errors.Is(why, tail.ErrUndecided) {
		t.broken = t.explained(why) // the next process that opens the ledger reads the tail
		return t.broken
	}
	return errors.Join(t.explained(why), t.letGo())
}

// glance is [Store.Glance]. While this process holds the ledger, it reads the cache first.
func (t *tailing) glance(ctx context.Context, do func(ledger.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q := &quick{ctx: ctx, t: t}
	defer q.close()
	var err error
	if _, held := t.reached(); held {
		err = t.explained(t.file.Same()) // otherwise the cache may be incomplete
	} else {
		err = q.elsewhere().usable()
	}
	if err != nil {
		return err
	}
	if err := do(q); err != nil {
		return err
	}
	if err := t.s.file.same(); err != nil {
		return err
	}
	return t.s.frozen.same()
}

// read continues a glance in the file.
func (q *quick) read() (x *tx, done func(), err error) {
	s := q.t.s
	if err := q.t.settled(q.ctx); err != nil {
		return nil, nil, err
	}
	if q.release, err = q.t.share(q.ctx, false); err != nil {
		return nil, nil, err
	}
	c, err := s.borrow(q.ctx)
	if err != nil {
		q.release()
		return nil, nil, err
	}
	x = &tx{c: c, ctx: q.ctx, path: s.path}
	return x, func() {
		x.end()
		q.release()
		s.giveBack(c)
	}, nil
}

// readOn lets a glance that continues in the file see all commits until now. If this process has released the ledger since, another process may have
// commits in the tail, so readOn shares the lock.
func (q *quick) readOn() error {
	t := q.t
	if err := t.settled(q.ctx); err != nil {
		return err
	}
	t.mu.RLock()
	safe := t.held || t.locked
	t.mu.RUnlock()
	if safe || q.done == nil { // it could not continue there
		return nil
	}
	release, err := t.share(q.ctx, false)
	if err != nil {
		return err
	}
	q.release()
	q.release = release
	return nil
}

// refresh updates the cache after a change of the file itself, while this process holds the ledger and the file had all commits.
func (t *tailing) refresh() {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.know(context.Background()) // the next update reads what is missing
}
