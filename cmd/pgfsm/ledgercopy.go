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
		Use:   "copy FROM TO",
		Short: "Move the log to another ledger, and close the old one",
		Long: `copy copies a whole ledger to an empty one: entries with their hashes, held calls, tokens, large values, and messages to
web hooks that wait. Then it closes FROM with the entry ledger.closed, and TO continues the same log. Checkpoints,
proofs and tokens stay valid. After that, every command that would write to FROM names TO and exits with 2; commands that
read still work.

Stop pgfsm serve first. If a gateway is running, or a process has a run under way, copy names them and changes nothing. If
copy fails, repeat it. copy closes FROM only when TO contains everything.

The entry ledger.closed names TO without user, password and parameters; of a file it has the name without folders.

A PostgreSQL database needs pgfsm ledger init first. Give the password in PGPASSWORD, because other users of the machine see
arguments.

If the ledger has an active admin's token, only admins can copy, with their token in PGFSM_TOKEN. Otherwise every user
who can write FROM can copy.`,
		Example: `  pgfsm ledger copy sqlite:pgfsm.db sqlite:/var/lib/pgfsm/pgfsm.db
  pgfsm ledger copy sqlite:pgfsm.db 'postgres://pgfsm_serve@db.example.com/pgfsm?sslmode=verify-full'`,
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
