package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/stores"
)

func newLedgerKey(w world, f *ledgerFlags) *cobra.Command {
	return group("key",
		newLedgerKeyNew(w, f), newLedgerKeyList(w, f), newLedgerKeyRemove(w, f))
}

func newLedgerKeyNew(w world, f *ledgerFlags) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:  "new -o FILE",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.use(w, stores.ToWrite, func(o *openedLedger) error { return newKey(cmd.Context(), w, o, out, f.json) })
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the new file for the private key")
	mustFlags(cmd, "output")
	return cmd
}

func newKey(ctx context.Context, w world, o *openedLedger, out string, asJSON bool) error {
	by, err := manager(ctx, w, o)
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
	return printKey(w, vkey, vkey, asJSON)
}

func newLedgerKeyList(w world, f *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use:  "list",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.view(cmd.Context(), w, func(r ledger.Reader) error { return listKeys(w, r, f.json) })
		},
	}
}

func listKeys(w world, r ledger.Reader, asJSON bool) error {
	keys, err := ledger.Keys(r)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(w.stdout, struct {
			SchemaVersion int          `json:"schema_version"`
			Keys          []ledger.Key `json:"keys"`
		}{schemaVersion, keys})
	}
	k := newInk(w)
	for _, key := range keys {
		until := "in use"
		if key.Removed != "" {
			until = "removed " + key.Removed
		}
		fmt.Fprintf(w.stdout, "%s %s  added %s  %s\n", k.mark(key.Removed == ""), key.Key, key.Added, until)
	}
	if len(keys) == 0 {
		fmt.Fprintln(w.stderr, "The log has no keys yet; pgfsm ledger key new makes one.")
	}
	return nil
}

func newLedgerKeyRemove(w world, f *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use:  "remove VERIFIER-KEY",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(w, stores.ToChange, func(o *openedLedger) error {
				return removeKey(cmd.Context(), w, o, args[0], f.json)
			})
		},
	}
}

func removeKey(ctx context.Context, w world, o *openedLedger, vkey string, asJSON bool) error {
	by, err := manager(ctx, w, o)
	if err != nil {
		return err
	}
	if err := o.RemoveKey(ctx, by, vkey); err != nil {
		return err
	}
	return printKey(w, vkey, "The key "+visible.Text(vkey)+" is removed.", asJSON)
}

// printKey prints a verifier key as JSON, or else a line.
func printKey(w world, vkey, line string, asJSON bool) error {
	if asJSON {
		return printJSON(w.stdout, struct {
			SchemaVersion int    `json:"schema_version"`
			Key           string `json:"key"`
		}{schemaVersion, vkey})
	}
	_, err := fmt.Fprintln(w.stdout, line)
	return err
}
