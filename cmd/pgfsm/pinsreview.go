package main

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"pgfsm/policy/docdiff"
	"pgfsm/policy/visible"
)

func newPinsDiff(w world) *cobra.Command {
	return newPinsCommand(w, &cobra.Command{
		Use:   "diff [SERVER [TOOL]]",
		Short: "Show what changed in the definitions of pinned tools",
		Long: `diff asks the servers and shows, for each pinned tool whose definition changed, what was added,
removed and changed, by JSON pointer. It writes invisible characters, bidirectional controls and terminal control characters
as escapes. If the approved definition was not kept, it shows the new one whole. It shortens a change of more than a hundred
lines, and says by how much; --json shortens nothing. Exit code 1 if anything differs, 2 if no server answered.`,
		Args: cobra.MaximumNArgs(2),
	}, diffPins)
}

// pinDifference is one tool, with what changed. Live is there where the approved definition is not known.
type pinDifference struct {
	pinRow
	Changes []docdiff.Change `json:"changes,omitzero"`
	Live    jsontext.Value   `json:"live,omitzero"`
}

func diffPins(ctx context.Context, p *pinCommand, rows []pinRow, _ []string) error {
	known, _, unsure, err := p.file.kept()
	if err != nil {
		return err
	}
	p.warn(unsure)
	c, err := p.live(ctx, rows)
	if err != nil {
		return err
	}
	code := exitYes
	tools := make([]pinDifference, 0, len(rows))
	for _, r := range rows {
		d := pinDifference{pinRow: r}
		if r.Pin != "" && r.Status != pinSame {
			code = exitNo
		}
		if r.Status == pinChanged {
			d.Next = p.approveNext(&r)
			if pinned := known[r.Pin]; pinned != nil {
				d.Changes = docdiff.JSON("", pinned, r.live.Definition)
			} else {
				d.Live = r.live.Definition
				d.Reason = "the definition that was approved is not kept in " + p.file.beside() + "; live is the new one, whole"
			}
		}
		tools = append(tools, d)
	}
	if unanswered(c, rows) {
		code = exitCould
	}
	if p.json {
		err := printJSON(p.w.stdout, struct {
			SchemaVersion int             `json:"schema_version"`
			Tools         []pinDifference `json:"tools"`
		}{schemaVersion, tools})
		if err != nil {
			return err
		}
		return exit(code)
	}
	k := newInk(p.w)
	for i := range tools {
		tools[i].print(p, k)
	}
	return exit(code)
}

// print shows a tool to people, with all that changed.
func (d *pinDifference) print(p *pinCommand, k ink) {
	out := p.w.stdout
	d.pinRow.print(out, k)
	for _, c := range d.Changes {
		printChange(out, k, c)
	}
	if d.Live != nil {
		fmt.Fprintf(out, "  %s\n", visible.Text(d.Reason))
		printBlock(out, k, docdiff.Plus, d.Live)
	}
	d.printNext(out, k, "to approve just this:")
}

// warn tells people what is not as it should be and does not stop anything.
func (p *pinCommand) warn(what string) {
	if what != "" {
		fmt.Fprintf(p.w.stderr, "pgfsm: warning: %s\n", visible.Text(what))
	}
}
