package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func newLedgerRebuild(w world, f *ledgerFlags) *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:  "rebuild",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			purpose := stores.ToChange
			if check {
				purpose = stores.ToRead
			}
			return f.use(w, purpose, func(o *openedLedger) error { return rebuild(cmd.Context(), w, o, check, f.json) })
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "only name the rows that differ")
	return cmd
}

func rebuild(ctx context.Context, w world, o *openedLedger, check, asJSON bool) (err error) {
	var different []ledger.Fault
	if check {
		err = o.View(ctx, func(r ledger.Reader) (err error) {
			different, err = ledger.Rebuild(ctx, r, nil)
			return err
		})
	} else {
		err = o.Update(ctx, func(tx ledger.Tx) (err error) {
			different, err = ledger.Rebuild(ctx, tx, tx)
			return err
		})
	}
	if err == nil {
		err = tellRebuilt(w, different, check, asJSON)
	}
	if err == nil && check && len(different) > 0 {
		err = exit(exitNo)
	}
	return err
}

func tellRebuilt(w world, different []ledger.Fault, check, asJSON bool) error {
	if asJSON {
		return printJSON(w.stdout, struct {
			SchemaVersion int            `json:"schema_version"`
			Rebuilt       bool           `json:"rebuilt"`
			Different     []ledger.Fault `json:"different"`
		}{schemaVersion, !check, different})
	}
	k := newInk(w)
	for _, f := range different {
		fmt.Fprintf(w.stdout, "%s %s %s: %s\n", k.mark(false), f.Table, visible.Clip(f.Key, maxTold), visible.Clip(f.What, 4*maxTold))
	}
	done := counted(len(different), "row replaced", "rows replaced")
	if check {
		done = counted(len(different), "row differs", "rows differ")
	}
	_, err := fmt.Fprintln(w.stdout, done)
	return err
}
