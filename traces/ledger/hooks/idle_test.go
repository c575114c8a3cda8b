package hooks_test

import (
	"context"
	"iter"
	"testing"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/hooks"
	"pgfsm/traces/ledger/ledgertest"
)

// A counting store counts the entries that are read.
type counting struct {
	ledger.Store
	entries int
}

type countingReader struct {
	ledger.Reader
	store *counting
}

func (c *counting) View(ctx context.Context, do func(ledger.Reader) error) error {
	return c.Store.View(ctx, func(r ledger.Reader) error { return do(countingReader{r, c}) })
}

func (c countingReader) Entries(from int64) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for e, err := range c.Reader.Entries(from) {
			c.store.entries++
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestIdleHooksReadEntriesOnce: of entries that a hook is not told of, its sender reads each once, and stores no progress for a few.
func TestIdleHooksReadEntriesOnce(t *testing.T) {
	d, m := newFixture(t), newMailbox(t)
	store := &counting{Store: d.Store.Open()}
	s := d.senderOn(store, hooks.Options{Hooks: []hooks.Hook{hook(m, "decided")}})
	look(t, s)
	q := d.Hold(1) // nobody has decided
	look(t, s)
	read := store.entries
	if read == 0 {
		t.Fatal("no entry was read")
	}
	for range 3 {
		look(t, s)
	}
	if store.entries != read {
		t.Errorf("%d entries were read again", store.entries-read)
	}
	d.Cast(ledgertest.Ballot(q, d.Approver(ledgertest.Alice)))
	look(t, s)
	if got := m.kinds(); len(got) != 1 {
		t.Errorf("the hook was told %q, want the decision", got)
	}
}
