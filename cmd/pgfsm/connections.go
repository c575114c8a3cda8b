package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/safefile"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func newConnections(w world) *cobra.Command {
	f := &ledgerFlags{w: w}
	cmd := cli.Group("connections", newConnectionsList(f), newConnectionsRevoke(f), newConnectionsReseal(f))
	f.addFlags(cmd)
	return cmd
}

// newConnectionsList needs no token: a user who can read the file can read the rows. Nothing prints credentials.
func newConnectionsList(f *ledgerFlags) *cobra.Command {
	return f.newViewCommand("list", cobra.NoArgs, func(_ context.Context, _ *openedLedger, r ledger.Reader, _ []string) error {
		rows := []ledger.Connection{}
		for c, err := range r.Connections() {
			if err != nil {
				return err
			}
			rows = append(rows, c)
		}
		return f.printList(cli.Document("connections", rows), "connections", rows, len(rows), "Nobody has connected an account.")
	})
}

func newConnectionsRevoke(f *ledgerFlags) *cobra.Command {
	return f.newManageCommand("revoke PERSON [SERVER]", cobra.RangeArgs(1, 2), stores.ToChange,
		func(ctx context.Context, o *openedLedger, caller ledger.Caller, args []string) error {
			server := ""
			if len(args) > 1 {
				server = args[1]
			}
			ended, err := o.RevokeConnections(ctx, caller, args[0], server)
			if err != nil {
				return err
			}
			return f.printDocument(cli.Document("revoked", ended), templatePrinter("revoked", ended))
		})
}

func newConnectionsReseal(f *ledgerFlags) *cobra.Command {
	return f.newManageCommand("reseal", cobra.NoArgs, stores.ToChange,
		func(ctx context.Context, o *openedLedger, caller ledger.Caller, _ []string) error {
			var keys ledger.SealKeys
			if o.loaded != nil {
				read, _, err := o.loaded.ResolveConnections(f.w.getenv, safefile.ReadTrusted)
				if err != nil {
					return err
				}
				keys = read
			}
			n, err := o.ResealConnections(ctx, caller, keys)
			if err != nil {
				return err
			}
			return f.printDocument(cli.Document("resealed", n),
				linePrinter("%s connections are sealed anew; all are sealed with the first key of connections.keys.\n", strconv.Itoa(n)))
		})
}
