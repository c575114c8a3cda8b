package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"pgfsm/internal/canonical"
	"pgfsm/internal/cli"
	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/states"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func newApprovalsApprove(f *ledgerFlags) *cobra.Command {
	return newVote(f, true, &cobra.Command{
		Use: "approve ID --digest DIGEST",
	})
}

func newApprovalsDeny(f *ledgerFlags) *cobra.Command {
	return newVote(f, false, &cobra.Command{
		Use: "deny ID --digest DIGEST --reason REASON",
	})
}

func newVote(f *ledgerFlags, approve bool, cmd *cobra.Command) *cobra.Command {
	v := ledger.Ballot{Approve: approve}
	var digest string
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v.Run, v.Binding = args[0], canonical.Digest(digest)
		if digest == "" || !approve && v.Reason == "" {
			return f.incomplete(cmd.Context(), cmd.Name(), v)
		}
		return f.use(stores.ToChange, func(o *openedLedger) error { return f.vote(cmd.Context(), o, v) })
	}
	cmd.Flags().StringVar(&digest, "digest", "", "the whole digest that pgfsm approvals show prints")
	cmd.Flags().StringVar(&v.Reason, "reason", "", fmt.Sprintf("why, in at most %d bytes", ledger.MaxReason))
	return cmd
}

// vote records a vote, and ends the run if its call will never be made.
func (f *ledgerFlags) vote(ctx context.Context, o *openedLedger, v ledger.Ballot) (err error) {
	if v.By, err = o.caller(ctx, ledger.ActVote); err != nil {
		return err
	}
	if v.Run, err = o.findRun(ctx, v.Run); err != nil {
		return err
	}
	q, err := o.Vote(ctx, v)
	if errors.Is(err, ledger.ErrExpired) || err == nil && q.Status == ledger.Denied {
		o.end(ctx, v.Run)
	}
	if err != nil {
		return errNoRequest(err)
	}
	var d present.Run
	why := "" // reason that the call will not be made
	err = o.View(ctx, func(r ledger.Reader) (err error) {
		if why, err = ledger.WhyNotCalled(r, &q); err == nil {
			d, err = present.RunWithArgs(r, &q)
		}
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
	}{cli.SchemaVersion, true, v.By.Name, d, why}
	return f.print(doc, func(out io.Writer, _ ink) {
		name := visible.Text(v.By.FullName())
		switch {
		case why != "":
			fmt.Fprintf(out, "The vote of %s is recorded, but the call will not be made: %s\n", name, visible.Text(why))
		case q.Status == ledger.Pending:
			fmt.Fprintf(out, "%s agrees: %d of %d. The request waits for %d more, until %s.\n", name, q.Agreed, q.Quorum, q.Quorum-q.Agreed, q.Expires)
		case q.Status == ledger.Approved:
			fmt.Fprintf(out, "Approved by %s: %d of %d. %s\n", name, q.Agreed, q.Quorum, callNext(&q, f.resume(q.RunID)))
		default:
			fmt.Fprintf(out, "Denied by %s. Nothing was called, and nothing will be.\n", name)
		}
	})
}

// callNext returns a text that names the processes that make an approved call, and the command to make it if none of them runs.
func callNext(q *ledger.Request, resume string) string {
	makes := "a running pgfsm serve, or pgfsm approvals serve without --no-resume,"
	if q.Kind != states.KindAgent {
		makes = "the command that waits for it (--wait), " + makes
	}
	return fmt.Sprintf("The call is not made yet: %s makes it within seconds. If none runs, %s makes it. The approval expires at %s.",
		makes, resume, q.Expires)
}

// incomplete returns an error that names the missing flags and where to find the digest, or tells why the run cannot be decided.
func (f *ledgerFlags) incomplete(ctx context.Context, word string, v ledger.Ballot) error {
	err := f.use(stores.ToRead, func(o *openedLedger) error {
		if _, err := o.caller(ctx, ledger.ActVote); err != nil {
			return err
		}
		return errNoRequest(o.View(ctx, func(r ledger.Reader) (err error) {
			if v.Run, err = ledger.FindRun(r, v.Run); err != nil {
				return err
			}
			return ledger.Undecided(r, v.Run, o.timestamp())
		}))
	})
	if err != nil {
		return err
	}
	again := []string{v.Run, "--digest", cmp.Or(string(v.Binding), "DIGEST")}
	if reason := v.Reason; reason != "" || !v.Approve {
		again = append(again, "--reason", cmp.Or(reason, "REASON"))
	}
	repeat := f.approvals(word, again...)
	switch {
	case v.Binding != "":
		return fmt.Errorf("--reason is missing: a denial needs one, and the requester reads it. Repeat with it:\n  %s", repeat)
	case !v.Approve && v.Reason == "":
		return fmt.Errorf("--digest and --reason are missing. The digest says which call you decide about; the requester reads the reason. "+
			"Look at the call, which shows its digest:\n  %s\nThen repeat with both:\n  %s", f.approvals("show", v.Run), repeat)
	}
	return fmt.Errorf("--digest is missing: it says which call you decide about. Look at the call, which shows its digest:\n  %s\n"+
		"Then repeat with that digest:\n  %s", f.approvals("show", v.Run), repeat)
}

// end ends a run that was denied or has expired. If end fails, the next process that resumes runs ends it.
func (o *openedLedger) end(ctx context.Context, run string) {
	p, err := newReplayer()
	if err == nil {
		_, err = o.RecoverRun(ctx, p, run)
	}
	if err != nil && !errors.Is(err, ledger.ErrTaken) && !errors.Is(err, ledger.ErrEnded) {
		fmt.Fprintf(o.w.stderr, "pgfsm: warning: what was decided is recorded; the run will be ended later: %s\n", visible.Lines(err.Error()))
	}
}
