package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/policy/visible"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func newLedger(w world) *cobra.Command {
	var f ledgerFlags
	cmd := &cobra.Command{
		Use:   "ledger",
		Short: "Show, verify and export the durable record",
		Long: `The ledger records every run as append-only events, each chained to the one before. The configuration names it
(ledger: "sqlite:pgfsm.db"), or --ledger.

All of these commands except prune only read, and can be used while runs are under way.`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f.register(cmd)
	cmd.AddCommand(newLedgerTail(w, &f), newLedgerShow(w, &f), newLedgerTrace(w, &f), newLedgerVerify(w, &f), newLedgerCheckpoint(w, &f),
		newLedgerExport(w, &f), newLedgerPrune(w, &f))
	return cmd
}

// reading opens the ledger to read only, does something with it, and closes it.
func (f *ledgerFlags) reading(w world, do func(*openedLedger) error) error {
	o, err := openLedger(w, f.config, f.ledger, stores.ToRead)
	if err != nil {
		return err
	}
	return closing(w, o, do(o))
}

// closing closes a ledger behind what was done with it. What was answered stays answered.
func closing(w world, o *openedLedger, err error) error {
	if late := o.Close(); late != nil {
		fmt.Fprintf(w.stderr, "pgfsm: warning: %s\n", visible.Lines(late.Error()))
	}
	return err
}

// view does something with one consistent state of the ledger.
func (f *ledgerFlags) view(ctx context.Context, w world, do func(ledger.Reader) error) error {
	return f.reading(w, func(o *openedLedger) error { return o.View(ctx, do) })
}

// noRun says that a run is not there.
func noRun(run string, err error) error {
	if errors.Is(err, ledger.ErrNotFound) {
		return fmt.Errorf("the ledger has no run %q; pgfsm ledger tail shows the last ones", run)
	}
	return err
}
