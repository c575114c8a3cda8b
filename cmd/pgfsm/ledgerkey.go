package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/stores"
)

func newLedgerKey(f *ledgerFlags) *cobra.Command {
	return cli.Group("key", newLedgerKeyNew(f), newLedgerKeyList(f), newLedgerKeyRemove(f))
}

func newLedgerKeyNew(f *ledgerFlags) *cobra.Command {
	var out string
	cmd := f.command("new -o FILE", cobra.NoArgs, stores.ToWrite, func(ctx context.Context, o *openedLedger, _ []string) error {
		by, err := o.manager(ctx)
		if err != nil {
			return err
		}
		origin, err := o.Origin(ctx)
		if err != nil {
			return err
		}

		private, vkey, err := checkpoint.NewKey(origin)
		if err != nil {
			return err
		}
		if err := checkpoint.WriteKey(out, private); err != nil {
			return err
		}
		if err := o.AddKey(ctx, by, vkey); err != nil {
			return errors.Join(err, os.Remove(out))
		}
		return f.print(cli.Document("key", vkey), func(out io.Writer, _ ink) { fmt.Fprintln(out, vkey) })
	})
	cmd.Flags().StringVarP(&out, "output", "o", "", "the new file for the private key")
	cli.MustFlags(cmd, "output")
	return cmd
}

func newLedgerKeyList(f *ledgerFlags) *cobra.Command {
	return f.viewer("list", cobra.NoArgs, func(_ context.Context, _ *openedLedger, r ledger.Reader, _ []string) error {
		keys, err := ledger.Keys(r)
		if err != nil {
			return err
		}
		return f.print(cli.Document("keys", keys), func(out io.Writer, k ink) {
			for _, key := range keys {
				until := "in use"
				if key.Removed != "" {
					until = "removed " + key.Removed
				}
				fmt.Fprintf(out, "%s %s  added %s  %s\n", k.mark(key.Removed == ""), key.Key, key.Added, until)
			}
			if len(keys) == 0 {
				fmt.Fprintln(f.w.stderr, "The log has no keys yet; pgfsm ledger key new makes one.")
			}
		})
	})
}

func newLedgerKeyRemove(f *ledgerFlags) *cobra.Command {
	return f.command("remove VERIFIER-KEY", cobra.ExactArgs(1), stores.ToChange, func(ctx context.Context, o *openedLedger, args []string) error {
		by, err := o.manager(ctx)
		if err != nil {
			return err
		}
		if err := o.RemoveKey(ctx, by, args[0]); err != nil {
			return err
		}
		return f.print(cli.Document("key", args[0]), func(out io.Writer, _ ink) {
			fmt.Fprintf(out, "The key %s is removed.\n", visible.Text(args[0]))
		})
	})
}
