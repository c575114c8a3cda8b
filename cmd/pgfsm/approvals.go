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
	cmd := group("approvals",
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
		Use:  "list",
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
