package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"pgfsm/internal/canonical"
	"pgfsm/internal/cli"
	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/states"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func newApprovals(w world) *cobra.Command {
	f := &ledgerFlags{w: w}
	cmd := cli.Group("approvals", newApprovalsList(f), newApprovalsShow(f), newVote(f, true, "approve ID --digest DIGEST"),
		newVote(f, false, "deny ID --digest DIGEST --reason REASON"), newApprovalsServe(f))
	f.addFlags(cmd)
	return cmd
}

// newReadCommand makes a command that opens the ledger for reading, for a caller with the right to
// see every request.
func (f *ledgerFlags) newReadCommand(use string, args cobra.PositionalArgs,
	do func(ctx context.Context, o *openedLedger, args []string) error,
) *cobra.Command {
	return f.newCommand(use, args, stores.ToRead, func(ctx context.Context, o *openedLedger, args []string) error {
		if _, err := o.authorizeCaller(ctx, ledger.ActRead); err != nil {
			return err
		}
		return do(ctx, o, args)
	})
}

func newApprovalsList(f *ledgerFlags) *cobra.Command {
	l := requestList{Filter: ledger.Filter{Held: true}, none: "No request waits for a decision."}
	cmd := f.newReadCommand("list", cobra.NoArgs, func(ctx context.Context, o *openedLedger, _ []string) error {
		return o.View(ctx, func(r ledger.Reader) error {
			return l.printRequests(f, r, func(rows []present.Run) (func(io.Writer, ink), error) {
				return heldScreen(r, rows, o.timestamp())
			})
		})
	})
	checkFirst(cmd, l.completeFilter)
	l.addFlags(cmd, []string{string(ledger.Pending)}, 100)
	return cmd
}

// heldScreen prints held calls with the arguments that matter most.
func heldScreen(r ledger.Reader, rows []present.Run, now string) (func(io.Writer, ink), error) {
	type heldCall struct {
		present.Run
		Gist present.Gist
	}
	// The active bundle sets only the order of arguments, so the list does not need it.
	active, _, _, _ := present.ActiveBundle(r, nil)
	gists := present.NewGistReader(r, active)
	calls := make([]heldCall, len(rows))
	for i := range rows {
		gist, err := gists.Read(&rows[i], rows[i].Args)
		if err != nil {
			return nil, err
		}
		calls[i] = heldCall{rows[i], gist}
	}
	return templatePrinter("held", struct {
		Calls []heldCall
		Now   string
	}{calls, now}), nil
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

func newApprovalsShow(f *ledgerFlags) *cobra.Command {
	return f.newReadCommand("show ID", cobra.ExactArgs(1), func(ctx context.Context, o *openedLedger, args []string) error {
		p, err := newReplayer()
		if err != nil {
			return err
		}
		return o.View(ctx, func(r ledger.Reader) error {
			id, err := ledger.FindRun(r, args[0])
			if err != nil {
				return err
			}
			h, err := present.ReadHeldCall(r, p, id)
			if err != nil {
				return errNoRequest(err)
			}
			return f.printDocument(h.Approval, f.boundScreen(&h, o.timestamp()))
		})
	})
}

// newReplayer returns a replayer of this build's machine.
func newReplayer() (*traces.Replayer, error) {
	m, err := states.NewMachine()
	if err != nil {
		return nil, err
	}
	return traces.NewReplayer(m, nil), nil
}

// boundScreen prints what helps to judge a held call, everything that an approval binds, and the
// commands that decide about a call that waits. Rows that both parts have are printed once.
func (f *ledgerFlags) boundScreen(h *present.HeldCall, now string) func(io.Writer, ink) {
	lines := h.Rows(now)
	binds := slices.DeleteFunc(h.BoundRows(), func(row present.Row) bool { return slices.Contains(lines, row) })
	q := &h.Request
	return templatePrinter("bound", struct {
		*present.HeldCall
		Lines, Binds  []present.Row
		Undecided     bool
		Approve, Deny string
	}{
		h, lines, binds, q.Status == ledger.Pending && !q.Overdue(now),
		f.approvalsCommand("approve", q.Run, "--digest", string(q.Binding)),
		f.approvalsCommand("deny", q.Run, "--digest", string(q.Binding)),
	})
}

// approvalsCommand returns the text of an approvals command for the same ledger.
func (f *ledgerFlags) approvalsCommand(word string, args ...string) string {
	words := []string{"pgfsm", "approvals", word}
	if f.config != "" {
		words = append(words, "-c", f.config)
	}
	if f.ledger != "" {
		words = append(words, "--ledger", f.ledger)
	}
	return present.CommandLine(append(words, args...)...)
}

// resumeCommand returns the text of the command that makes an approved call.
func (f *ledgerFlags) resumeCommand(run string) string { return commandText(f.config, "resume", run) }

// commandText returns the text of a pgfsm command with the same -c, if there is one.
func commandText(config string, words ...string) string {
	words = append([]string{"pgfsm"}, words...)
	if config != "" {
		words = append(words, "-c", config)
	}
	return present.CommandLine(words...)
}

func newVote(f *ledgerFlags, approve bool, use string) *cobra.Command {
	v := ledger.Ballot{Approve: approve}
	var digest string
	cmd := newCommand(use, cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		v.Run, v.Binding = args[0], canonical.Digest(digest)
		if digest == "" || !approve && v.Reason == "" {
			return f.explainMissingFlags(cmd.Context(), cmd.Name(), v)
		}
		return f.withLedger(stores.ToChange, func(o *openedLedger) error { return f.castVote(cmd.Context(), o, v) })
	})
	cmd.Flags().StringVar(&digest, "digest", "", "the whole digest that pgfsm approvals show prints")
	cmd.Flags().StringVar(&v.Reason, "reason", "", fmt.Sprintf("why, in at most %d bytes", ledger.MaxReason))
	return cmd
}

// castVote records a vote, and ends the run if its call will never be made.
func (f *ledgerFlags) castVote(ctx context.Context, o *openedLedger, v ledger.Ballot) (err error) {
	if v.By, err = o.authorizeCaller(ctx, ledger.ActVote); err != nil {
		return err
	}
	if v.Run, err = o.findRun(ctx, v.Run); err != nil {
		return err
	}

	q, err := o.Vote(ctx, v)
	if errors.Is(err, ledger.ErrExpired) || err == nil && q.Status == ledger.Denied {
		o.endRun(ctx, v.Run)
	}

	if err != nil {
		return errNoRequest(err)
	}

	// An approved call is not made if its requester or an approver was blocked meanwhile.
	var d present.Run
	notCalled := "" // reason that the call will not be made
	err = o.View(ctx, func(r ledger.Reader) (err error) {
		if notCalled, err = ledger.WhyNotCalled(r, &q); err != nil {
			return err
		}
		d, err = present.RunWithArgs(r, &q)
		return err
	})
	if err != nil {
		return err
	}

	doc := struct {
		SchemaVersion int         `json:"schema_version"`
		OK            bool        `json:"ok"`
		By            string      `json:"by"`
		Request       present.Run `json:"request"`
		NotCalled     string      `json:"not_called,omitzero"`
	}{cli.SchemaVersion, true, v.By.Name, d, notCalled}

	return f.printDocument(doc, func(out io.Writer, _ ink) {
		name := visible.Text(v.By.FullName())
		switch {
		case notCalled != "":
			fmt.Fprintf(out, "The vote of %s is recorded, but the call will not be made: %s\n", name, visible.Text(notCalled))
		case q.Status == ledger.Pending:
			fmt.Fprintf(out, "%s agrees: %d of %d. The request waits for %d more, until %s.\n", name, q.Agreed,
				q.Quorum, q.Quorum-q.Agreed, q.Expires)
		case q.Status == ledger.Approved:
			fmt.Fprintf(out, "Approved by %s: %d of %d. %s\n", name, q.Agreed, q.Quorum,
				callNext(&q, f.resumeCommand(q.RunID)))
		default:
			fmt.Fprintf(out, "Denied by %s. Nothing was called, and nothing will be.\n", name)
		}
	})
}

// callNext returns a text that names the processes that make an approved call, and the command to
// make it if none of them runs.
func callNext(q *ledger.RunRow, resume string) string {
	if states.Delegates(q.Kind) {
		return fmt.Sprintf("The client has to make the same call again, in the same session, before %s. It is then permitted once.", q.Expires)
	}
	makes := "a running pgfsm serve, or pgfsm approvals serve without --no-resume,"
	if q.Kind != states.KindAgent {
		makes = "the command that waits for it (--wait), " + makes
	}
	return fmt.Sprintf("The call is not made yet: %s makes it within seconds. If none runs, %s makes it. The approval expires at %s.",
		makes, resume, q.Expires)
}

// explainMissingFlags returns an error that names the missing flags and where to find the digest,
// or tells why the run cannot be decided.
func (f *ledgerFlags) explainMissingFlags(ctx context.Context, word string, v ledger.Ballot) error {
	err := f.withLedger(stores.ToRead, func(o *openedLedger) error {
		if _, err := o.authorizeCaller(ctx, ledger.ActVote); err != nil {
			return err
		}
		return errNoRequest(o.View(ctx, func(r ledger.Reader) (err error) {
			if v.Run, err = ledger.FindRun(r, v.Run); err != nil {
				return err
			}
			return ledger.CheckUndecided(r, v.Run, o.timestamp())
		}))
	})
	if err != nil {
		return err
	}

	words := []string{v.Run, "--digest", cmp.Or(string(v.Binding), "DIGEST")}
	if reason := v.Reason; reason != "" || !v.Approve {
		words = append(words, "--reason", cmp.Or(reason, "REASON"))
	}

	repeat := f.approvalsCommand(word, words...)
	switch {
	case v.Binding != "":
		return fmt.Errorf("--reason is missing: a denial needs one, and the requester reads it. Repeat with it:\n  %s", repeat)
	case !v.Approve && v.Reason == "":
		return fmt.Errorf("--digest and --reason are missing. The digest says which call you decide about; the requester reads the reason. "+
			"Look at the call, which shows its digest:\n  %s\nThen repeat with both:\n  %s",
			f.approvalsCommand("show", v.Run), repeat)
	}

	return fmt.Errorf("--digest is missing: it says which call you decide about. Look at the call, which shows its digest:\n  %s\n"+
		"Then repeat with that digest:\n  %s", f.approvalsCommand("show", v.Run), repeat)
}

// endRun ends a run that was denied or has expired. If end fails, the next process that resumes
// runs ends it.
func (o *openedLedger) endRun(ctx context.Context, run string) {
	p, err := newReplayer()
	if err == nil {
		_, err = o.RecoverRun(ctx, p, run)
	}
	if err != nil && !errors.Is(err, ledger.ErrTaken) && !errors.Is(err, ledger.ErrEnded) {
		fmt.Fprintf(o.w.stderr, "pgfsm: warning: what was decided is recorded; the run will be ended later: %s\n",
			visible.Lines(err.Error()))
	}
}
