package main

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

const (
	// defaultTail is the default number of events that tail prints.
	defaultTail = 20
	// maxTold bounds one value in a line, in bytes.
	maxTold = 200
)

func newLedgerTail(f *ledgerFlags) *cobra.Command {
	var t tailing
	cmd := f.command("tail", cobra.NoArgs, stores.ToRead, func(ctx context.Context, o *openedLedger, _ []string) (err error) {
		if t.Run, err = o.findRun(ctx, t.Run); err != nil {
			return err
		}
		if err := t.Choose(t.since, t.until, o.store.Now()); err != nil {
			return fmt.Errorf("--%w", err)
		}
		return t.tail(ctx, o, f)
	})
	checkFirst(cmd, func() error {
		if t.lines < 0 {
			return fmt.Errorf("-n is %d: give how many events to print, 0 or more", t.lines)
		}
		return notEmpty(cmd, "type", "run", "by", "since", "until")
	})
	cmd.Flags().IntVarP(&t.lines, "lines", "n", defaultTail, "the number of events")
	cmd.Flags().BoolVarP(&t.follow, "follow", "f", false, "also print new events as they are recorded")
	cmd.Flags().StringVar((*string)(&t.Type), "type", "", "events of this `TYPE`")
	cmd.Flags().StringVar(&t.Run, "run", "", "events of the run with this `ID`")
	cmd.Flags().StringVar(&t.By, "by", "", "events of this actor or display name, of the token with this `NAME`, or of the process with this id")
	cmd.Flags().StringVar(&t.since, "since", "", "events since this `TIME`")
	cmd.Flags().StringVar(&t.until, "until", "", "events from before this `TIME`")
	return cmd
}

// tailing holds the flags of tail.
type tailing struct {
	present.LogFilter
	lines        int
	follow       bool
	since, until string
}

// matches reports whether the flags choose an event.
func (t *tailing) matches(e *ledger.Event) bool {
	return t.Matches(e) && (t.Run == "" || e.RunID == t.Run) && e.At >= t.Since && (t.Until == "" || e.At < t.Until)
}

// tail prints the last events, and then new ones if follow is set.
func (t *tailing) tail(ctx context.Context, o *openedLedger, f *ledgerFlags) error {
	var from int64
	var last []ledger.Event
	err := o.View(ctx, func(r ledger.Reader) error {
		end, err := r.End()
		if err != nil {
			return err
		}
		from = end.Size
		first := max(0, end.Size-int64(t.lines)) // enough, because each entry has an event or more
		if (t.LogFilter != present.LogFilter{}) {
			if first, err = ledger.FirstAt(r, t.Since); err != nil {
				return err
			}
		}
		for e, err := range ledger.Events(r, first) {
			if err != nil {
				return err
			}
			if t.matches(&e) {
				last = append(last, e)
				last = last[max(0, len(last)-t.lines):]
			}
		}
		return nil
	})
	for i := range last {
		if err == nil {
			err = f.printEvent(&last[i])
		}
	}
	if err != nil || !t.follow {
		return err
	}
	err = ledger.Watch(ctx, o, from, func(e ledger.Event, _ ledger.Request) error {
		if !t.matches(&e) {
			return nil
		}
		return f.printEvent(&e)
	})
	if ctx.Err() != nil {
		return nil // the user ended it
	}
	return err
}

func (f *ledgerFlags) printEvent(e *ledger.Event) error {
	event := present.NewEvent(e)
	if f.json {
		event.SchemaVersion = cli.SchemaVersion
		return printJSONLine(f.w, event)
	}
	_, err := fmt.Fprintln(f.w.stdout, event.Line(true))
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
