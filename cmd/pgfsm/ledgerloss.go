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
		Use:   "continue-after-loss TO",
		Short: "Begin a new log after a log lost entries",
		Long: `continue-after-loss begins a new log in the empty ledger TO, if the ledger no longer contains a checkpoint that was signed:
it was restored from a backup, or its database failed over and lost entries. The first entry of the new log has a new
origin, and names the former log by the last checkpoint that it still contains and the checkpoint that it lost. Then
continue-after-loss closes the former ledger. It stays readable.

Nothing else moves, because the former ledger no longer knows which held calls were made and which tokens were revoked
after its last entry. Create new tokens and a new key, and let agents request held calls again. Counts of calls begin at
zero.

First look for a copy of the ledger that still contains the checkpoint (pgfsm ledger verify --checkpoint). Stop pgfsm serve.
Afterwards, name TO in the configuration, and another folder in checkpoints.dir.

If the former ledger has an active admin's token, only admins can do this, with their token in PGFSM_TOKEN.`,
		Example: `  pgfsm ledger continue-after-loss sqlite:pgfsm-2.db`,
		Args:    cobra.ExactArgs(1),
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
