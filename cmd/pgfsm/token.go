package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func newToken(w world) *cobra.Command {
	var f ledgerFlags
	cmd := group("token",
		newTokenCreate(w, &f), newTokenList(w, &f), newTokenRevoke(w, &f))
	f.register(cmd)
	return cmd
}

// defaultTokenLife is how long a token is valid without --expires.
const defaultTokenLife = "90d"

func newTokenCreate(w world, f *ledgerFlags) *cobra.Command {
	var role, name, life string
	cmd := &cobra.Command{
		Use:  "create --role ROLE --name NAME",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(ledger.Roles(), role) {
				return fmt.Errorf("--role %q: give one of %s", role, strings.Join(ledger.Roles(), ", "))
			}
			if _, err := ledger.ParseExpiry(life, time.Now()); err != nil {
				return fmt.Errorf("--expires %w", err)
			}
			return f.use(w, stores.ToWrite, func(o *openedLedger) error {
				expires, err := ledger.ParseExpiry(life, o.store.Now())
				if err != nil {
					return err
				}
				return createToken(cmd.Context(), w, o, name, role, expires, f.json)
			})
		},
	}
	cmd.Flags().StringVar(&role, "role", "", strings.Join(ledger.Roles(), ", "))
	cmd.Flags().StringVar(&name, "name", "", "the person or service that the token identifies")
	cmd.Flags().StringVar(&life, "expires", defaultTokenLife, "days or hours from now (90d, 12h), a date (2027-01-01, at its beginning in UTC), or never")
	mustFlags(cmd, "role", "name")
	return cmd
}

// notEmpty refuses flags that were given without a value, for example by an unset variable of a shell.
func notEmpty(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return fmt.Errorf("--%s is empty: give a value, or leave the flag out", name)
		}
	}
	return nil
}

func createToken(ctx context.Context, w world, o *openedLedger, name, role, expires string, asJSON bool) error {
	by, err := manager(ctx, w, o)
	if err != nil {
		return err
	}
	text, t, err := o.CreateToken(ctx, by, name, role, expires)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(w.stdout, struct {
			SchemaVersion int           `json:"schema_version"`
			Secret        string        `json:"secret"`
			Token         present.Token `json:"token"`
		}{schemaVersion, text, present.NewToken(&t, t.Created)})
	}
	shown := present.NewToken(&t, t.Created)
	fmt.Fprintf(w.stderr, "Created by %s: token %s of %s, %s, %s.\n", visible.Text(by.Name), t.ID, visible.Text(t.Name), t.Role, shown.Until())
	if by.TokenID == "" && !policy.HasSubject(by.Name) && role != ledger.RoleAdmin {
		fmt.Fprintln(w.stderr, "This ledger has no admin: every user who can write its file or database can create tokens.")
	}
	fmt.Fprintf(w.stderr, "The token follows. It is not stored and cannot be shown again; the caller sets it as %s.\n", tokenVariable)
	_, err = fmt.Fprintln(w.stdout, text)
	return err
}

func newTokenList(w world, f *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use:  "list",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.use(w, stores.ToRead, func(o *openedLedger) error {
				return o.View(cmd.Context(), func(r ledger.Reader) error { return listTokens(w, r, o.now(), f.json) })
			})
		},
	}
}

// listTokens needs no token: a user who can read the file can read the rows.
func listTokens(w world, r ledger.Reader, now string, asJSON bool) error {
	all, err := ledger.Tokens(r)
	if err != nil {
		return err
	}
	rows := make([]present.Token, 0, len(all))
	for i := range all {
		rows = append(rows, present.NewToken(&all[i], now))
	}
	if asJSON {
		return printJSON(w.stdout, struct {
			SchemaVersion int             `json:"schema_version"`
			Tokens        []present.Token `json:"tokens"`
		}{schemaVersion, rows})
	}
	k := newInk(w)
	for _, t := range rows {
		fmt.Fprintf(w.stdout, "%s %s  %-8s  %s  %s\n", k.mark(t.Active), visible.Text(t.ID), visible.Text(t.Role), visible.Text(t.Until()),
			visible.Text(t.Name))
	}
	if len(rows) == 0 {
		fmt.Fprintln(w.stderr, "There are no tokens yet; pgfsm token create makes one.")
	}
	return nil
}

func newTokenRevoke(w world, f *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use:  "revoke ID",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(w, stores.ToChange, func(o *openedLedger) error { return revokeToken(cmd.Context(), w, o, args[0], f.json) })
		},
	}
}

func revokeToken(ctx context.Context, w world, o *openedLedger, id string, asJSON bool) error {
	if strings.HasPrefix(id, "pgfsm_") {
		return errors.New("that is a whole token; name its ID alone, the part between the underscores, and keep the rest secret")
	}
	by, err := manager(ctx, w, o)
	if err != nil {
		return err
	}
	t, err := o.RevokeToken(ctx, by, id)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(w.stdout, struct {
			SchemaVersion int           `json:"schema_version"`
			Token         present.Token `json:"token"`
		}{schemaVersion, present.NewToken(&t, t.Revoked)})
	}
	fmt.Fprintf(w.stdout, "The token %s of %s (%s) is revoked.\n", visible.Text(t.ID), visible.Text(t.Name), visible.Text(t.Role))
	return nil
}
