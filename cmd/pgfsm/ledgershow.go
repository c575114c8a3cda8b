package main

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"pgfsm/policy/visible"
	"pgfsm/present"
	"pgfsm/runner"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

func newLedgerShow(w world, f *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "show RUN",
		Short:   "Show one run: its state and its events",
		Example: `  pgfsm ledger show 01939f0e-7d5c-7b1e-8d5e-2f6c1a0b9e3d`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := newReplayer()
			if err != nil {
				return err
			}
			return f.view(cmd.Context(), w, func(r ledger.Reader) error { return showRun(cmd.Context(), w, r, p, args[0], f.json) })
		},
	}
}

func showRun(ctx context.Context, w world, r ledger.Reader, p *traces.Replayer, run string, asJSON bool) error {
	q, err := r.Request(run)
	if err != nil {
		return noRun(run, err)
	}
	d, err := present.NewDetails(r, &q)
	if err != nil {
		return err
	}
	result, note, err := runner.CallResult(ctx, r, p, &q)
	if err != nil {
		note = "the result cannot be shown: " + err.Error()
	}
	d.Result, d.ResultNote = orNull(result), note
	var events []eventLine
	for e, err := range r.EventsOf(run) {
		if err != nil {
			return err
		}
		line, err := newEventLine(r, &e)
		if err != nil {
			return err
		}
		events = append(events, line)
	}
	if asJSON {
		return printJSON(w.stdout, struct {
			present.Details
			Events []eventLine `json:"events"`
		}{d, events})
	}
	printRun(w, &d.Request)
	switch {
	case note != "":
		fmt.Fprintf(w.stdout, "%s %s\n\n", newInk(w).bold("Result:"), visible.Text(note))
	case result != nil:
		fmt.Fprintf(w.stdout, "%s\n%s\n\n", newInk(w).bold("Result:"), indented(result, wholeTrace(run)))
	}
	for i := range events {
		fmt.Fprintf(w.stdout, "%6d  %s  %s\n", events[i].Seq, visible.Text(events[i].At), events[i].told(false))
	}
	return nil
}

func orNull(v jsontext.Value) jsontext.Value {
	if v == nil {
		return jsontext.Value("null")
	}
	return v
}

// printRun shows people the state of a run.
func printRun(w world, d *present.Run) {
	k := newInk(w)
	printFields(w, k, 12, d.Rows())
	if len(d.Args) > 0 {
		fmt.Fprintf(w.stdout, "%s\n%s\n", k.bold("Arguments:"), indented(d.Args, wholeTrace(d.Run)))
	}
	fmt.Fprintln(w.stdout)
}

// printFields prints rows with names that are padded to a width.
func printFields(w world, k ink, width int, rows []present.Row) {
	for _, row := range rows {
		fmt.Fprintf(w.stdout, "%s %s\n", k.bold(fmt.Sprintf("%-*s", width, row.Name+":")), visible.Text(row.Value))
	}
}
