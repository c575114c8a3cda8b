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
		Use:   "init",
		Short: "Prepare a PostgreSQL database for a ledger, or for this version of pgfsm",
		Long: `init makes the tables of a ledger in a PostgreSQL database, or changes them to those of this version of pgfsm. It then prints
the SQL statements that make the roles pgfsm_serve, pgfsm_prune and pgfsm_migrate; an administrator runs them with psql after
each init. pgfsm_serve can add entries, and cannot change or delete them.

The first init needs a role that may create tables in the database; later, pgfsm_migrate may. The tables are made in the
first schema of this role's search_path.

Connect to the server directly, not through a pooler. pgfsm serve never changes tables: it refuses a database of another
version. A ledger in an SQLite file needs no init.`,
		Example: `  pgfsm ledger init --ledger 'postgres://postgres@db.example.com/pgfsm?sslmode=verify-full' > roles.sql
  pgfsm ledger init --ledger 'postgres://pgfsm_migrate@db.example.com/pgfsm?sslmode=verify-full' > roles.sql`,
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
