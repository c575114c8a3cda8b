package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
)

func newApprovalsWatch(f *ledgerFlags) *cobra.Command {
	return f.looking("watch", cobra.NoArgs, func(ctx context.Context, o *openedLedger, _ []string) error { return f.watch(ctx, o) })
}

// watched lists the events that watch prints.
var watched = []ledger.Type{ledger.ApprovalRequested, ledger.ApprovalApproved, ledger.ApprovalDenied, ledger.ApprovalExpired}

func (f *ledgerFlags) watch(ctx context.Context, o *openedLedger) error {
	var after int64
	err := o.View(ctx, func(r ledger.Reader) error {
		end, err := r.End()
		if err != nil {
			return err
		}
		after = end.Size
		for q, err := range r.Requests(ledger.Filter{Statuses: []ledger.Status{ledger.Pending}}) {
			if err != nil {
				return err
			}
			if err := f.printWatched(r, o.timestamp(), &ledger.Event{Index: q.Entry, At: q.At, Type: ledger.ApprovalRequested, By: q.Actor}, &q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = ledger.Watch(ctx, o, after, func(e ledger.Event, q ledger.Request) error {
		if !slices.Contains(watched, e.Type) {
			return nil
		}
		return o.View(ctx, func(r ledger.Reader) error { return f.printWatched(r, o.timestamp(), &e, &q) })
	})
	if ctx.Err() != nil {
		return nil // the user ended it
	}
	return err
}

// printWatched prints one event in one line.
func (f *ledgerFlags) printWatched(r ledger.Reader, now string, e *ledger.Event, q *ledger.Request) error {
	d, err := present.RunWithArgs(r, q)
	if err != nil {
		return err
	}
	said := present.NewEvent(e)
	if e.Type == ledger.ApprovalRequested {
		said.By, said.Display = q.Actor, q.Display
	}
	if f.json {
		return printJSONLine(f.w, struct {
			SchemaVersion int         `json:"schema_version"`
			Type          ledger.Type `json:"type"`
			At            string      `json:"at"`
			By            string      `json:"by"`
			Request       present.Run `json:"request"` // the request's current state
		}{cli.SchemaVersion, e.Type, e.At, said.By, d})
	}
	_, err = fmt.Fprintf(f.w.stdout, "%s  %-18s  %s  %s %s  by %s  (%s)\n", e.At, e.Type, d.Run, visible.Clip(d.Server, maxTold),
		visible.Clip(d.Tool, maxTold), present.ShortName(said.By, said.Display, maxTold), d.StatusText(now))
	return err
}
