package ledger

import (
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/states"
	"pgfsm/traces/ledger/checkpoint"
)

// TakeCheckpoint returns the checkpoint of the log as it is now.
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

// Contains parses a signed checkpoint; it verifies no signature. The error is
// [checkpoint.ErrInconsistent] if the log does not contain the entries of the checkpoint. Contains
// compares the tree's hashes; [Verify] also compares the entries with the hashes.
func Contains(r Reader, signed []byte) (c checkpoint.Checkpoint, err error) {
	if c, err = checkpoint.Read(signed); err != nil {
		return c, err
	}
	current, err := TakeCheckpoint(r)
	if err != nil {
		return c, err
	}
	return c, c.Contained(current, r)
}

// Prove proves with a signed checkpoint that the log contains a run that has ended or is held. The
// error is [ErrNotFound] if there is no such run, and [ErrUnfinished] if the run is under way.
func Prove(r Reader, run string, signed []byte) (*checkpoint.Proof, error) {
	c, err := Contains(r, signed)
	if err != nil {
		return nil, err
	}
	q, err := r.Run(run)
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
		events, err := e.ReadEvents()
		if err != nil {
			return nil, err
		}
		entries, last = append(entries, checkpoint.Entry{Header: e.Leaf(), Body: e.Body}), e.Index
		ended = ended || events[len(events)-1].Type == RunEnded
	}

	return checkpoint.Prove(signed, r, last, entries)
}

// An Inclusion says where the entries of a run are in the log. It has the hashes that lead from the
// last of these entries to the root of the tree. Each entry has the hash of the entry before, so
// the last entry stands for all of them. Every member is always present.
type Inclusion struct {
	SchemaVersion int        `json:"schema_version"`
	Run           string     `json:"run"`
	Origin        string     `json:"origin"` // the name of the log
	Size          int64      `json:"size"`   // the size of the tree: how many entries the log has
	Root          tlog.Hash  `json:"root"`   // the root of the tree
	Index         int64      `json:"index"`  // the index of the run's last entry
	Entries       []LeafHash `json:"entries"`
	// The inclusion proof of the last entry (RFC 6962), from its leaf to the root.
	Path tlog.RecordProof `json:"path"`
}

// A LeafHash is the hash of an entry in the tree.
type LeafHash struct {
	Index int64     `json:"index"`
	Hash  tlog.Hash `json:"hash"`
}

// InclusionOf returns the inclusion of a run in the log as it is now. It proves nothing without a
// signed checkpoint: see [Prove].
func InclusionOf(r Reader, run string) (in Inclusion, err error) {
	c, err := TakeCheckpoint(r)
	if err != nil {
		return in, err
	}

	in = Inclusion{
		SchemaVersion: documentVersion,
		Run:           run,
		Origin:        c.Origin,
		Size:          c.Size,
		Root:          c.Root,
	}

	for e, err := range r.EntriesOf(run) {
		if err != nil {
			return in, err
		}
		hash, err := leafHash(r, e.Index)
		if err != nil {
			return in, err
		}
		in.Entries, in.Index = append(in.Entries, LeafHash{e.Index, hash}), e.Index
	}

	if len(in.Entries) == 0 {
		return in, fmt.Errorf("run %s: %w", run, ErrNotFound)
	}

	in.Path, err = tlog.ProveRecord(in.Size, in.Index, r)
	return in, err
}

// A TreeHead is the state of the log, and the proof that it contains its first entries (RFC 6962, section
// 2.1.2). Nobody has signed it.
type TreeHead struct {
	SchemaVersion int            `json:"schema_version"`
	Origin        string         `json:"origin"`
	Size          int64          `json:"size"`
	Root          tlog.Hash      `json:"root"`
	From          int64          `json:"from"` // how many first entries the proof is of
	Hashes        tlog.TreeProof `json:"hashes"`
}

// ErrFrom means that the log has fewer entries than the proof is wanted of.
var ErrFrom = errors.New("the log has fewer entries")

// ReadTreeHead returns the state of the log, with the proof that it contains the first entries.
func ReadTreeHead(r Reader, from int64) (head TreeHead, err error) {
	c, err := TakeCheckpoint(r)
	if err != nil {
		return head, err
	}
	if from > c.Size {
		return head, ErrFrom
	}
	head = TreeHead{SchemaVersion: documentVersion, Origin: c.Origin, Size: c.Size, Root: c.Root, From: from, Hashes: tlog.TreeProof{}}
	hashes, err := checkpoint.ProveGrowth(c.Size, from, r)
	head.Hashes = append(head.Hashes, hashes...)
	return head, err
}
