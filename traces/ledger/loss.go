package ledger

import (
	"context"
	"errors"
	"fmt"

	"pgfsm/traces/ledger/checkpoint"
)

// ErrNothingLost means that a ledger contains all checkpoints that it was compared with.
var ErrNothingLost = errors.New("the log contains every checkpoint: nothing was lost")

// A former log lost entries that were signed. Its checkpoints are signed notes.
type former struct {
	// The largest checkpoint before the loss that the log still contained; empty if there was none.
	Common string `json:"common,omitzero"`
	Lost   string `json:"lost"` // the largest checkpoint that the log did not contain
}

// ContinueAfterLoss begins a new log in an empty store, for a ledger that no longer contains all of
// its signed checkpoints: it was restored from a backup, or its database failed over and lost
// entries. Entry 0 of the new log names the former log by its last common and its lost checkpoint.
// Nothing else is copied: the former log no longer knows which approved calls were made, and which
// tokens were revoked, after its last entry. Then ContinueAfterLoss closes the former log.
//
// The new log needs another origin: a witness that saw the lost checkpoint rightly rejects every
// checkpoint of the former log.
func ContinueAfterLoss(ctx context.Context, from, to Store, signed [][]byte, origin string, m Move) error {
	return from.Update(ctx, func(s Tx) error {
		loss, err := lossOf(s, signed)
		if err != nil {
			return err
		}
		end, err := s.End()
		if err != nil {
			return err
		}

		e, err := m.newClosingEntry(from, s, end)
		if err != nil {
			return err
		}
		if err := checkUnused(ctx, from, s); err != nil {
			return err
		}

		created := &logCreated{Origin: origin, Former: loss}
		if err := created.checkOrigins(); err != nil {
			return err
		}
		if err := beginLog(ctx, to, &closingEntry{0, e.at, e.by, created}); err != nil {
			return err
		}
		if end.Size == 0 || end.Type == LedgerClosed {
			return nil
		}

		return e.addTo(s)
	})
}

// beginLog adds the first entry of a log, unless an earlier call has added it.
func beginLog(ctx context.Context, to Store, first *closingEntry) error {
	return to.Update(ctx, func(t Tx) error {
		end, err := t.End()
		if err != nil || end.Size == 0 {
			return errors.Join(err, first.addTo(t))
		}
		e, err := t.LastOfType(LogCreated)
		if err != nil {
			return err
		}
		p, err := e.singleEvent(t)
		if err != nil {
			return err
		}
		if former := p.(*logCreated).Former; end.Size > 1 || former == nil || *former != *first.payload.(*logCreated).Former {
			return ErrNotEmpty
		}
		return nil
	})
}

// lossOf finds the common and the lost checkpoint of a log among its signed checkpoints.
func lossOf(r Reader, signed [][]byte) (*former, error) {
	current, err := TakeCheckpoint(r)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}

	var lost, common, least checkpoint.Checkpoint // least is the smallest that the log does not contain
	var f former
	contained := make(map[checkpoint.Checkpoint]string)

	for _, text := range signed {
		c, err := checkpoint.Read(text)
		if err != nil {
			return nil, err
		}

		if current.Origin == "" {
			current.Origin = c.Origin
		}

		if c.Origin != current.Origin {
			return nil, fmt.Errorf("the checkpoint is of the log %s, and the ledger has the log %s", c.Origin,
				current.Origin)
		}

		switch err := c.Contained(current, r); {
		case err == nil:
			contained[c] = string(text)
		case !errors.Is(err, checkpoint.ErrInconsistent):
			return nil, err
		default:
			if c.Size > lost.Size {
				lost, f.Lost = c, string(text)
			}
			if least.Size == 0 || c.Size < least.Size {
				least = c
			}
		}
	}

	if f.Lost == "" {
		return nil, ErrNothingLost
	}

	// The common checkpoint is the largest before the first one that is missing.
	for c, text := range contained { // the order does not matter, because no two have the same size
		if c.Size > common.Size && c.Size < least.Size {
			common, f.Common = c, text
		}
	}

	return &f, nil
}

// checkOrigins validates the names of the former log.
func (p *logCreated) checkOrigins() error {
	if err := checkpoint.CheckOrigin(p.Origin); err != nil || p.Former == nil {
		return err
	}
	lost, err := checkpoint.Read([]byte(p.Former.Lost))
	switch {
	case err != nil:
		return fmt.Errorf("the lost checkpoint: %w", err)
	case lost.Origin == p.Origin:
		return fmt.Errorf("the origin %s is that of the log that lost entries: the new log needs another one", p.Origin)
	case p.Former.Common == "":
		return nil
	}

	common, err := checkpoint.Read([]byte(p.Former.Common))
	switch {
	case err != nil:
		return fmt.Errorf("the common checkpoint: %w", err)
	case common.Origin != lost.Origin || common.Size >= lost.Size:
		return errors.New("the common checkpoint: it is of another log, or not smaller than the lost one")
	}
	return nil
}
