package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/states"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

func newApprovalsShow(w world, f *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use:  "show ID",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := newReplayer()
			if err != nil {
				return err
			}
			return f.looking(cmd.Context(), w, func(o *openedLedger) error {
				return o.View(cmd.Context(), func(r ledger.Reader) error {
					id, err := ledger.FindRun(r, args[0])
					if err != nil {
						return err
					}
					b, err := ledger.BoundOf(r, p, id)
					if err != nil {
						return errNoRequest(err)
					}
					return f.showBound(w, &b, o.now())
				})
			})
		},
	}
}

// newReplayer returns a replayer of today's machine.
func newReplayer() (*traces.Replayer, error) {
	m, err := states.NewMachine()
	if err != nil {
		return nil, err
	}
	return traces.NewReplayer(m, nil), nil
}

func (f *ledgerFlags) showBound(w world, b *ledger.Bound, now string) error {
	d := present.NewApproval(b)
	if f.json {
		return printJSON(w.stdout, d)
	}
	printBound(w, &d, now)
	q := &d.Request
	switch {
	case q.Status != ledger.Pending || q.Overdue(now):
	case d.Bound.Fresh != 0:
		fmt.Fprintln(w.stdout, "\nTo decide, sign in at the console: pgfsm console prints a link.")
	default:
		fmt.Fprintf(w.stdout, "\nTo decide about exactly this:\n  %s\n  %s\n",
			f.command("approve", q.Run, "--digest", string(q.Binding)),
			f.command("deny", q.Run, "--digest", string(q.Binding))+" --reason '…'")
	}
	return nil
}

// command writes a command of approvals for the same ledger.
func (f *ledgerFlags) command(word string, args ...string) string {
	words := []string{"pgfsm", "approvals", word}
	if f.config != "" {
		words = append(words, "-c", f.config)
	}
	if f.ledger != "" {
		words = append(words, "--ledger", f.ledger)
	}
	return present.CommandLine(append(words, args...)...)
}

// resume writes the command that makes an approved call.
func (f *ledgerFlags) resume(run string) string { return configured(f.config, "resume", run) }

// configured writes a command of pgfsm with the same -c, if there is one.
func configured(config string, words ...string) string {
	words = append([]string{"pgfsm"}, words...)
	if config != "" {
		words = append(words, "-c", config)
	}
	return present.CommandLine(words...)
}

// printBound prints everything that an approval binds to.
func printBound(w world, d *present.Approval, now string) {
	k, q := newInk(w), &d.Request
	printFields(w, k, 13, d.Rows(now))
	for _, c := range d.Risk {
		fmt.Fprintf(w.stdout, "  risk rule %s\n", visible.Text(present.RiskRule(&c)))
	}
	fmt.Fprintln(w.stdout, k.bold("Arguments:"))
	printBlock(w.stdout, k, " ", q.Args)
	fmt.Fprintf(w.stdout, "%s %s\n", k.bold("Definition:"), q.Definition)
	printBlock(w.stdout, k, " ", d.Definition)
	for i := range d.Votes {
		v := &d.Votes[i]
		fmt.Fprintf(w.stdout, "%s %s by %s %s\n", k.bold("Vote:"), visible.Text(v.Outcome), visible.Text(v.Voter()), visible.Text(v.At+" "+v.Reason))
	}
	fmt.Fprintf(w.stdout, "%s %s\n", k.bold("Connection:"), d.Bound.Connection)
	if d.Bound.Pin != "" {
		fmt.Fprintf(w.stdout, "%s %s\n", k.bold("Pin:"), d.Bound.Pin)
	}
	if d.Bound.Schema != "" {
		fmt.Fprintf(w.stdout, "%s %s, the operator's in place of the inputSchema\n", k.bold("Schema:"), d.Bound.Schema)
	}
	fmt.Fprintf(w.stdout, "%s %s\n", k.bold("Digest of all this:"), q.Binding)
}
