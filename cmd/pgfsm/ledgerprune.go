package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"pgfsm/policy"
	"pgfsm/policy/visible"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func newLedgerExport(w world, f *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "export",
		Short: "Write all events as JSON lines",
		Long: `export writes every event, oldest first, one a line, as canonical JSON with its whole payload. An event's hash is the
SHA-256 of its canonical JSON without the member "hash"; docs/reference/ledger-format.md has the details.`,
		Example: `  pgfsm ledger export > events.jsonl`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.view(cmd.Context(), w, func(r ledger.Reader) error {
				out := bufio.NewWriter(w.stdout)
				_, err := ledger.Export(r, forScreen(w.stdout, out))
				return errors.Join(err, out.Flush())
			})
		},
	}
}

func newLedgerPrune(w world, f *ledgerFlags) *cobra.Command {
	var before string
	cmd := &cobra.Command{
		Use:   "prune --before TIME",
		Short: "Remove old runs, and record the removal",
		Long: `prune removes the events from before a time with their runs, the oldest first. It stops at the first run that had not
ended by that time. It first adds the event ledger.pruned, with the number of events and the hash of the last one, so
that verify can still check the rest. TIME is a date (2027-01-31, which is midnight, UTC) or a time
(2027-01-31T12:00:00Z).

If the ledger has an active admin's token, only admins can prune, with their token in PGFSM_TOKEN. Otherwise every user
who can write the ledger's file can prune. The ledger records the user.

Export what you want to keep before you prune, and take a new checkpoint afterwards.`,
		Example: `  pgfsm ledger prune --before 2027-01-31`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := pruneTime(before)
			if err != nil {
				return err
			}
			return prune(cmd.Context(), w, f, at)
		},
	}
	cmd.Flags().StringVar(&before, "before", "", "a date, or a time in UTC")
	if err := cmd.MarkFlagRequired("before"); err != nil {
		panic(err)
	}
	return cmd
}

// pruneTime reads a date or a time.
func pruneTime(text string) (string, error) {
	const form = policy.TimeForm
	for _, layout := range []string{form, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.Format(form), nil
		}
	}
	return "", fmt.Errorf("--before %q: give a date such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z", text)
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

// printPruned prints what was removed, and which older events stay.
func printPruned(w world, before string, done *ledger.Pruned) error {
	fmt.Fprintf(w.stdout, "%d events of %d runs from before %s removed\n", done.Events, done.Runs, before)
	if done.Kept > 0 {
		ends := "which has not ended"
		if done.Ends != "" {
			ends = "which ended at " + done.Ends
		}
		fmt.Fprintf(w.stdout, "%d older events stay: they follow the beginning of the run %s, %s\n", done.Kept, visible.Text(done.Behind), ends)
	}
	if done.Events == 0 {
		return nil
	}
	_, err := fmt.Fprintln(w.stdout, "Checkpoints from before say nothing about what is left: take a new one (pgfsm ledger checkpoint)")
	return err
}
