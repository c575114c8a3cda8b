package ledger

import (
	"fmt"

	"pgfsm/states"
	"pgfsm/traces/ledger/checkpoint"
)

// TakeCheckpoint returns the current state of the log.
func TakeCheckpoint(r Reader) (c checkpoint.Checkpoint, err error) {
	origin, err := Origin(r)
	if err != nil {
		return c, err
	}
	end, err := r.End()
	if err != nil {
		return c, err
	}
	return checkpoint.Take(origin, end.Size, r)
}

// Contains reads a signed checkpoint, and verifies no signature. The error is [checkpoint.ErrInconsistent] if the log does not contain the
// entries of the checkpoint. Contains compares the tree's hashes; [Verify] also compares the entries with the hashes.
func Contains(r Reader, signed []byte) (c checkpoint.Checkpoint, err error) {
	if c, err = checkpoint.Read(signed); err != nil {
		return c, err
	}
	now, err := TakeCheckpoint(r)
	if err != nil {
		return c, err
	}
	return c, c.Contained(now, r)
}

// Prove proves at a signed checkpoint that the log contains a run which has ended or is held. The error is [ErrNotFound] if there is no such
// run, and [ErrUnfinished] if it goes on.
func Prove(r Reader, run string, signed []byte) (*checkpoint.Proof, error) {
	c, err := Contains(r, signed)
	if err != nil {
		return nil, err
	}
	q, err := r.Request(run)
	if err != nil {
		return nil, err
	}
	if q.Ended == "" && q.State != states.Pending {
		return nil, fmt.Errorf("run %s is at %s: %w", run, q.State, ErrUnfinished)
	}
	var entries []checkpoint.Entry
	var last int64
	ended := false
	for e, err := range r.EntriesOf(run) {
		if err != nil {
			return nil, err
		}
		if e.Index >= c.Size {
			if ended {
				break // the outcome was delivered later
			}
			return nil, fmt.Errorf("the checkpoint has %d entries and does not cover entry %d, which is of the run: take a new checkpoint",
				c.Size, e.Index)
		}
		one := checkpoint.Entry{Leaf: e.Leaf()}
		if isRef(e.Events) {
			if one.Events, err = resolve(r, string(e.Events)); err != nil {
				return nil, err
			}
		}
		entries, last = append(entries, one), e.Index
		ended = ended || e.Type == RunEnded
	}
	return checkpoint.Prove(signed, r, last, entries)
}
