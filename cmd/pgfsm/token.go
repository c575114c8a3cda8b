package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func newToken(w world) *cobra.Command {
	f := &ledgerFlags{w: w}
	cmd := cli.Group("token", newTokenCreate(f), newTokenList(f), newTokenRevoke(f))
	f.register(cmd)
	return cmd
}

// defaultTokenLife is the validity of a token without --expires.
const defaultTokenLife = "90d"

func newTokenCreate(f *ledgerFlags) *cobra.Command {
	var role, name, life string
	cmd := f.command("create --role ROLE --name NAME", cobra.NoArgs, stores.ToWrite, func(ctx context.Context, o *openedLedger, _ []string) error {
		expires, err := ledger.ParseExpiry(life, o.store.Now())
		if err != nil {
			return err
		}
		by, err := o.manager(ctx)
		if err != nil {
			return err
		}
		text, t, err := o.CreateToken(ctx, by, name, role, expires)
		if err != nil {
			return err
		}

		shown := present.NewToken(&t, t.Created)
		return f.print(cli.Document("secret", text, "token", shown), func(out io.Writer, _ ink) {
			fmt.Fprintf(f.w.stderr, "Created by %s: token %s of %s, %s, %s.\n", visible.Text(by.Name), t.ID, visible.Text(t.Name), t.Role, shown.ExpiryText())
			if by.TokenID == "" && !policy.HasSubject(by.Name) && role != ledger.RoleAdmin {
				fmt.Fprintln(f.w.stderr, "This ledger has no admin: every user who can write its file or database can create tokens.")
			}
			fmt.Fprintf(f.w.stderr, "The token follows. It is not stored and cannot be shown again; the caller sets it as %s.\n", tokenVariable)
			fmt.Fprintln(out, text)
		})
	})
	checkFirst(cmd, func() error {
		if !slices.Contains(ledger.Roles(), role) {
			return fmt.Errorf("--role %q: give one of %s", role, strings.Join(ledger.Roles(), ", "))
		}
		if _, err := ledger.ParseExpiry(life, time.Now()); err != nil {
			return fmt.Errorf("--expires %w", err)
		}
		return nil
	})
	cmd.Flags().StringVar(&role, "role", "", strings.Join(ledger.Roles(), ", "))
	cmd.Flags().StringVar(&name, "name", "", "the person or service that the token identifies")
	cmd.Flags().StringVar(&life, "expires", defaultTokenLife, "days or hours from now (90d, 12h), a date (2027-01-01, at its beginning in UTC), or never")
	cli.MustFlags(cmd, "role", "name")
	return cmd
}

// newTokenList needs no token: a user who can read the file can read the rows.
func newTokenList(f *ledgerFlags) *cobra.Command {
	return f.viewer("list", cobra.NoArgs, func(_ context.Context, o *openedLedger, r ledger.Reader, _ []string) error {
		all, err := ledger.Tokens(r)
		if err != nil {
			return err
		}
		rows := make([]present.Token, 0, len(all))
		for i := range all {
			rows = append(rows, present.NewToken(&all[i], o.timestamp()))
		}
		return f.print(cli.Document("tokens", rows), func(out io.Writer, k ink) {
			for _, t := range rows {
				fmt.Fprintf(out, "%s %s  %-8s  %s  %s\n", k.mark(t.Active), visible.Text(t.ID), visible.Text(t.Role), visible.Text(t.ExpiryText()),
					visible.Text(t.Name))
			}
			if len(rows) == 0 {
				fmt.Fprintln(f.w.stderr, "There are no tokens yet; pgfsm token create makes one.")
			}
		})
	})
}

func newTokenRevoke(f *ledgerFlags) *cobra.Command {
	return f.command("revoke ID", cobra.ExactArgs(1), stores.ToChange, func(ctx context.Context, o *openedLedger, args []string) error {
		if strings.HasPrefix(args[0], "pgfsm_") {
			return errors.New("that is a whole token; name its ID alone, the part between the underscores, and keep the rest secret")
		}
		by, err := o.manager(ctx)
		if err != nil {
			return err
		}
		t, err := o.RevokeToken(ctx, by, args[0])
		if err != nil {
			return err
		}
		return f.print(cli.Document("token", present.NewToken(&t, t.Revoked)), func(out io.Writer, _ ink) {
			fmt.Fprintf(out, "The token %s of %s (%s) is revoked.\n", visible.Text(t.ID), visible.Text(t.Name), visible.Text(t.Role))
		})
	})
}
