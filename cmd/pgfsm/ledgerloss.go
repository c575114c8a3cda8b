package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/internal/safefile"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
)

func newLedgerContinue(w world, f *ledgerFlags) *cobra.Command {
	var origin string
	var files []string
	cmd := &cobra.Command{
		Use:  "continue-after-loss TO",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, loaded, err := namedLedger(w, f.config, f.ledger)
			if err == nil && len(files) == 0 && loaded != nil && loaded.Checkpoints.Dir != "" {
				files, err = checkpoint.Files(loaded.Checkpoints.Dir)
			}
			if err != nil {
				return err
			}
			if len(files) == 0 {
				return errors.New("there is no checkpoint to compare the ledger with: name its files with --checkpoint")
			}
			signed := make([][]byte, len(files))
			for i, file := range files {
				if signed[i], _, err = safefile.Read(file); err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
			}
			if origin == "" {
				origin = "pgfsm-log-" + rand.Text()
			}
			return f.move(cmd.Context(), w, from, args[0], "A new log begins in %s, with %d entry. Name this ledger in the configuration, and another checkpoints.dir.\n",
				func(ctx context.Context, from, to ledger.Store, m ledger.Move) error {
					return ledger.ContinueAfterLoss(ctx, from, to, signed, origin, m)
				})
		},
	}
	cmd.Flags().StringArrayVar(&files, "checkpoint", nil, "a file with a signed checkpoint of the ledger; may be given again (default: all in checkpoints.dir)")
	cmd.Flags().StringVar(&origin, "origin", "", "the name of the new log (default: a random name)")
	return cmd
}
