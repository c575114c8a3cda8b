package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/states"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

func newApprovalsShow(f *ledgerFlags) *cobra.Command {
	return f.looking("show ID", cobra.ExactArgs(1), func(ctx context.Context, o *openedLedger, args []string) error {
		p, err := newReplayer()
		if err != nil {
			return err
		}
		return o.View(ctx, func(r ledger.Reader) error {
			id, err := ledger.FindRun(r, args[0])
			if err != nil {
				return err
			}
			b, err := ledger.BoundOf(r, p, id)
			if err != nil {
				return errNoRequest(err)
			}
			d := present.NewApproval(&b)
			return f.print(d, func(out io.Writer, k ink) {
				printBound(out, k, &d, o.timestamp())
				f.printVote(out, &d, o.timestamp())
			})
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

// printVote prints the commands that decide about a held call.
func (f *ledgerFlags) printVote(out io.Writer, d *present.Approval, now string) {
	q := &d.Request
	switch {
	case q.Status != ledger.Pending || q.Overdue(now):
	case d.Bound.Fresh != 0:
		fmt.Fprintln(out, "\nTo decide, sign in at the console: pgfsm console prints a link.")
	default:
		fmt.Fprintf(out, "\nTo decide about exactly this:\n  %s\n  %s\n",
			f.approvals("approve", q.Run, "--digest", string(q.Binding)),
			f.approvals("deny", q.Run, "--digest", string(q.Binding))+" --reason '…'")
	}
}

// approvals returns the text of an approvals command for the same ledger.
func (f *ledgerFlags) approvals(word string, args ...string) string {
	words := []string{"pgfsm", "approvals", word}
	if f.config != "" {
		words = append(words, "-c", f.config)
	}
	if f.ledger != "" {
		words = append(words, "--ledger", f.ledger)
	}
	return present.CommandLine(append(words, args...)...)
}

// resume returns the text of the command that makes an approved call.
func (f *ledgerFlags) resume(run string) string { return configured(f.config, "resume", run) }

// configured returns the text of a pgfsm command with the same -c, if there is one.
func configured(config string, words ...string) string {
	words = append([]string{"pgfsm"}, words...)
	if config != "" {
		words = append(words, "-c", config)
	}
	return present.CommandLine(words...)
}

// printBound prints everything that an approval binds to.
func printBound(out io.Writer, k ink, d *present.Approval, now string) {
	q := &d.Request
	printFields(out, k, 13, d.Rows(now))
	for _, c := range d.Risk {
		fmt.Fprintf(out, "  risk rule %s\n", visible.Text(present.RiskRule(&c)))
	}
	fmt.Fprintln(out, k.bold("Arguments:"))
	printBlock(out, k, " ", q.Args)
	fmt.Fprintf(out, "%s %s\n", k.bold("Definition:"), q.Definition)
	printBlock(out, k, " ", d.Definition)
	for i := range d.Votes {
		v := &d.Votes[i]
		fmt.Fprintf(out, "%s %s by %s %s\n", k.bold("Vote:"), visible.Text(v.Outcome), visible.Text(v.Voter()), visible.Text(v.At+" "+v.Reason))
	}
	fmt.Fprintf(out, "%s %s\n", k.bold("Connection:"), d.Bound.Connection)
	if d.Bound.Pin != "" {
		fmt.Fprintf(out, "%s %s\n", k.bold("Pin:"), d.Bound.Pin)
	}
	if d.Bound.Schema != "" {
		fmt.Fprintf(out, "%s %s, the operator's in place of the inputSchema\n", k.bold("Schema:"), d.Bound.Schema)
	}
	fmt.Fprintf(out, "%s %s\n", k.bold("Digest of all this:"), q.Binding)
}
