package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func newApprovals(w world) *cobra.Command {
	f := &ledgerFlags{w: w}
	cmd := cli.Group("approvals", newApprovalsList(f), newApprovalsShow(f), newApprovalsApprove(f), newApprovalsDeny(f), newApprovalsWatch(f),
		newApprovalsServe(f))
	f.register(cmd)
	return cmd
}

// looking makes a command that opens the ledger for reading, for a caller with the right to see every request.
func (f *ledgerFlags) looking(use string, args cobra.PositionalArgs,
	do func(ctx context.Context, o *openedLedger, args []string) error,
) *cobra.Command {
	return f.command(use, args, stores.ToRead, func(ctx context.Context, o *openedLedger, args []string) error {
		if _, err := o.caller(ctx, ledger.ActRead); err != nil {
			return err
		}
		return do(ctx, o, args)
	})
}

func newApprovalsList(f *ledgerFlags) *cobra.Command {
	l := requestList{Filter: ledger.Filter{Held: true}, none: "No request waits for a decision."}
	cmd := f.looking("list", cobra.NoArgs, func(ctx context.Context, o *openedLedger, _ []string) error {
		return o.View(ctx, func(r ledger.Reader) error { return l.print(f, r, heldPrinter(o.timestamp())) })
	})
	checkFirst(cmd, l.choose)
	l.register(cmd, []string{string(ledger.Pending)}, 100)
	return cmd
}

// heldPrinter returns a function that prints each request in two lines.
func heldPrinter(now string) func(io.Writer, ink, []present.Run) {
	return func(out io.Writer, k ink, rows []present.Run) {
		for i := range rows {
			d := &rows[i]
			fmt.Fprintf(out, "%s  %s  %s %s for %s\n", k.bold(ledger.Short(d.Run)), d.StatusText(now), visible.Clip(d.Server, maxTold),
				visible.Clip(d.Tool, maxTold), present.ShortName(d.Actor, d.Display, maxTold))
			fmt.Fprintf(out, "  %s\n", visible.Clip(string(d.Args), maxTold))
		}
	}
}

// anyApprover is printed if a policy names no approvers.
const anyApprover = "any approver"

// errNoRequest adds the command that lists held calls to an error for an unknown or unheld run.
func errNoRequest(err error) error {
	if errors.Is(err, ledger.ErrUnknown) || errors.Is(err, ledger.ErrNotHeld) {
		return fmt.Errorf("%w; pgfsm approvals list shows the held calls", err)
	}
	return err
}
