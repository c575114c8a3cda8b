package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/safefile"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func newLedgerPrune(f *ledgerFlags) *cobra.Command {
	var q ledger.PruneRequest
	var orderFile string
	var keys []string
	cmd := f.newManageCommand("prune", cobra.NoArgs, stores.ToChange,
		func(ctx context.Context, o *openedLedger, caller ledger.Caller, _ []string) (err error) {
			if q.Order, err = o.pruneOrder(ctx, q.Before, orderFile, keys); err != nil {
				return err
			}
			pruned, err := o.Prune(ctx, q, caller)
			if err != nil {
				return err
			}

			doc := struct {
				SchemaVersion int    `json:"schema_version"`
				Before        string `json:"before"`
				ledger.Pruned
			}{cli.SchemaVersion, q.Before, pruned}
			return f.printDocument(doc, func(out io.Writer, _ ink) {
				from := ""
				if q.Before != "" {
					from = " from before " + q.Before
				}
				fmt.Fprintf(out, "%s of %s%s removed\n", cli.Count(pruned.Entries, "entry", "entries"),
					cli.Count(pruned.Runs, "run"), from)
				if pruned.Kept > 0 {
					fmt.Fprintf(out, "Not removed, because they had not ended by then: %s\n", cli.Count(pruned.Kept, "run"))
				}
			})
		})

	checkFirst(cmd, func() (err error) {
		if q.Before == "" {
			return nil
		}
		q.Before, err = parseBefore(q.Before)
		return err
	})

	flags := cmd.Flags()
	flags.StringVar(&q.Before, "before", "", "a date, or a time in UTC")
	flags.StringVar(&orderFile, "order", "", "a `FILE` with a signed order (pgfsm ledger prune-order)")
	flags.StringArrayVar(&keys, "key", nil,
		"sign the order with the private key in this `FILE`; may be given again (default: checkpoints.key of the configuration)")
	flags.BoolVar(&q.Unstated, "unstated", false, "remove although ledger_retention is not set")
	cmd.MarkFlagsOneRequired("before", "order")
	cmd.MarkFlagsMutuallyExclusive("before", "order")

	return cmd
}

func parseBefore(text string) (string, error) {
	before, err := ledger.ParseTime(text)
	if err != nil {
		return "", fmt.Errorf("--before %w", err)
	}
	return before, nil
}

// pruneOrder returns the signed order of a prune: that of a file, or one that it signs now; nil if the
// log has no key.
func (o *openedLedger) pruneOrder(ctx context.Context, before, file string, keys []string) (signed []byte, err error) {
	if file != "" {
		return safefile.ReadTrusted(file)
	}
	err = o.View(ctx, func(r ledger.Reader) error {
		logKeys, err := ledger.Keys(r)
		isActive := func(k ledger.Key) bool { return k.Removed == "" }
		if err != nil || !slices.ContainsFunc(logKeys, isActive) || len(keys) == 0 && len(o.checkpoints.Keys) == 0 {
			return err
		}
		signed, err = o.signPruneOrder(r, ledger.PruneOrder{Kind: ledger.PruneRetention, Before: before}, keys)
		return err
	})
	return signed, err
}

func (o *openedLedger) signPruneOrder(r ledger.Reader, order ledger.PruneOrder, keys []string) (signed []byte, err error) {
	signers, err := o.readSigners(r, keys)
	if err != nil {
		return nil, err
	}
	if order.Origin, err = ledger.Origin(r); err != nil {
		return nil, err
	}
	return order.Sign(signers...)
}

func newLedgerPruneOrder(f *ledgerFlags) *cobra.Command {
	var keys, runs []string
	var before, out string
	cmd := f.newViewCommand("prune-order", cobra.NoArgs,
		func(_ context.Context, o *openedLedger, r ledger.Reader, _ []string) error {
			order := ledger.PruneOrder{Kind: ledger.PruneRetention, Before: before}
			if len(runs) > 0 {
				entries, _, err := ledger.ErasureOf(r, runs)
				if err != nil {
					return err
				}
				order = ledger.PruneOrder{Kind: ledger.PruneErasure, Entries: entries}
			}
			signed, err := o.signPruneOrder(r, order, keys)
			switch {
			case err != nil:
				return err
			case out == "":
				_, err = f.w.stdout.Write(signed)
				return err
			}
			return safefile.Write(out, signed, publicMode)
		})

	checkFirst(cmd, func() (err error) {
		switch {
		case before != "" && len(runs) > 0:
			return errors.New("give --before or --run")
		case before != "":
			before, err = parseBefore(before)
		}
		return err
	})

	flags := cmd.Flags()
	flags.StringVar(&before, "before", "", "order the removal of what is older: a date, or a time in UTC")
	flags.StringArrayVar(&runs, "run", nil, "order the erasure of this `NAME`, as of pgfsm ledger erase; may be given again")
	flags.StringArrayVar(&keys, "key", nil,
		"a `FILE` with a private key of the log; may be given again (default: checkpoints.key of the configuration)")
	flags.StringVarP(&out, "output", "o", "", "the `FILE` to write to (default: standard output)")
	cmd.MarkFlagsOneRequired("before", "run")

	return cmd
}
