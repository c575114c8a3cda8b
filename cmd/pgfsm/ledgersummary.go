package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func newLedgerSummary(w world, f *ledgerFlags) *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use:  "summary",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.use(w, stores.ToRead, func(o *openedLedger) error { return summary(cmd.Context(), w, o, since, f.json) })
		},
	}
	cmd.Flags().StringVar(&since, "since", present.DefaultPeriod, "runs that were requested since this `TIME`")
	return cmd
}

// summary prints what happened since a time.
func summary(ctx context.Context, w world, o *openedLedger, since string, asJSON bool) error {
	from, err := ledger.ParsePast(since, o.store.Now())
	if err != nil {
		return fmt.Errorf("--since %w", err)
	}
	var a ledger.Activity
	if err := o.View(ctx, func(r ledger.Reader) (err error) {
		a, err = ledger.ReadActivity(r, from, o.now())
		return err
	}); err != nil {
		return err
	}
	d := present.NewSummary(&a)
	if asJSON {
		return printJSON(w.stdout, d)
	}
	k := newInk(w)
	printFields(w, k, 14, []present.Row{{Name: "Runs", Value: d.Counted()}})
	for _, c := range d.Statuses {
		fmt.Fprintf(w.stdout, "%8d  %s\n", c.Runs, c.Status)
	}
	if len(d.Refusals) > 0 {
		fmt.Fprintln(w.stdout, k.bold("Refusals:"))
	}
	for _, c := range d.Refusals {
		fmt.Fprintf(w.stdout, "%8d  %s: %s\n", c.Runs, visible.Text(c.Code), visible.Text(c.Remedy))
	}
	printFields(w, k, 14, d.Approvals.Rows())
	if d.Active != nil {
		printFields(w, k, 14, d.Active.Rows())
	}
	return nil
}
