package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pgfsm/policy/visible"
	"pgfsm/present"
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

// heldStatuses are the statuses of requests that were held.
var heldStatuses = []ledger.Status{
	ledger.Pending, ledger.Approved, ledger.Denied, ledger.Expired, ledger.Executed, ledger.Failed, ledger.Indeterminate,
}

// statuses reads the values of --status.
func statuses(words []string) (chosen []ledger.Status, err error) {
	for _, word := range words {
		if word == "all" {
			return heldStatuses, nil
		}
		if !slices.Contains(heldStatuses, ledger.Status(word)) {
			known := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(heldStatuses), "[]")), ", ")
			return nil, fmt.Errorf("--status %q: give all or some of %s", word, known)
		}
		chosen = append(chosen, ledger.Status(word))
	}
	return chosen, nil
}

// The bounds of --limit.
const (
	defaultListed = 100
	maxListed     = 1_000_000 // 0 lists all
)

func newApprovalsList(w world, f *ledgerFlags) *cobra.Command {
	var words []string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List held calls, oldest first",
		Example: `  pgfsm approvals list
  pgfsm approvals list --status denied,expired --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen, err := statuses(words)
			if err != nil {
				return err
			}
			if limit < 0 || limit > maxListed {
				return fmt.Errorf("--limit is %d: give how many to list, at most %d, or 0 for all", limit, maxListed)
			}
			return f.looking(cmd.Context(), w, func(o *openedLedger) error {
				return o.View(cmd.Context(), func(r ledger.Reader) error { return listHeld(w, r, chosen, limit, f.json) })
			})
		},
	}
	cmd.Flags().StringSliceVar(&words, "status", []string{string(ledger.Pending)}, "the statuses to list, or all")
	cmd.Flags().IntVar(&limit, "limit", defaultListed, "the most requests to list; 0 is all")
	return cmd
}

// listHeld prints the requests that were held.
func listHeld(w world, r ledger.Reader, chosen []ledger.Status, limit int, asJSON bool) error {
	rows, more := []present.Run{}, false
	f := ledger.Filter{Statuses: chosen, Held: true}
	if limit > 0 {
		f.Limit = limit + 1 // one more says whether there are more
	}
	for q, err := range r.Requests(f) {
		if err != nil {
			return err
		}
		if more = limit > 0 && len(rows) == limit; more {
			break
		}
		d, err := present.RunWithArgs(r, &q)
		if err != nil {
			return err
		}
		rows = append(rows, d)
	}
	if asJSON {
		return printJSON(w.stdout, struct {
			SchemaVersion int           `json:"schema_version"`
			More          bool          `json:"more"`
			Requests      []present.Run `json:"requests"`
		}{schemaVersion, more, rows})
	}
	k := newInk(w)
	for i := range rows {
		printHeld(w, k, &rows[i])
	}
	switch {
	case more:
		fmt.Fprintf(w.stderr, "There are more; --limit 0 lists all.\n")
	case len(rows) == 0:
		fmt.Fprintln(w.stderr, "No request waits for a decision.")
	}
	return nil
}

// printHeld shows a request in two lines.
func printHeld(w world, k ink, d *present.Run) {
	fmt.Fprintf(w.stdout, "%s  %s  %s %s for %s\n", k.bold(d.Run), d.Standing(now()), visible.Clip(d.Server, maxTold),
		visible.Clip(d.Tool, maxTold), visible.Clip(d.Actor, maxTold))
	fmt.Fprintf(w.stdout, "  %s\n", visible.Clip(string(d.Args), maxTold))
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
