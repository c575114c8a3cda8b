package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrLedgerClosed means that an entry closed the ledger: it accepts no further entry. The error
// names the ledger that continues the log.
var ErrLedgerClosed = errors.New("the ledger is closed")

// ErrInUse means that live processes use the ledger.
var ErrInUse = errors.New("live processes use the ledger")

// CloseLog adds the last entry of the log, which names the ledger that continues it: [Import] reads
// an export that ends with this entry. From then on, every process refuses to write to this ledger.
// CloseLog verifies the ledger before, because Import refuses an export that does not verify. by is
// the caller: [Ledger.CreateToken] says who may.
func (l *Ledger) CloseLog(ctx context.Context, target string, by Caller) error {
	return l.commit(ctx, func(b *batch) error {
		if err := mayManage(b, by, b.now); err != nil {
			return err
		}
		if b.size == 0 {
			return errors.New("the ledger is empty: there is nothing to close")
		}
		if err := checkUnused(ctx, l.store, b); err != nil {
			return err
		}
		if _, err := Verify(ctx, b, VerifyOptions{}); err != nil {
			return err
		}
		return b.addEvent(nil, "", by.Name, &ledgerClosed{Target: target})
	})
}

// closedError returns the error of a ledger whose last entry closes it.
func closedError(r Reader) error {
	e, err := r.LastOfType(LedgerClosed)
	if err != nil {
		return err
	}
	p, err := e.singleEvent()
	if err != nil {
		return err
	}
	return fmt.Errorf("%w since %s: it goes on in %s; name that one in the configuration", ErrLedgerClosed, e.At,
		p.payload.(*ledgerClosed).Target)
}

// notClosed returns ErrLedgerClosed for a ledger that is closed.
func notClosed(r Reader) error {
	end, err := r.End()
	if err != nil || end.Type != LedgerClosed {
		return err
	}
	return closedError(r)
}

// checkUnused returns ErrInUse if a live process owns a run or is a gateway. The first process that
// opens the ledger that continues the log ends the runs of processes that are gone.
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
