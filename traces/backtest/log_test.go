package backtest_test

import (
	"context"
	"errors"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/policy/rules"
	"pgfsm/policy/ruling"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/backtest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// TestCompareLog: calls of a log are compared as their traces are; what did not come as far as the
// policy is left out; a caller can stop it.
func TestCompareLog(t *testing.T) {
	l := ledgertest.New(t)
	held := l.Hold(2)
	refused := statestest.Content()
	refused.Allowlist = nil
	l.Ask(ledgertest.Carol, refused)
	replayer := traces.NewReplayer(statestest.MustMachine(t), nil)
	old := ledgertest.Holding(2).Policy
	draft, err := backtest.ReadDraft("version: 1\npolicies:\n  - {id: none, effect: allow}\n")
	check.NoError(t, err)
	c := &backtest.Comparer{Old: ruling.NewJudge(old, nil), New: ruling.NewJudge(draft, nil), Replayer: replayer}
	got, err := c.CompareLog(t.Context(), l, "", backtest.ForDraft)
	if err != nil || got.Traces != 1 || got.Judged != 1 || got.Partial || got.Since != held.At || len(got.Changed) != 1 {
		t.Fatalf("CompareLog() = %+v, %v", got, err)
	}
	if c := got.Changed[0]; c.RunID != held.RunID || c.Old != rules.Pending || c.New != rules.Allow || c.By != "none" || !got.HasChange([]string{"newly-allowed"}) {
		t.Errorf("the change is %+v", c)
	}
	later, err := c.CompareLog(t.Context(), l, "9999-01-01T00:00:00.000Z", backtest.ForDraft)
	if err != nil || later.Traces != 0 || later.Partial {
		t.Errorf("CompareLog() of a period without requests = %+v, %v: a held call belongs to the period in which it was requested", later, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	views := 0
	_, err = c.CompareLog(ctx, viewer(func(ctx context.Context, do func(ledger.Reader) error) error {
		if views++; views == 2 { // the first reads which calls there are
			stop()
		}
		return l.View(context.WithoutCancel(ctx), do)
	}), "", backtest.ForDraft)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("CompareLog() = %v after its caller has left", err)
	}
}

type viewer func(context.Context, func(ledger.Reader) error) error

func (v viewer) View(ctx context.Context, do func(ledger.Reader) error) error { return v(ctx, do) }
