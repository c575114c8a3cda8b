package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"pgfsm/traces/ledger/postgres"
	"pgfsm/traces/ledger/postgres/pgurl"
)

func newLedgerInit(w world, f *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use:  "init",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, _, err := namedLedger(w, f.config, f.ledger)
			if err != nil {
				return err
			}
			if !pgurl.Is(url) {
				return fmt.Errorf("a ledger in a file needs no init: give --ledger postgres://USER@HOST/DATABASE")
			}
			roles, err := postgres.Migrate(cmd.Context(), url)
			if err != nil {
				return err
			}
			fmt.Fprintln(w.stderr, "pgfsm: the tables are ready; run these statements with psql to make the roles:")
			_, err = io.WriteString(w.stdout, roles)
			return err
		},
	}
}
