package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func newApprovals(w world) *cobra.Command {
	var f ledgerFlags
	cmd := group("approvals", "Show and decide held calls", `A call that a policy holds waits in the ledger. These commands show held calls and record decisions, in the
configuration's ledger or in that of --ledger. They need a token in PGFSM_TOKEN (pgfsm token create): approve and deny need
the role approver; the others need approver, auditor or admin.

These commands make no call. Once enough people have approved a call, a running pgfsm serve, pgfsm approvals serve or
pgfsm run --wait makes it within seconds. If none of these is running, run pgfsm resume to make the call.

Exit codes: 0 done, 1 refused, 2 could not.`,
		newApprovalsList(w, &f), newApprovalsShow(w, &f), newApprovalsApprove(w, &f), newApprovalsDeny(w, &f),
		newApprovalsWatch(w, &f), newApprovalsServe(w, &f))
	f.register(cmd)
	return cmd
}

// looking opens the ledger to read, for a caller who may see every request.
func (f *ledgerFlags) looking(ctx context.Context, w world, do func(*openedLedger) error) error {
	return f.use(w, stores.ToRead, func(o *openedLedger) error {
		if _, err := caller(ctx, w, o, ledger.ActRead); err != nil {
			return err
		}
		return do(o)
	})
}

func newApprovalsList(w world, f *ledgerFlags) *cobra.Command {
	l := requestList{Filter: ledger.Filter{Held: true}, none: "No request waits for a decision."}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List held calls, oldest first",
		Example: `  pgfsm approvals list
  pgfsm approvals list --status denied,expired --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.choose(); err != nil {
				return err
			}
			return f.looking(cmd.Context(), w, func(o *openedLedger) error {
				return o.View(cmd.Context(), func(r ledger.Reader) error { return l.print(w, r, f.json, heldPrinter(o.now())) })
			})
		},
	}
	l.register(cmd, []string{string(ledger.Pending)}, 100)
	return cmd
}

// heldPrinter shows each request in two lines.
func heldPrinter(now string) func(world, []present.Run) {
	return func(w world, rows []present.Run) {
		k := newInk(w)
		for i := range rows {
			d := &rows[i]
			fmt.Fprintf(w.stdout, "%s  %s  %s %s for %s\n", k.bold(ledger.Short(d.Run)), d.Standing(now), visible.Clip(d.Server, maxTold),
				visible.Clip(d.Tool, maxTold), present.ShortName(d.Actor, d.Display, maxTold))
			fmt.Fprintf(w.stdout, "  %s\n", visible.Clip(string(d.Args), maxTold))
		}
	}
}

// anyApprover is printed if a policy names no approvers.
const anyApprover = "any approver"

// errNoRequest explains that there is no such held call.
func errNoRequest(err error) error {
	if errors.Is(err, ledger.ErrUnknown) || errors.Is(err, ledger.ErrNotHeld) {
		return fmt.Errorf("%w; pgfsm approvals list shows the held calls", err)
	}
	return err
}
