package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/stores"
)

func newLedgerStatus(w world, f *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use:  "status",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.use(w, stores.ToRead, func(o *openedLedger) error { return showReplicas(cmd.Context(), w, o, f.json) })
		},
	}
}

func showReplicas(ctx context.Context, w world, o *openedLedger, asJSON bool) error {
	last, err := checkpoint.Last(o.checkpoints.Dir)
	if err != nil {
		return err
	}
	p, err := ledger.ReadReplicas(ctx, o.store, o.store.Now())
	if err != nil {
		return err
	}
	d := present.NewReplicas(&p, last.Size)
	if asJSON {
		return printJSON(w.stdout, d)
	}
	k := newInk(w)
	printFields(w, k, 12, d.Rows())
	for _, r := range d.Replicas {
		fmt.Fprintf(w.stdout, "%s %s  since %s  %s  bundle %s  %s\n", k.bold("Replica:"), visible.Text(r.ID), visible.Text(r.Since),
			visible.Text(r.Build), visible.Text(r.Bundle.Short()), count(r.Runs, "run"))
	}
	if len(d.Replicas) == 0 {
		fmt.Fprintln(w.stderr, "No gateway runs on this ledger.")
	}
	if d.BundlesDiffer {
		fmt.Fprintln(w.stderr, "The replicas have different bundles: give each the same configuration, and restart those that have another.")
	}
	return nil
}
