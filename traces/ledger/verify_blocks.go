package ledger

import (
	"cmp"
	"fmt"
	"slices"

	"pgfsm/internal/visible"
	"pgfsm/policy"
)

// A blockHistory maps the name of each subject to the events about its blocks.
type blockHistory map[string][]decodedEvent

// addEvent adds an event. The events of one type must be added in order.
func (h *blockHistory) addEvent(e decodedEvent) {
	if *h == nil {
		*h = make(blockHistory)
	}
	issuer, subject, _ := subjectOf(e.payload)
	name := policy.SubjectName(issuer, subject)
	(*h)[name] = append((*h)[name], e)
}

// blockedAt reports whether a subject was blocked when an entry was added.
func (h blockHistory) blockedAt(name string, entry int64) (blocked bool) {
	last := int64(-1)
	for _, e := range h[name] {
		if e.event.Index < entry && e.event.Index > last {
			_, _, ends := subjectOf(e.payload)
			last, blocked = e.event.Index, !ends
		}
	}
	return blocked
}

// checkNotBlocked returns an error if one of some actors was blocked when an entry was added.
func (v *verifier) checkNotBlocked(entry int64, names ...string) error {
	for _, name := range names {
		if v.blocks.blockedAt(name, entry) {
			return fmt.Errorf("%s was blocked then", visible.Clip(name, maxIssuer))
		}
	}
	return nil
}

// checkBlocks computes all blocks from their events, and compares them with their rows.
func (v *verifier) checkBlocks() error {
	var events []decodedEvent
	for _, history := range v.blocks { // the order does not matter, because they are sorted below
		events = append(events, history...)
	}
	slices.SortFunc(events, func(a, b decodedEvent) int { return cmp.Compare(a.event.Index, b.event.Index) })
	want, err := blocksAfter(events)
	if err != nil {
		return err
	}
	return compareBlocks(v.r, want, func(name, what string) error { return newFault("blocks", name, what) })
}
