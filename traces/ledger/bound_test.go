package ledger_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// bound returns what people are shown of a run.
func (c *fixture) bound(run string) (b ledger.Bound, err error) {
	err = c.View(context.Background(), func(r ledger.Reader) (err error) {
		b, err = ledger.BoundOf(r, traces.NewReplayer(c.Machine, nil), run)
		return err
	})
	return b, err
}

// What people see is what is bound, also when it is decided, or its time is over.
func TestBound(t *testing.T) {
	c := newFixture(t)
	q := c.Hold(2)
	look := func() ledger.Bound {
		t.Helper()
		b, err := c.bound(q.RunID)
		if err != nil {
			t.Fatalf("BoundOf() = %v", err)
		}
		if digest := canonical.Sum("approval binding", canonical.MustSorted(b.Held.Bound)); b.Held.Binding != q.Binding || digest != q.Binding {
			t.Errorf("the binding is %s, that of what is shown %s, want %s", b.Held.Binding, digest, q.Binding)
		}
		if string(b.Args) != `{"policy_id":"policy-002"}` || b.Held.Bound.Actor != carol || b.Assessed.Quorum != 2 {
			t.Errorf("BoundOf() = %+v", b)
		}
		if canonical.Sum("tool definition", b.Definition) != q.Definition || !strings.Contains(string(b.Definition), "Fetch one policy by id.") {
			t.Errorf("the definition is %s, whose digest is not %s", b.Definition, q.Definition)
		}
		return b
	}
	if b := look(); b.Row.Status != ledger.Pending || len(b.Votes) != 0 {
		t.Errorf("BoundOf() = %+v", b)
	}
	c.Cast(ledgertest.Ballot(q, c.Approver(alice)))
	c.Cast(ledgertest.Ballot(q, c.Approver(bob)))
	c.Clock.Add(2 * time.Hour)
	want := []policy.Vote{statestest.Vote(policy.VoteApprove, alice, stamp(0)), statestest.Vote(policy.VoteApprove, bob, stamp(0))}
	for i := range want {
		want[i].Binding = q.Binding
	}
	if b := look(); b.Row.Status != ledger.Approved || !cmp.Equal(b.Votes, want) {
		t.Errorf("BoundOf() = %+v, want the votes %+v", b, want)
	}
}

func TestBoundOfNothing(t *testing.T) {
	c := newFixture(t)
	if _, err := c.bound(statestest.RunID); !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("BoundOf() = %v, want %s", err, ledger.RefusedUnknown)
	}
	content := ledgertest.Holding(1)
	content.Policy = nil
	if _, err := c.bound(c.Ask(carol, content).RunID); !errors.Is(err, ledger.ErrNotHeld) {
		t.Errorf("BoundOf() = %v, want %s", err, ledger.RefusedNotHeld)
	}
}

// A row that is not what the record binds is not shown.
func TestBoundTampered(t *testing.T) {
	other := canonical.Sum("other", nil)
	for _, tt := range []struct {
		name   string
		change func(*ledger.RunRow)
	}{
		{"actor", func(q *ledger.RunRow) { q.Actor = bob }},
		{"server", func(q *ledger.RunRow) { q.Server = "another" }},
		{"tool", func(q *ledger.RunRow) { q.Tool = statestest.Delete }},
		{"arguments", func(q *ledger.RunRow) { q.Arguments = other }},
		{"definition", func(q *ledger.RunRow) { q.Definition = other }},
		{"bundle", func(q *ledger.RunRow) { q.Bundle = other }},
		{"binding", func(q *ledger.RunRow) { q.Binding = other }},
		{"expires", func(q *ledger.RunRow) { q.Expires = stamp(24 * time.Hour) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newFixture(t)
			q := c.Hold(1)
			tt.change(&q)
			check.NoError(t, c.Store.Update(context.Background(), func(tx ledger.Tx) error { return ledgertest.ReplaceRun(tx, q) }))
			if b, err := c.bound(q.RunID); !errors.Is(err, traces.ErrTampered) {
				t.Errorf("BoundOf() = %+v, %v, want %v", b, err, traces.ErrTampered)
			}
		})
	}
}
