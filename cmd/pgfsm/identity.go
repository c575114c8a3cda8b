package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/config"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func newIdentity(w world) *cobra.Command {
	f := &ledgerFlags{w: w}
	cmd := cli.Group("identity", newIdentityBlock(f), newIdentityUnblock(f), newIdentityList(f))
	f.register(cmd)
	return cmd
}

func newIdentityBlock(f *ledgerFlags) *cobra.Command {
	return f.command("block ISSUER SUBJECT", cobra.ExactArgs(2), stores.ToWrite, func(ctx context.Context, o *openedLedger, args []string) error {
		if err := knownIssuer(o.loaded, args[0]); err != nil {
			return err
		}
		return f.changeSubject(ctx, o, args, "blocked", o.BlockIdentity)
	})
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

func newIdentityUnblock(f *ledgerFlags) *cobra.Command {
	return f.command("unblock ISSUER SUBJECT", cobra.ExactArgs(2), stores.ToChange, func(ctx context.Context, o *openedLedger, args []string) error {
		return f.changeSubject(ctx, o, args, "unblocked", o.UnblockIdentity)
	})
}

// changeSubject changes a subject and prints the change.
func (f *ledgerFlags) changeSubject(ctx context.Context, o *openedLedger, args []string, what string,
	change func(ctx context.Context, by ledger.Caller, issuer, subject string) error,
) error {
	by, err := o.manager(ctx)
	if err != nil {
		return err
	}
	if err := change(ctx, by, args[0], args[1]); err != nil {
		return err
	}
	name := policy.SubjectName(args[0], args[1])
	return f.print(cli.Document("change", what, "name", name), func(out io.Writer, _ ink) {
		fmt.Fprintf(out, "%s is %s.\n", visible.Text(name), what)
	})
}

// newIdentityList needs no token: a user who can read the file can read the rows.
func newIdentityList(f *ledgerFlags) *cobra.Command {
	return f.viewer("list", cobra.NoArgs, func(_ context.Context, _ *openedLedger, r ledger.Reader, _ []string) error {
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
		return f.print(cli.Document("blocked", rows), func(out io.Writer, _ ink) {
			for _, b := range rows {
				fmt.Fprintf(out, "%s  since %s by %s\n", visible.Text(b.Name), b.Since, visible.Text(b.By))
			}
			if len(rows) == 0 {
				fmt.Fprintln(f.w.stderr, "Nobody is blocked.")
			}
		})
	})
}
