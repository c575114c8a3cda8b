package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

// A requestList chooses the requests that a command lists.
type requestList struct {
	ledger.Filter
	statuses     []string
	since, until string
	limit        int
	none         string // the text without requests
}

// maxListed bounds --limit.
const maxListed = 1_000_000

func (l *requestList) addFlags(cmd *cobra.Command, statuses []string, limit int) {
	cmd.Flags().StringSliceVar(&l.statuses, "status", statuses, "the statuses to list, or all")
	cmd.Flags().IntVar(&l.limit, "limit", limit, "the most requests to list; 0 is all")
}

// completeFilter completes the filter from the flags.
func (l *requestList) completeFilter() error {
	if l.limit < 0 || l.limit > maxListed {
		return fmt.Errorf("--limit is %d: give how many to list, at most %d, or 0 for all", l.limit, maxListed)
	}
	if l.limit > 0 {
		l.Limit = l.limit + 1 // one more shows whether there are more
	}
	if slices.Contains(l.statuses, "all") {
		l.statuses = nil
	}
	if err := l.Choose(l.statuses, l.since, l.until, time.Now()); err != nil {
		return fmt.Errorf("--%w", err)
	}
	return nil
}

// printRequests prints the requests as one document or as lines.
func (l *requestList) printRequests(f *ledgerFlags, r ledger.Reader,
	lines func(rows []present.Run) (func(out io.Writer, k ink), error)) error {
	rows, more := []present.Run{}, false
	for q, err := range r.Runs(l.Filter) {
		if err != nil {
			return err
		}
		if more = l.limit > 0 && len(rows) == l.limit; more {
			break
		}
		d, err := present.RunWithArgs(r, &q)
		if err != nil {
			return err
		}
		rows = append(rows, d)
	}
	var print func(out io.Writer, k ink)
	if !f.json && len(rows) > 0 {
		var err error
		if print, err = lines(rows); err != nil {
			return err
		}
	}
	return f.printDocument(cli.Document("more", more, "requests", rows), func(out io.Writer, k ink) {
		if len(rows) == 0 {
			fmt.Fprintln(f.w.stderr, l.none)
			return
		}
		print(out, k)
		if several := present.SameDisplay(l.Who, rows); several != "" {
			fmt.Fprintln(f.w.stderr, visible.Text(several))
		}
		if more {
			fmt.Fprintln(f.w.stderr, "There are more; --limit 0 lists all.")
		}
	})
}

func newLedgerList(f *ledgerFlags) *cobra.Command {
	l := requestList{Filter: ledger.Filter{Newest: true}, none: "No run matches."}
	cmd := f.newViewCommand("list", cobra.NoArgs, func(_ context.Context, _ *openedLedger, r ledger.Reader, _ []string) error {
		return l.printRequests(f, r, func(rows []present.Run) (func(io.Writer, ink), error) {
			return templatePrinter("runs", rows), nil
		})
	})
	checkFirst(cmd, func() error {
		if err := notEmpty(cmd, "actor", "task", "session", "server", "tool", "policy", "code", "since", "until",
			"text"); err != nil {
			return err
		}
		return l.completeFilter()
	})

	l.addFlags(cmd, nil, 50)
	cmd.Flags().StringVar(&l.Who, "actor", "", "runs of this `NAME`: an actor, or a display name, which several actors may have")
	cmd.Flags().StringVar(&l.Task, "task", "", "runs of the task with this `ID`")
	cmd.Flags().StringVar(&l.Session, "session", "", "runs of the client's session with this `NAME`, such as claude/ID")
	cmd.Flags().StringVar(&l.Server, "server", "", "calls of the server with this `NAME`")
	cmd.Flags().StringVar(&l.Tool, "tool", "", "calls of the tool with this `NAME`")
	cmd.Flags().StringVar(&l.Policy, "policy", "", "runs that the policy with this `ID` decided")
	cmd.Flags().StringVar(&l.Code, "code", "", "runs that ended with this `CODE`")
	cmd.Flags().StringVar(&l.since, "since", "", "runs since this `TIME`")
	cmd.Flags().StringVar(&l.until, "until", "", "runs from before this `TIME`")
	cmd.Flags().StringVar(&l.Text, "text", "", "calls with this `TEXT` in their arguments")

	return cmd
}

// Bounds of the columns of a list, so that a line has at most 120 characters.
const maxTool, maxCode = 27, 24

// toolColumn returns the server and the tool of a run. It cuts a long name at the front.
func toolColumn(d present.Run) string {
	tool := "-"
	if d.Tool != "" {
		tool = d.Server + "/" + d.Tool
	}
	if d.Unverified {
		tool += " ?"
	}
	return present.ShortName(tool, "", maxTool)
}

func codeColumn(d present.Run) string {
	return visible.Text(visible.Cut(cmp.Or(d.Code, d.Policy, "-"), maxCode-1, "…"))
}

const (
	// defaultTail is the default number of events that tail prints.
	defaultTail = 20
	// maxTold bounds one value in a line, in bytes.
	maxTold = 200
)

func newLedgerTail(f *ledgerFlags) *cobra.Command {
	var t tailOptions
	cmd := f.newCommand("tail", cobra.NoArgs, stores.ToRead,
		func(ctx context.Context, o *openedLedger, _ []string) (err error) {
			if t.Run, err = o.findRun(ctx, t.Run); err != nil {
				return err
			}
			if err := t.Choose(t.since, t.until, o.store.Now()); err != nil {
				return fmt.Errorf("--%w", err)
			}
			return t.printEvents(ctx, o, f)
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

// tailOptions holds the flags of tail.
type tailOptions struct {
	present.LogFilter
	lines        int
	follow       bool
	since, until string
}

// matches reports whether the flags choose an event.
func (t *tailOptions) matches(e *ledger.Event) bool {
	return t.Matches(e) && (t.Run == "" || e.RunID == t.Run) && e.At >= t.Since && (t.Until == "" || e.At < t.Until)
}

// printEvents prints the last events, and then new ones if follow is set.
func (t *tailOptions) printEvents(ctx context.Context, o *openedLedger, f *ledgerFlags) error {
	var next int64
	var last []ledger.Event
	err := o.View(ctx, func(r ledger.Reader) error {
		end, err := r.End()
		if err != nil {
			return err
		}
		next = end.Size
		first := max(0, end.Size-int64(t.lines)) // enough, because each entry has an event or more
		if (t.LogFilter != present.LogFilter{}) {
			if first, err = ledger.FirstEntryAt(r, t.Since); err != nil {
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

	if err != nil {
		return err
	}

	for i := range last {
		if err := f.printEvent(&last[i]); err != nil {
			return err
		}
	}

	if !t.follow {
		return nil
	}

	err = ledger.Watch(ctx, o, next, func(e ledger.Event, _ ledger.RunRow) error {
		if !t.matches(&e) {
			return nil
		}
		return f.printEvent(&e)
	})

	return unlessEnded(ctx, err)
}

func (f *ledgerFlags) printEvent(e *ledger.Event) error {
	event := present.NewEvent(e)
	line := event.Line(true)
	if f.json {
		event.SchemaVersion = cli.SchemaVersion
		text, err := json.Marshal(event, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
		if err != nil {
			return err
		}
		line = visible.JSON(text)
	}
	_, err := fmt.Fprintln(f.w.stdout, line)
	return err
}
