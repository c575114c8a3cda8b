package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// ErrLedgerClosed means that an entry closed the ledger: it accepts no further entry. The error
// names the ledger that continues the log.
var ErrLedgerClosed = errors.New("the ledger is closed")

// ErrNotEmpty means that a store cannot be the target, because it has entries.
var ErrNotEmpty = errors.New("the target is not empty: name a new ledger, or remove what an earlier copy left there")

// ErrInUse means that live processes use the ledger.
var ErrInUse = errors.New("live processes use the ledger")

// closedError returns the error of a ledger whose last entry closes it.
func closedError(r Reader) error {
	e, err := r.LastOfType(LedgerClosed)
	if err != nil {
		return err
	}
	p, err := e.singleEvent(r)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w since %s: it goes on in %s; name that one in the configuration", ErrLedgerClosed, e.At,
		p.(*ledgerClosed).Target)
}

// notClosed returns ErrLedgerClosed for a ledger that is closed.
func notClosed(r Reader) error {
	end, err := r.End()
	if err != nil || end.Type != LedgerClosed {
		return err
	}
	return closedError(r)
}

// A Move describes the ledger that continues the log, for [Copy] and [ContinueAfterLoss].
type Move struct {
	Target string // the name of the ledger that continues the log, as people read it; it has no password
	By     Caller // the caller; Ledger.CreateToken says who may
	// Clock tells the time of both stores; nil means each store's own clock.
	Clock func() time.Time
}

// Copy copies a ledger to an empty store, and closes its source. The copy has the same log, so
// checkpoints of the source hold for it, and goes on with it. Copy takes three steps:
//
//  1. One transaction writes all rows of the source, and the entry that closes the log, to the target.
//  2. The source gets the same entry, and accepts no further one. No other process has written to the source since step 1 began.
//  3. Only the target gets the next entry, [LedgerContinued]. Until then, the target is closed, too.
//
// If a step fails, the target is empty, or it is a complete and closed copy. Copying again
// continues with the step that failed. Only the target of step 1 can be continued, so a second copy
// of a closed source is refused.
//
// Nothing stops a user who can write the source from adding entries to it, with or without a
// [LedgerContinued]. Then there are two logs of one origin that differ after the entry
// [LedgerClosed], as with every copy of a file. A checkpoint or a witness of one of them reveals
// the other.
func Copy(ctx context.Context, from, to Store, m Move) error {
	err := from.Update(ctx, func(s Tx) error {
		end, err := s.End()
		switch {
		case err != nil || end.Type == LedgerClosed:
			return err
		case end.Size == 0:
			return errors.New("the ledger is empty: there is nothing to copy")
		}
		e, err := m.newClosingEntry(from, s, end)
		if err != nil {
			return err
		}
		if _, err := m.timeAfter(to, e.at); err != nil {
			return fmt.Errorf("the target's clock: %w", err)
		}
		if err := checkUnused(ctx, from, s); err != nil {
			return err
		}
		if e, err = m.fillTarget(ctx, s, to, e); err != nil {
			return err
		}
		return e.addTo(s)
	})
	if err != nil {
		return err
	}
	return m.finishTarget(ctx, from, to)
}

// A closingEntry is the entry that closes a log.
type closingEntry struct {
	index  int64
	at, by string
	payload
}

// timeAfter returns the time of a store. It is never before last, the time of the last entry.
func (m *Move) timeAfter(s Store, last string) (string, error) {
	if m.Clock != nil {
		return notBefore(m.Clock(), last)
	}
	return notBefore(s.Now(), last)
}

// newClosingEntry returns the entry that would close the log of a store now, if the caller may add
// it.
func (m *Move) newClosingEntry(s Store, r Reader, end End) (c closingEntry, err error) {
	now, err := m.timeAfter(s, end.At)
	if err != nil {
		return c, err
	}
	if err := mayManage(r, m.By, now); err != nil {
		return c, err
	}
	return closingEntry{end.Size, now, m.By.Name, &ledgerClosed{Target: m.Target}}, nil
}

func (c *closingEntry) addTo(tx Tx) error {
	b := &batch{Tx: tx, size: c.index, now: c.at}
	return errors.Join(b.addEvent(nil, "", c.by, c.payload), b.flushEntry())
}

// checkUnused returns ErrInUse if a live process owns a run or is a gateway. The first process that
// opens the copy ends the runs of processes that are gone.
func checkUnused(ctx context.Context, store Store, r Reader) error {
	var replicas roster
	live, err := replicas.liveReplicas(ctx, r, store.OwnerGone)
	if err != nil {
		return err
	}

	var users []string
	for i := range live {
		users = append(users, fmt.Sprintf("the gateway %s, since %s", live[i].Owner, live[i].Since))
	}

	for q, err := range r.Runs(Filter{Open: true}) {
		if err != nil {
			return err
		}
		if q.Owner == "" {
			continue
		}
		isGone, err := store.OwnerGone(ctx, q.Owner)
		if err != nil {
			return err
		}
		if !isGone {
			users = append(users, fmt.Sprintf("the run %s of the process %s", q.RunID, q.Owner))
		}
	}

	if len(users) == 0 {
		return nil
	}

	return fmt.Errorf("%w: %s; stop them first", ErrInUse, strings.Join(users[:min(len(users), maxNamed)], "; "))
}

// maxNamed bounds how many gateways and runs an error names.
const maxNamed = 10

// fillTarget writes all rows and the closing entry to the target. If an earlier copy did that, fill
// returns the closing entry of that copy.
func (m *Move) fillTarget(ctx context.Context, s Reader, to Store, e closingEntry) (closingEntry, error) {
	found := false
	// A view takes no lock: the target may be the source, whose lock this process holds.
	err := to.View(ctx, func(t Reader) (err error) {
		e, found, err = findUnfinished(s, t, e)
		return err
	})
	if err != nil || found {
		return e, err
	}
	return e, to.Update(ctx, func(t Tx) error {
		if end, err := t.End(); err != nil || end.Size > 0 {
			return errors.Join(ErrNotEmpty, err)
		}
		if err := copyRows(s, t); err != nil {
			return err
		}
		return errors.Join(t.SetNextDelivery(copyMark, e.index+1), e.addTo(t))
	})
}

// findUnfinished returns the closing entry of a target that an earlier copy has filled. The error
// is ErrNotEmpty if the target has any other content.
func findUnfinished(s, t Reader, e closingEntry) (_ closingEntry, found bool, err error) {
	end, err := t.End()
	if err != nil || end.Size == 0 {
		return e, false, err
	}
	if end.Type != LedgerClosed || end.Size != e.index+1 {
		return e, false, ErrNotEmpty
	}
	source, err := TakeCheckpoint(s)
	if err != nil {
		return e, false, err
	}

	target, err := TakeCheckpoint(t)
	if err != nil {
		return e, false, err
	}
	if err := source.Contained(target, t); err != nil {
		return e, false, errors.Join(ErrNotEmpty, err)
	}

	last, err := t.LastOfType(LedgerClosed)
	if err != nil {
		return e, false, err
	}

	p, err := last.singleEvent(t)
	return closingEntry{last.Index, last.At, last.By, p}, true, err
}

// afterAll is a text that sorts after every time.
const afterAll = "~"

// copyRows copies all rows, except deliveries that are done or were given up: nothing reads those.
func copyRows(s Reader, t Tx) error {
	for _, pass := range []func() error{
		func() error { return copyEntries(s, t) },
		func() error { return forEach(s.Blobs(), t.PutBlob) },
		func() error { return forEach(s.Runs(Filter{}), t.AddRun) },
		func() error { return forEach(s.Tokens(), t.PutToken) },
		func() error { return forEach(s.Blocks(), t.PutBlock) },
		func() error { return forEach(s.Deliveries("", afterAll, math.MaxInt), t.PutDelivery) },
		func() error {
			return forEach(s.Hooks(), func(hook string) error {
				next, err := s.NextDelivery(hook)
				if err != nil {
					return err
				}
				return t.SetNextDelivery(hook, next)
			})
		},
	} {
		if err := pass(); err != nil {
			return err
		}
	}
	return nil
}

// forEach calls do with each row.
func forEach[T any](rows iter.Seq2[T, error], do func(T) error) error {
	for row, err := range rows {
		if err != nil {
			return err
		}
		if err := do(row); err != nil {
			return err
		}
	}
	return nil
}

// copyEntries copies the entries, also pruned ones, with the hashes that they complete.
func copyEntries(s Reader, t Tx) error {
	next := int64(0)
	return forEach(s.Entries(0), func(e Entry) error {
		for ; next <= e.Index; next++ {
			var ids []int64
			for id := tlog.StoredHashIndex(0, next); id < tlog.StoredHashIndex(0, next+1); id++ {
				ids = append(ids, id)
			}
			hashes, err := s.ReadHashes(ids)
			if err != nil {
				return err
			}

			copied := e
			if next < e.Index {
				copied = Entry{Index: next} // it was pruned
			}
			if err := t.AddEntry(copied, hashes); err != nil {
				return err
			}
		}
		return nil
	})
}

// copyMark is the name of a hook that every copy has. The next entry of that hook is the one after
// [LedgerClosed]. The source has no such hook, or that of an earlier copy. So the source is never
// mistaken for its own copy under another name.
const copyMark = "copy"

// finishTarget adds the entry with which the target continues the log, unless the target has it.
func (m *Move) finishTarget(ctx context.Context, from, to Store) error {
	return from.View(ctx, func(s Reader) error {
		source, err := TakeCheckpoint(s)
		if err != nil {
			return err
		}
		return to.Update(ctx, func(t Tx) error {
			size, err := t.NextDelivery(copyMark)
			switch {
			case errors.Is(err, ErrNotFound):
				return closedError(s)
			case err != nil:
				return err
			case size != source.Size:
				return closedError(s)
			}
			target, err := TakeCheckpoint(t)
			if err != nil {
				return err
			}
			if err := source.Contained(target, t); err != nil {
				return err
			}
			if target.Size > source.Size {
				return nil // an earlier call has finished
			}

			end, err := t.End()
			if err != nil {
				return err
			}

			e, err := m.newClosingEntry(to, t, end)
			if err != nil {
				return err
			}

			e.payload = new(ledgerContinued)
			return e.addTo(t)
		})
	})
}
