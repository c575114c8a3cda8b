package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/internal/present"
	"pgfsm/internal/runner"
	"pgfsm/internal/visible"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

func newLedgerShow(w world, f *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use:  "show RUN",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := newReplayer()
			if err != nil {
				return err
			}
			return f.use(w, stores.ToRead, func(o *openedLedger) error {
				return o.View(cmd.Context(), func(r ledger.Reader) error { return showRun(cmd.Context(), w, r, p, args[0], o.now(), f.json) })
			})
		},
	}
}

func showRun(ctx context.Context, w world, r ledger.Reader, p *traces.Replayer, run, now string, asJSON bool) error {
	run, err := ledger.FindRun(r, run)
	if err != nil {
		return err
	}
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
	d.ResultNote = note
	if result != nil {
		d.Result = result
	}
	var events []present.Event
	for e, err := range ledger.EventsOf(r, run) {
		if err != nil {
			return err
		}
		events = append(events, present.NewEvent(&e))
	}
	if asJSON {
		return printJSON(w.stdout, struct {
			present.Details
			Events []present.Event `json:"events"`
		}{d, events})
	}
	k := newInk(w)
	printFields(w, k, 12, d.Rows(events, now))
	if len(d.Request.Args) > 0 {
		fmt.Fprintf(w.stdout, "%s\n%s\n", k.bold("Arguments:"), indented(d.Request.Args, wholeTrace(run)))
	}
	fmt.Fprintln(w.stdout)
	switch {
	case note != "":
		fmt.Fprintf(w.stdout, "%s %s\n\n", k.bold("Result:"), visible.Text(note))
	case result != nil:
		fmt.Fprintf(w.stdout, "%s\n%s\n\n", k.bold("Result:"), indented(result, wholeTrace(run)))
	}
	for i := range events {
		fmt.Fprintln(w.stdout, events[i].Line(false))
	}
	return nil
}

// printFields prints rows with names that are padded to a width.
func printFields(w world, k ink, width int, rows []present.Row) {
	for _, row := range rows {
		fmt.Fprintf(w.stdout, "%s %s\n", k.bold(fmt.Sprintf("%-*s", width, row.Name+":")), visible.Text(row.Value))
	}
}
