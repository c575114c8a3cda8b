package ledger

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"pgfsm/traces/ledger/checkpoint"
)

// A PruneKind says why a prune removes bodies.
type PruneKind string

// The kinds.
const (
	PruneRetention PruneKind = "retention" // what is older than a time
	PruneErasure   PruneKind = "erasure"   // some entries, whatever their age
)

// ErrPruneOrder means that a prune needs an order that the owner of the log's key has signed, or that
// the order does not fit.
var ErrPruneOrder = errors.New("the prune is not ordered by the owner of the log's key")

// A PruneOrder says what a prune may remove. The owner of the log's key signs it. So who can write
// the tables, and has no key, cannot remove anything that a checkpoint covers without being found
// out.
type PruneOrder struct {
	Origin  string // the name of the log
	Kind    PruneKind
	Before  string  // for a retention: what was added before this time, in the ledger's form
	Entries []Range // for an erasure: in order
}

// orderHeading is the first line of an order.
const orderHeading = "pgfsm prune order v1"

// Sign returns the order as a signed note (c2sp.org/signed-note).
func (o *PruneOrder) Sign(signers ...note.Signer) ([]byte, error) {
	subject := o.Before
	if o.Kind == PruneErasure {
		subject = formatRanges(o.Entries)
	}
	text := strings.Join([]string{orderHeading, o.Origin, string(o.Kind), subject, ""}, "\n")
	if _, err := parsePruneOrder(text); err != nil {
		return nil, err
	}
	return note.Sign(&note.Note{Text: text}, signers...)
}

// activeVerifiers returns the keys of the log that were not removed.
func activeVerifiers(keys []Key) (verifiers []note.Verifier, err error) {
	for i := range keys {
		if keys[i].Removed != "" {
			continue
		}
		v, err := note.NewVerifier(keys[i].Key)
		if err != nil {
			return nil, err
		}
		verifiers = append(verifiers, v)
	}
	return verifiers, nil
}

// openPruneOrder reads an order that one of the keys has signed.
func openPruneOrder(signed []byte, verifiers []note.Verifier, origin string) (*PruneOrder, error) {
	text, err := checkpoint.OpenNote(signed, verifiers)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPruneOrder, err)
	}
	order, err := parsePruneOrder(text)
	switch {
	case err != nil:
		return nil, err
	case order.Origin != origin:
		return nil, fmt.Errorf("%w: the order is of the log %s, and this log is %s", ErrPruneOrder, order.Origin, origin)
	}
	return order, nil
}

// parsePruneOrder reads the text of an order, which has one form.
func parsePruneOrder(text string) (*PruneOrder, error) {
	malformed := fmt.Errorf("%w: it has not the lines %q, origin, kind, and a time or ranges", ErrPruneOrder, orderHeading)
	lines := strings.Split(text, "\n")
	if len(lines) != 5 || lines[0] != orderHeading || lines[1] == "" || lines[4] != "" {
		return nil, malformed
	}
	o := &PruneOrder{Origin: lines[1], Kind: PruneKind(lines[2])}
	switch o.Kind {
	case PruneRetention:
		if t, err := time.Parse(timeForm, lines[3]); err != nil || t.Format(timeForm) != lines[3] {
			return nil, malformed
		}
		o.Before = lines[3]
	case PruneErasure:
		var err error
		if o.Entries, err = parseRanges(lines[3]); err != nil {
			return nil, malformed
		}
	default:
		return nil, malformed
	}
	return o, nil
}

// formatRanges writes ranges as "5-9,12-12".
func formatRanges(ranges []Range) string {
	parts := make([]string, len(ranges))
	for i, r := range ranges {
		parts[i] = fmt.Sprintf("%d-%d", r.First, r.Last)
	}
	return strings.Join(parts, ",")
}

// parseRanges reads ranges in the one form that formatRanges writes: in order, and not adjacent.
func parseRanges(text string) (ranges []Range, err error) {
	next := int64(0)
	for part := range strings.SplitSeq(text, ",") {
		first, last, _ := strings.Cut(part, "-")
		var r Range
		if r.First, err = strconv.ParseInt(first, 10, 64); err != nil {
			return nil, err
		}
		if r.Last, err = strconv.ParseInt(last, 10, 64); err != nil {
			return nil, err
		}
		if r.First < next || r.Last < r.First {
			return nil, errors.New("the ranges are not in order")
		}
		ranges, next = append(ranges, r), r.Last+2
	}
	if formatRanges(ranges) != text {
		return nil, errors.New("the ranges are not in their one form")
	}
	return ranges, nil
}

// allows returns an error unless the order allows a prune.
func (o *PruneOrder) allows(p *ledgerPruned) error {
	if o.Kind != p.Kind || o.Before != p.Before {
		return fmt.Errorf("%w: it orders another prune", ErrPruneOrder)
	}
	if o.Kind == PruneRetention {
		return nil
	}
	for _, r := range p.Entries {
		for index := r.First; index <= r.Last; index++ {
			if !containsIndex(o.Entries, index) {
				return fmt.Errorf("%w: it does not name entry %d", ErrPruneOrder, index)
			}
		}
	}
	return nil
}
