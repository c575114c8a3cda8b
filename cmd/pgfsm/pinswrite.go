package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
)

func newPinsApprove(w world) *cobra.Command {
	var expect string
	var cmd *cobra.Command
	cmd = newPinsCommand(w, &cobra.Command{
		Use:   "approve [SERVER [TOOL]]",
		Short: "Pin tools to their present definitions",
		Long: `approve pins every allowlisted tool that has no pin yet to the definition that its server sends now: trust on
first use. It names tools that are pinned to another definition, and does not change them.

With SERVER TOOL it pins only that tool. If the tool is pinned to another definition, --expect must name the live one, as
pgfsm pins diff shows it, so that you approve only what you looked at. If the live definition is not the expected
one, approve writes nothing and exits with 1.`,
		Args: cobra.MaximumNArgs(2),
	}, func(ctx context.Context, p *pinCommand, rows []pinRow, words []string) error {
		if cmd.Flags().Changed("expect") { // an empty one is a variable that was not set, and no wish for less
			if len(words) != 2 {
				return errors.New("--expect names the definition of one tool: name its server and the tool")
			}
			if _, err := canonical.ParseDigest(expect); err != nil {
				return fmt.Errorf("--expect: %w", err)
			}
		}
		return approvePins(ctx, p, rows, len(words) == 2, canonical.Digest(expect))
	})
	cmd.Flags().StringVar(&expect, "expect", "", "the digest that the tool's live definition must have")
	return cmd
}

// approvePins pins what may be pinned. One tool that was named and cannot be pinned is an error.
func approvePins(ctx context.Context, p *pinCommand, rows []pinRow, one bool, expect canonical.Digest) error {
	known, was, unsure, err := p.file.kept()
	if err != nil {
		return err
	}
	c, err := p.live(ctx, rows)
	if err != nil {
		return err
	}
	code, made := exitYes, 0
	pins, fresh := slices.Clone(p.file.pins), make(definitions)
	for i := range rows {
		r := &rows[i]
		if r.approve(expect); r.Status == pinMade {
			pins, made = pin(pins, r), made+1
		}
		if r.Status == pinMade || r.Status == pinSame {
			fresh[r.Definition] = r.live.Definition
			continue
		}
		code = exitNo
		if r.Status == pinChanged || r.Status == pinUnexpected {
			r.Next = p.diffNext(r)
		} else if one {
			return fmt.Errorf("%s %s cannot be pinned: %s", r.Server, r.Tool, r.says())
		}
	}
	if unanswered(c, rows) {
		code = exitCould
	}
	p.warn(unsure)
	if err := p.file.save(pins, known, fresh, was); err != nil {
		return err
	}
	return p.printWritten(rows, fmt.Sprintf("%d tools pinned", made), code)
}

// approve says whether the live definition becomes the pin.
func (r *pinRow) approve(expect canonical.Digest) {
	switch {
	case !r.compared():
	case expect != "" && expect != r.Definition:
		r.Status = pinUnexpected
	case r.live.Code != "":
		r.Status, r.Reason = pinRefused, r.live.Reason
	case r.Status == pinNone, r.Status == pinChanged && expect != "":
		r.Status, r.Was, r.Pin = pinMade, r.Pin, r.Definition
	}
}

// pin puts the pin of a row into the place of the one before.
func pin(pins []policy.Pin, r *pinRow) []policy.Pin {
	pins = slices.DeleteFunc(pins, func(p policy.Pin) bool { return p.Server == r.Server && p.Tool == r.Tool })
	return append(pins, policy.Pin{Definition: r.Pin, Server: r.Server, Tool: r.Tool})
}

func (p *pinCommand) printWritten(rows []pinRow, sum string, code int) error {
	if p.json {
		err := printJSON(p.w.stdout, struct {
			SchemaVersion int      `json:"schema_version"`
			Allowlist     string   `json:"allowlist"`
			Tools         []pinRow `json:"tools"`
		}{schemaVersion, p.file.path, rows})
		if err != nil {
			return err
		}
		return exit(code)
	}
	k := newInk(p.w)
	for i := range rows {
		rows[i].print(p.w.stdout, k)
		rows[i].printNext(p.w.stdout, k, "what changed, and how to approve it:")
	}
	fmt.Fprintln(p.w.stdout, sum)
	return exit(code)
}

func newPinsReset(w world) *cobra.Command {
	var all bool
	cmd := newPinsCommand(w, &cobra.Command{
		Use:   "reset {SERVER [TOOL] | --all}",
		Short: "Remove pins",
		Long:  "reset removes the pins of a tool, of a server's tools, or all of them. It contacts no server.",
		Args: func(_ *cobra.Command, words []string) error {
			if all == (len(words) > 0) || len(words) > 2 {
				return errors.New("name a server, or a server and a tool, or say --all")
			}
			return nil
		},
	}, func(_ context.Context, p *pinCommand, rows []pinRow, _ []string) error {
		removed := make([]pinRow, 0, len(rows))
		pins := slices.DeleteFunc(slices.Clone(p.file.pins), func(pin policy.Pin) bool {
			return slices.ContainsFunc(rows, func(r pinRow) bool { return r.Server == pin.Server && r.Tool == pin.Tool })
		})
		for _, r := range rows {
			if r.Pin != "" {
				removed = append(removed, pinRow{Server: r.Server, Tool: r.Tool, Was: r.Pin})
			}
		}
		if len(removed) > 0 {
			if err := p.file.locked(func() error { return p.file.savePins(pins) }); err != nil {
				return err
			}
		}
		return p.printWritten(removed, fmt.Sprintf("%d pins removed", len(removed)), exitYes)
	})
	cmd.Flags().BoolVar(&all, "all", false, "remove every pin")
	return cmd
}
