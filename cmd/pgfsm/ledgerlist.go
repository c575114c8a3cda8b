package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
)

// A requestList chooses the requests that a command lists.
type requestList struct {
	ledger.Filter
	statuses     []string
	since, until string
	limit        int
	none         string // is printed if there is no request
}

// maxListed bounds --limit.
const maxListed = 1_000_000

func (l *requestList) register(cmd *cobra.Command, statuses []string, limit int) {
	cmd.Flags().StringSliceVar(&l.statuses, "status", statuses, "the statuses to list, or all")
	cmd.Flags().IntVar(&l.limit, "limit", limit, "the most requests to list; 0 is all")
}

// choose completes the filter by the flags.
func (l *requestList) choose() error {
	if l.limit < 0 || l.limit > maxListed {
		return fmt.Errorf("--limit is %d: give how many to list, at most %d, or 0 for all", l.limit, maxListed)
	}
	if l.limit > 0 {
		l.Limit = l.limit + 1 // one more says whether there are more
	}
	if slices.Contains(l.statuses, "all") {
		l.statuses = nil
	}
	if err := l.Choose(l.statuses, l.since, l.until, time.Now()); err != nil {
		return fmt.Errorf("--%w", err)
	}
	return nil
}

// print prints the requests as one document, or else as lines.
func (l *requestList) print(w world, r ledger.Reader, asJSON bool, lines func(world, []present.Run)) error {
	rows, more := []present.Run{}, false
	for q, err := range r.Requests(l.Filter) {
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
	if asJSON {
		return printJSON(w.stdout, struct {
			SchemaVersion int           `json:"schema_version"`
			More          bool          `json:"more"`
			Requests      []present.Run `json:"requests"`
		}{schemaVersion, more, rows})
	}
	if len(rows) == 0 {
		fmt.Fprintln(w.stderr, l.none)
		return nil
	}
	lines(w, rows)
	if several := present.SameDisplay(l.Who, rows); several != "" {
		fmt.Fprintln(w.stderr, visible.Text(several))
	}
	if more {
		fmt.Fprintln(w.stderr, "There are more; --limit 0 lists all.")
	}
	return nil
}

func newLedgerList(w world, f *ledgerFlags) *cobra.Command {
	l := requestList{Filter: ledger.Filter{Newest: true}, none: "No run matches."}
	cmd := &cobra.Command{
		Use:  "list",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := notEmpty(cmd, "actor", "task", "server", "tool", "policy", "code", "since", "until", "text"); err != nil {
				return err
			}
			if err := l.choose(); err != nil {
				return err
			}
			return f.view(cmd.Context(), w, func(r ledger.Reader) error { return l.print(w, r, f.json, printRuns) })
		},
	}
	l.register(cmd, nil, 50)
	cmd.Flags().StringVar(&l.Who, "actor", "", "runs of this `NAME`: an actor, or a display name, which several actors may have")
	cmd.Flags().StringVar(&l.Task, "task", "", "runs of the task with this `ID`")
	cmd.Flags().StringVar(&l.Server, "server", "", "calls of the server with this `NAME`")
	cmd.Flags().StringVar(&l.Tool, "tool", "", "calls of the tool with this `NAME`")
	cmd.Flags().StringVar(&l.Policy, "policy", "", "runs that the policy with this `ID` decided")
	cmd.Flags().StringVar(&l.Code, "code", "", "runs that ended with this `CODE`")
	cmd.Flags().StringVar(&l.since, "since", "", "runs since this `TIME`")
	cmd.Flags().StringVar(&l.until, "until", "", "runs from before this `TIME`")
	cmd.Flags().StringVar(&l.Text, "text", "", "calls with this `TEXT` in their arguments")
	return cmd
}

const (
	tableWidth  = 120 // characters
	minColumn   = 8
	actorColumn = 3
	toolColumn  = 4
)

// printRuns shows each run in one line. Long actors, tools, policies and codes are cut so that a line fits. Of an actor, and of a server and
// its tool, the end stays.
func printRuns(w world, rows []present.Run) {
	lines := [][]string{{"RUN", "REQUESTED", "STATUS", "ACTOR", "SERVER/TOOL", "POLICY/CODE"}}
	for _, d := range rows {
		tool := ""
		if d.Tool != "" {
			tool = d.Server + "/" + d.Tool
			if d.Unverified {
				tool += " ?"
			}
		}
		lines = append(lines, []string{ledger.Short(d.Run), d.At, string(d.Status), d.Requester(), tool, cmp.Or(d.Code, d.Policy)})
	}
	widths := make([]int, len(lines[0]))
	total := 2 * (len(widths) - 1)
	for _, cells := range lines {
		for i := range cells {
			cells[i] = visible.Text(cmp.Or(cells[i], "-"))
			wider := max(utf8.RuneCountInString(cells[i])-widths[i], 0)
			widths[i], total = widths[i]+wider, total+wider
		}
	}
	names := widths[actorColumn:]
	for ; total > tableWidth && slices.Max(names) > minColumn; total-- {
		names[slices.Index(names, slices.Max(names))]--
	}
	k := newInk(w)
	for n, cells := range lines {
		line := ""
		for i, cell := range cells {
			switch runes, most := []rune(cell), widths[i]-1; {
			case len(runes) <= widths[i]:
			case i == actorColumn && n > 0:
				cell = present.ShortName(rows[n-1].Actor, rows[n-1].Display, widths[i])
			case i == toolColumn:
				cell = "…" + string(runes[len(runes)-most:])
			default:
				cell = string(runes[:most]) + "…"
			}
			if i < len(cells)-1 {
				cell = fmt.Sprintf("%-*s  ", widths[i], cell)
			}
			line += cell
		}
		if n == 0 {
			line = k.bold(line)
		}
		fmt.Fprintln(w.stdout, line)
	}
}
