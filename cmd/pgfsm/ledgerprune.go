package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func newLedgerExport(w world, f *ledgerFlags) *cobra.Command {
	var follow bool
	var since string
	cmd := &cobra.Command{
		Use:  "export",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at := ""
			if since != "" {
				var err error
				if at, err = ledger.ParseTime(since); err != nil {
					return fmt.Errorf("--since %w", err)
				}
			}
			return f.use(w, stores.ToRead, func(o *openedLedger) error { return export(cmd.Context(), w, o, at, follow) })
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "also write new entries as they are recorded")
	cmd.Flags().StringVar(&since, "since", "", "a date, or a time in UTC (default: the beginning)")
	return cmd
}

// export writes the entries from a time on, and then new ones if follow is set.
func export(ctx context.Context, w world, o *openedLedger, since string, follow bool) error {
	out := bufio.NewWriter(w.stdout)
	x := ledger.Exporter{To: forScreen(w.stdout, out)}
	if since != "" {
		err := o.View(ctx, func(r ledger.Reader) (err error) {
			x.Next, err = ledger.FirstAt(r, since)
			return err
		})
		if err != nil {
			return err
		}
	}
	err := ledger.Poll(ctx, ledger.PollInterval, func() (bool, error) {
		err := o.View(ctx, x.Export)
		return !follow, errors.Join(err, out.Flush())
	})
	if follow && ctx.Err() != nil {
		return nil // the user ended it
	}
	return err
}

func newLedgerPrune(w world, f *ledgerFlags) *cobra.Command {
	var before string
	cmd := &cobra.Command{
		Use:  "prune --before TIME",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := ledger.ParseTime(before)
			if err != nil {
				return fmt.Errorf("--before %w", err)
			}
			return prune(cmd.Context(), w, f, at)
		},
	}
	cmd.Flags().StringVar(&before, "before", "", "a date, or a time in UTC")
	mustFlags(cmd, "before")
	return cmd
}

func prune(ctx context.Context, w world, f *ledgerFlags, before string) error {
	var done ledger.Pruned
	err := f.use(w, stores.ToChange, func(o *openedLedger) error { // prune does not create a ledger
		by, err := manager(ctx, w, o)
		if err == nil {
			done, err = o.Prune(ctx, before, by)
		}
		return err
	})
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(w.stdout, struct {
			SchemaVersion int    `json:"schema_version"`
			Before        string `json:"before"`
			ledger.Pruned
		}{schemaVersion, before, done})
	}
	return printPruned(w, before, &done)
}

// printPruned prints what was removed, and how many older runs stay.
func printPruned(w world, before string, done *ledger.Pruned) error {
	fmt.Fprintf(w.stdout, "%s of %s from before %s removed\n", counted(int(done.Entries), "entry", "entries"), count(done.Runs, "run"), before)
	if done.Kept > 0 {
		fmt.Fprintf(w.stdout, "Not removed, because they had not ended by then: %s\n", count(done.Kept, "run"))
	}
	return nil
}
