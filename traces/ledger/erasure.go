package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"

	"pgfsm/internal/canonical"
)

// An ErasureReason says why something was erased. It is one of few words, so that it names nobody.
type ErasureReason string

// ErasureReasons returns the reasons: those of the GDPR, article 17(1), and a mistake.
func ErasureReasons() []ErasureReason {
	return []ErasureReason{"not_needed", "consent", "objection", "unlawful", "obligation", "mistake"}
}

// checkFor returns an error unless an erasure has a reason, and another prune has none.
func (r ErasureReason) checkFor(kind PruneKind) error {
	switch {
	case kind != PruneErasure && r == "", kind == PruneErasure && slices.Contains(ErasureReasons(), r):
		return nil
	case r == "":
		return fmt.Errorf("%w: it is an erasure, which needs a reason: pgfsm ledger erase takes one", ErrPruneOrder)
	}
	return fmt.Errorf("%w: %q is no reason of a prune of the kind %s", ErrPruneOrder, string(r), kind)
}

// An Erasure is one line of a list of erasures outside the ledger. With it, what was erased is erased again in a
// ledger that was restored from a copy. It names entries by index and hash, and no person and no run.
type Erasure struct {
	Hash   string        `json:"hash"`  // over the hashes of the entries
	Order  string        `json:"order"` // the signed [PruneOrder]
	Reason ErasureReason `json:"reason"`
}

// NewErasure returns the line of an erasure, before it is made.
func NewErasure(r Reader, order []byte, reason ErasureReason) (*Erasure, error) {
	e := &Erasure{Order: string(order), Reason: reason}
	ranges, err := e.ranges(r)
	if err != nil {
		return nil, err
	}
	e.Hash, err = hashRanges(r, ranges)
	return e, err
}

// ReadErasure reads a line.
func ReadErasure(line []byte) (*Erasure, error) {
	e := new(Erasure)
	return e, canonical.Unmarshal(line, e)
}

// Line returns the line, with its end.
func (e *Erasure) Line() []byte {
	return append(bytes.Clone(canonical.MustSorted(e)), '\n')
}

// ranges returns the entries that the order names. The keys of the log must have signed it.
func (e *Erasure) ranges(r Reader) ([]Range, error) {
	q := PruneRequest{Order: []byte(e.Order)}
	order, err := q.order(r)
	if err != nil {
		return nil, err
	}
	if order.Kind != PruneErasure {
		return nil, fmt.Errorf("%w: it orders no erasure", ErrPruneOrder)
	}
	return order.Entries, nil
}

// CountErased returns how many runs were erased.
func CountErased(r Reader) (runs int, err error) {
	prunes, err := eventsOfTypes(r, LedgerPruned)
	for i := range prunes {
		if p := prunes[i].payload.(*ledgerPruned); p.Kind == PruneErasure {
			runs += p.Runs
		}
	}
	return runs, err
}

// RunsOfOrder returns the runs that a signed order of an erasure names and that are still there.
func RunsOfOrder(r Reader, order []byte) (runs []string, err error) {
	ranges, err := (&Erasure{Order: string(order)}).ranges(r)
	if err != nil {
		return nil, err
	}
	for q, err := range r.Runs(Filter{}) {
		if err != nil {
			return nil, err
		}
		if containsIndex(ranges, q.First) {
			runs = append(runs, q.RunID)
		}
	}
	return runs, nil
}

// An ErasureState says what a list of erasures means for a ledger.
type ErasureState int

// The states.
const (
	ErasureElsewhere ErasureState = iota // the ledger does not have these entries: it is another copy of the log
	ErasureDue                           // the entries are to be erased
	ErasureDone                          // they are erased
)

// State compares the line with a ledger.
func (e *Erasure) State(r Reader) (ErasureState, error) {
	ranges, err := e.ranges(r)
	if err != nil {
		return ErasureElsewhere, err
	}
	end, err := r.End()
	if err != nil || ranges[len(ranges)-1].Last >= end.Size {
		return ErasureElsewhere, err
	}
	hash, err := hashRanges(r, ranges)
	if err != nil || hash != e.Hash {
		return ErasureElsewhere, err
	}
	for _, part := range ranges {
		for entry, err := range r.Entries(part.First) {
			switch {
			case err != nil:
				return ErasureElsewhere, err
			case entry.Index <= part.Last && !entry.Pruned():
				return ErasureDue, nil
			}
			if entry.Index >= part.Last {
				break
			}
		}
	}
	return ErasureDone, nil
}

// hashRanges returns the hash over the leaf hashes of entries. They stay when the bodies go.
func hashRanges(r Reader, ranges []Range) (string, error) {
	var all bytes.Buffer
	for _, part := range ranges {
		for index := part.First; index <= part.Last; index++ {
			h, err := leafHash(r, index)
			if err != nil {
				return "", err
			}
			all.Write(h[:])
		}
	}
	sum := sha256.Sum256(all.Bytes())
	return base64.StdEncoding.EncodeToString(sum[:]), nil
}
