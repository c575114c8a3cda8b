package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pgfsm/internal/config"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func newIdentity(w world) *cobra.Command {
	var f ledgerFlags
	cmd := group("identity",
		newIdentityBlock(w, &f), newIdentityUnblock(w, &f), newIdentityList(w, &f))
	f.register(cmd)
	return cmd
}

func newIdentityBlock(w world, f *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use:  "block ISSUER SUBJECT",
		Args: cobra.ExactArgs(2),
		RunE: changeIdentity(w, f, stores.ToWrite, "blocked", func(o *openedLedger, ctx context.Context, by ledger.Caller, issuer, subject string) error {
			if err := knownIssuer(o.loaded, issuer); err != nil {
				return err
			}
			return o.BlockIdentity(ctx, by, issuer, subject)
		}),
	}
}

// knownIssuer refuses an issuer that the configuration does not name: a block of its subjects would have no effect on tokens.
func knownIssuer(c *config.Loaded, issuer string) error {
	if c == nil {
		return nil
	}
	var known []string
	for i := range c.Identity.Issuers {
		known = append(known, c.Identity.Issuers[i].URL)
	}
	if slices.Contains(known, issuer) {
		return nil
	}
	return &ledger.Refusal{Code: ledger.RefusedBlock, Message: fmt.Sprintf("%s is no issuer of the configuration, which names %s", issuer,
		cmp.Or(strings.Join(known, ", "), "none"))}
}

func newIdentityUnblock(w world, f *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use:  "unblock ISSUER SUBJECT",
		Args: cobra.ExactArgs(2),
		RunE: changeIdentity(w, f, stores.ToChange, "unblocked", (*openedLedger).UnblockIdentity),
	}
}

// changeIdentity makes a change to a subject and prints it.
func changeIdentity(w world, f *ledgerFlags, purpose stores.Purpose, what string,
	change func(o *openedLedger, ctx context.Context, by ledger.Caller, issuer, subject string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return f.use(w, purpose, func(o *openedLedger) error {
			by, err := manager(cmd.Context(), w, o)
			if err != nil {
				return err
			}
			if err := change(o, cmd.Context(), by, args[0], args[1]); err != nil {
				return err
			}
			name := policy.SubjectName(args[0], args[1])
			if f.json {
				return printJSON(w.stdout, struct {
					SchemaVersion int    `json:"schema_version"`
					Change        string `json:"change"`
					Name          string `json:"name"`
				}{schemaVersion, what, name})
			}
			_, err = fmt.Fprintf(w.stdout, "%s is %s.\n", visible.Text(name), what)
			return err
		})
	}
}

func newIdentityList(w world, f *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use:  "list",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.use(w, stores.ToRead, func(o *openedLedger) error { return listBlocks(cmd.Context(), w, o, f.json) })
		},
	}
}

// listBlocks needs no token: a user who can read the file can read the rows.
func listBlocks(ctx context.Context, w world, o *openedLedger, asJSON bool) error {
	type block struct {
		Name  string `json:"name"`
		Since string `json:"since"`
		By    string `json:"by"`
	}
	rows := []block{}
	err := o.View(ctx, func(r ledger.Reader) error {
		for b, err := range r.Blocks() {
			if err != nil {
				return err
			}
			rows = append(rows, block{b.Name, b.Since, b.By})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(w.stdout, struct {
			SchemaVersion int     `json:"schema_version"`
			Blocked       []block `json:"blocked"`
		}{schemaVersion, rows})
	}
	for _, b := range rows {
		fmt.Fprintf(w.stdout, "%s  since %s by %s\n", visible.Text(b.Name), b.Since, visible.Text(b.By))
	}
	if len(rows) == 0 {
		fmt.Fprintln(w.stderr, "Nobody is blocked.")
	}
	return nil
}
