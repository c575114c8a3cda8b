package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/config"
	"pgfsm/internal/hook"
	"pgfsm/internal/present"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func newToken(w world) *cobra.Command {
	f := &ledgerFlags{w: w}
	cmd := cli.Group("token", newTokenCreate(f), newTokenList(f), newTokenRevoke(f))
	f.addFlags(cmd)
	return cmd
}

// defaultTokenLife is the validity of a token without --expires.
const defaultTokenLife = "90d"

func newTokenCreate(f *ledgerFlags) *cobra.Command {
	var role, name, life string
	cmd := f.newManageCommand("create --role ROLE --name NAME", cobra.NoArgs, stores.ToWrite,
		func(ctx context.Context, o *openedLedger, caller ledger.Caller, _ []string) error {
			expires, err := ledger.ParseExpiry(life, o.store.Now())
			if err != nil {
				return err
			}
			text, t, err := o.CreateToken(ctx, caller, name, role, expires)
			if err != nil {
				return err
			}

			token := present.NewToken(&t, t.Created)
			return f.printDocument(cli.Document("secret", text, "token", token), func(out io.Writer, _ ink) {
				fmt.Fprintf(f.w.stderr, "Created by %s: token %s of %s, %s, %s.\n", visible.Text(caller.Name), t.ID,
					visible.Text(t.Name), t.Role, token.ExpiryText())
				if caller.TokenID == "" && !policy.HasSubject(caller.Name) && role != ledger.RoleAdmin {
					fmt.Fprintln(f.w.stderr, "This ledger has no admin: every user who can write its file or database can create tokens.")
				}
				use := "the caller sets it as " + tokenVariable
				if role == ledger.RoleHook {
					use = "keep it in a file for pgfsm link --hooks --token-file FILE, or set it as " + hook.TokenVariable
				}
				fmt.Fprintf(f.w.stderr, "The token follows. It is not stored and cannot be shown again; %s.\n", use)
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
	cmd.Flags().StringVar(&life, "expires", defaultTokenLife,
		"days or hours from now (90d, 12h), a date (2027-01-01, at its beginning in UTC), or never")
	cli.MustFlags(cmd, "role", "name")

	return cmd
}

// newTokenList needs no token: a user who can read the file can read the rows.
func newTokenList(f *ledgerFlags) *cobra.Command {
	return f.newViewCommand("list", cobra.NoArgs, func(_ context.Context, o *openedLedger, r ledger.Reader, _ []string) error {
		tokens, err := ledger.Tokens(r)
		if err != nil {
			return err
		}
		rows := make([]present.Token, 0, len(tokens))
		for i := range tokens {
			rows = append(rows, present.NewToken(&tokens[i], o.timestamp()))
		}
		return f.printList(cli.Document("tokens", rows), "tokens", rows, len(rows),
			"There are no tokens yet; pgfsm token create makes one.")
	})
}

func newTokenRevoke(f *ledgerFlags) *cobra.Command {
	return f.newManageCommand("revoke ID", cobra.ExactArgs(1), stores.ToChange,
		func(ctx context.Context, o *openedLedger, caller ledger.Caller, args []string) error {
			if strings.HasPrefix(args[0], "pgfsm_") {
				return errors.New("that is a whole token; name its ID alone, the part between the underscores, and keep the rest secret")
			}
			t, err := o.RevokeToken(ctx, caller, args[0])
			if err != nil {
				return err
			}
			return f.printDocument(cli.Document("token", present.NewToken(&t, t.Revoked)),
				linePrinter("The token %s of %s (%s) is revoked.\n", t.ID, t.Name, t.Role))
		})
}

func newIdentity(w world) *cobra.Command {
	f := &ledgerFlags{w: w}
	cmd := cli.Group("identity", newIdentityBlock(f), newIdentityUnblock(f), newIdentityList(f))
	f.addFlags(cmd)
	return cmd
}

func newIdentityBlock(f *ledgerFlags) *cobra.Command {
	return f.newManageCommand("block ISSUER SUBJECT", cobra.ExactArgs(2), stores.ToWrite,
		func(ctx context.Context, o *openedLedger, caller ledger.Caller, args []string) error {
			if err := knownIssuer(o.loaded, args[0]); err != nil {
				return err
			}
			return f.changeSubject(ctx, caller, args, "blocked", o.BlockIdentity)
		})
}

// knownIssuer refuses an issuer that the configuration does not name: a block of its subjects would
// have no effect on tokens.
func knownIssuer(c *config.Loaded, issuer string) error {
	if c == nil {
		return nil
	}
	var issuers []string
	for i := range c.Identity.Issuers {
		issuers = append(issuers, c.Identity.Issuers[i].URL)
	}
	if slices.Contains(issuers, issuer) {
		return nil
	}
	return &ledger.Refusal{Code: ledger.RefusedBlock,
		Message: fmt.Sprintf("%s is no issuer of the configuration, which names %s", issuer,
			cmp.Or(strings.Join(issuers, ", "), "none"))}
}

func newIdentityUnblock(f *ledgerFlags) *cobra.Command {
	return f.newManageCommand("unblock ISSUER SUBJECT", cobra.ExactArgs(2), stores.ToChange,
		func(ctx context.Context, o *openedLedger, caller ledger.Caller, args []string) error {
			return f.changeSubject(ctx, caller, args, "unblocked", o.UnblockIdentity)
		})
}

// changeSubject changes a subject and prints the change.
func (f *ledgerFlags) changeSubject(ctx context.Context, caller ledger.Caller, args []string, what string,
	change func(ctx context.Context, caller ledger.Caller, issuer, subject string) error,
) error {
	if err := change(ctx, caller, args[0], args[1]); err != nil {
		return err
	}
	name := policy.SubjectName(args[0], args[1])
	return f.printDocument(cli.Document("change", what, "name", name), linePrinter("%s is %s.\n", name, what))
}

// newIdentityList needs no token: a user who can read the file can read the rows.
func newIdentityList(f *ledgerFlags) *cobra.Command {
	return f.newViewCommand("list", cobra.NoArgs, func(_ context.Context, _ *openedLedger, r ledger.Reader, _ []string) error {
		type block struct {
			Name  string `json:"name"`
			Since string `json:"since"`
			By    string `json:"by"`
		}
		rows := []block{}
		for b, err := range r.Blocks() {
			if err != nil {
				return err
			}
			rows = append(rows, block{b.Name, b.Since, b.By})
		}
		return f.printList(cli.Document("blocked", rows), "blocked", rows, len(rows), "Nobody is blocked.")
	})
}

// loginOptions are the flags of login.
type loginOptions struct {
	options
	issuer string
	device bool
}

func newLogin(w world) *cobra.Command {
	var o loginOptions
	cmd := newCommand("login", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		loaded, _, err := loadConfig(w, &o.options)
		if err != nil {
			return err
		}
		c, err := setup.Login(loaded, o.issuer)
		if err != nil {
			return err
		}

		var token string
		if o.device {
			token, err = c.Device(cmd.Context(), func(at, code string) error {
				_, err := fmt.Fprintf(w.stderr, "Open %s and enter the code %s\n", visible.Text(at),
					visible.Text(code))
				return err
			})
		} else {
			token, err = c.Browser(cmd.Context(), func(at string) error {
				_, err := fmt.Fprintf(w.stderr, "Open this URL in a browser on this machine:\n%s\n", at)
				return err
			})
		}

		if err != nil {
			return err
		}

		return w.printDocument(o.json, cli.Document("token", token), cli.ExitYes, linePrinter("%s\n", token))
	})

	o.addFlags(cmd)
	cmd.Flags().StringVar(&o.issuer, "issuer", "",
		"the issuer to sign in at (default: the only one that has login.cli)")
	cmd.Flags().BoolVar(&o.device, "device", false, "sign in on another device")

	return cmd
}
