package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/internal/config"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func newLedgerCopy(w world, f *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use:  "copy FROM TO",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.move(cmd.Context(), w, args[0], args[1], "The log goes on in %s, with %d entries. Name this ledger in the configuration of every gateway.\n", ledger.Copy)
		},
	}
}

// move opens two ledgers and calls do, which closes the first and begins or continues the second. Then it prints the second one's state.
func (f *ledgerFlags) move(ctx context.Context, w world, from, to, line string,
	do func(ctx context.Context, from, to ledger.Store, m ledger.Move) error,
) (err error) {
	var both [2]openedLedger
	defer func() {
		for i := range both {
			if both[i].store != nil {
				err = closing(w, &both[i], err)
			}
		}
	}()
	for i, purpose := range []stores.Purpose{stores.ToChange, stores.ToWrite} {
		url := []string{from, to}[i]
		if err := config.CheckLedger(url); err != nil {
			return fmt.Errorf("%s %w", []string{"the old ledger's URL", "the new ledger's URL"}[i], err) // it may contain a password
		}
		if both[i].store, err = stores.Open(url, purpose); err != nil {
			return err
		}
	}
	by, err := manager(ctx, w, &both[0])
	if err == nil {
		err = do(ctx, both[0].store, both[1].store, ledger.Move{Target: stores.Name(to), By: by})
	}
	if err != nil {
		return orRefused(w, f.json, err)
	}
	return both[1].View(ctx, func(r ledger.Reader) error {
		now, err := ledger.TakeCheckpoint(r)
		if err != nil {
			return err
		}
		if f.json {
			return printJSON(w.stdout, struct {
				SchemaVersion int    `json:"schema_version"`
				Origin        string `json:"origin"`
				Size          int64  `json:"size"`
				Target        string `json:"target"`
			}{schemaVersion, now.Origin, now.Size, stores.Name(to)})
		}
		_, err = fmt.Fprintf(w.stdout, line, visible.Text(stores.Name(to)), now.Size)
		return err
	})
}
