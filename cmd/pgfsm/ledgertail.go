package main

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"pgfsm/policy/visible"
	"pgfsm/present"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

const (
	// defaultTail is how many events tail prints.
	defaultTail = 20
	// maxTold bounds in bytes what lines show of one value.
	maxTold = 200
)

func newLedgerTail(w world, f *ledgerFlags) *cobra.Command {
	var n int
	var follow bool
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Print the last events",
		Long: `tail prints the last events, one a line: number, time, type, run, actor, and the most important detail.
With --json each line is a JSON document with the whole event. --follow continues until it is interrupted.`,
		Example: `  pgfsm ledger tail -n 50
  pgfsm ledger tail --follow --json | jq 'select(.type == "proxy.sent")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 0 {
				return fmt.Errorf("-n is %d: give how many events to print, 0 or more", n)
			}
			return f.use(w, stores.ToRead, func(o *openedLedger) error { return tail(cmd.Context(), w, o, n, follow, f.json) })
		},
	}
	cmd.Flags().IntVarP(&n, "lines", "n", defaultTail, "the number of events")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "also print new events as they are recorded")
	return cmd
}

// tail prints the last n events, and then new ones if follow is set.
func tail(ctx context.Context, w world, o *openedLedger, n int, follow, asJSON bool) error {
	var from int64
	var last []ledger.Event
	err := o.View(ctx, func(r ledger.Reader) error {
		end, err := r.End()
		if err != nil {
			return err
		}
		from = end.Size
		for e, err := range ledger.Events(r, max(0, end.Size-int64(n))) { // each entry has an event or more
			if err != nil {
				return err
			}
			last = append(last, e)
			last = last[max(0, len(last)-n):]
		}
		return nil
	})
	for i := range last {
		if err == nil {
			err = printEvent(w, &last[i], asJSON)
		}
	}
	if err != nil || !follow {
		return err
	}
	err = ledger.Watch(ctx, o, from, func(e ledger.Event, _ ledger.Request) error { return printEvent(w, &e, asJSON) })
	if ctx.Err() != nil {
		return nil // the user ended it
	}
	return err
}

func printEvent(w world, e *ledger.Event, asJSON bool) error {
	event := present.NewEvent(e)
	if asJSON {
		event.SchemaVersion = schemaVersion
		return printJSONLine(w, event)
	}
	_, err := fmt.Fprintln(w.stdout, event.Line(true))
	return err
}

func printJSONLine(w world, v any) error {
	line, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w.stdout, visible.JSON(line))
	return err
}
